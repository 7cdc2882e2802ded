-- SPDX-License-Identifier: PostgreSQL
-- complete with the time as an argument.
create or replace function millrace.complete_at(p_now timestamptz, p_lease text, p_ids bigint[], p_result jsonb)
returns int
language plpgsql
as $$
declare
  v_key      record;
  v_claim    millrace.claim;
  v_ordinals int[];
  v_n        int;
begin
  if p_ids is null and p_result is null then
    -- The usual case, in one update: the whole batch, nothing finished before.
    if (current_setting('millrace.at_home', true) = 'millrace.home'::regclass::oid::text) is not true then
      perform millrace.at_home();
    end if;
    v_key := millrace.lease_parts(p_lease);
    v_n := millrace.complete_all(p_now, v_key.slot, v_key.lane, v_key.no, v_key.token);
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
end $$;
