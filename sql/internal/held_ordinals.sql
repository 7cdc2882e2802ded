-- SPDX-License-Identifier: PostgreSQL
-- The ordinals of p_ids in a claim. Every one must be held open: an id that is not in the claim raises MR003, one that is
-- finished already or given twice raises MR001.
create or replace function millrace.held_ordinals(p_claim millrace.claim, p_ids bigint[], p_lease text)
returns int[]
language plpgsql
as $$
declare
  v_held bigint[] := coalesce(p_claim.job_ids, p_claim.positions);
  v_at   int;
  v_all  int[] := '{}';
  v_good boolean;
begin
  if cardinality(p_ids) = 0 then
    return v_all;
  end if;
  select array_agg(h.at::int order by u.ord),
         count(distinct h.at) = count(*) and (p_claim.outcome is null or bool_and(substr(p_claim.outcome, h.at::int, 1) = 'o'))
    into v_all, v_good
    from unnest(p_ids) with ordinality u(id, ord)
    left join unnest(v_held) with ordinality h(id, at) on h.id = u.id;
  if v_good then
    return v_all;
  end if;
  -- One by one, for the first that is wrong.
  v_all := '{}';
  for i in 1 .. cardinality(p_ids) loop
    v_at := array_position(v_held, p_ids[i]);
    if v_at is null then
      perform millrace.refuse_unknown(format('job %s is not in lease %s', coalesce(p_ids[i]::text, 'null'), left(p_lease, 80)),
        'Pass ids that the claim returned with this lease. Nothing was changed.');
    elsif substr(p_claim.outcome, v_at, 1) <> 'o' or v_at = any (v_all) then
      perform millrace.refuse_lease(p_lease);
    end if;
    v_all := v_all || v_at;
  end loop;
  return v_all;
end $$;
