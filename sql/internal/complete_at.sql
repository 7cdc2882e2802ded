-- SPDX-License-Identifier: PostgreSQL
-- complete with the time as an argument.
-- The usual case is one update: the whole batch, nothing finished before. It does not ask whether the lease is well formed, as lease_parts
-- does: that costs more than the update, and a block that can fail a twentieth of it. What is not as usual, a lease that is none included,
-- it leaves to the rest.
do $do$
begin
  execute format($sql$
create or replace function millrace.complete_at(p_now timestamptz, p_lease text, p_ids bigint[], p_result jsonb)
returns int
language plpgsql
as $$
declare
  v_key      bigint[];      -- slot, lane, number
  v_claim    millrace.claim;
  v_ordinals int[];
  v_n        int;
begin
  if p_ids is null and p_result is null and octet_length(p_lease) < 80
     and current_setting('millrace.at_home', true) = 'millrace.home'::regclass::oid::text then
    begin
      v_key := translate('{' || left(p_lease, -37) || '}', '.', ',')::bigint[];
    exception
      when data_exception then
        v_key := null;
    end;
    %s
    if v_n is not null then
      return v_n;
    end if;
  end if;
  v_claim := millrace.lease_take(p_lease);
  if p_ids is null then
    v_ordinals := array(select o
                          from generate_series(1, v_claim.n) o
                         where v_claim.outcome is null
                            or substr(v_claim.outcome, o, 1) = 'o');
  else
    v_ordinals := millrace.held_ordinals(v_claim, p_ids, p_lease);
  end if;
  if p_result is not null then
    for i in 1 .. cardinality(v_ordinals) loop
      perform millrace.result_keep(p_now, v_claim, v_ordinals[i], p_result);
    end loop;
  end if;
  perform millrace.claim_settle(p_now, v_claim, v_ordinals, repeat('c', cardinality(v_ordinals)));
  return cardinality(v_ordinals);
end $$
  $sql$, millrace.by_leaf('v_key[1]', 'v_n := millrace.complete_all_%s(p_now, v_key, right(p_lease, 36));'));
end $do$;
