-- SPDX-License-Identifier: PostgreSQL
-- requeue with the time as an argument.
create or replace function millrace.requeue_at(p_now timestamptz, p_lease text, p_id bigint, p_changes jsonb, p_state bytea, p_blob bytea,
                                               p_clear text[])
returns bigint
language plpgsql
as $$
declare
  v_claim    millrace.claim;
  v_ordinals int[];
begin
  perform millrace.check_changes(p_changes, p_clear);
  v_claim := millrace.lease_take(p_lease);
  v_ordinals := millrace.held_ordinals(v_claim, array[p_id], p_lease);
  if v_claim.positions[v_ordinals[1]] = any (millrace.marks_of(v_claim)) then
    perform millrace.marks_end(p_now, v_claim.lane, array[v_claim.positions[v_ordinals[1]]]);
    perform millrace.claim_settle(p_now, v_claim, v_ordinals, 'k');
    return p_id;
  end if;
  perform millrace.job_requeue(p_now, millrace.held_job(v_claim, v_ordinals[1]), p_changes, p_state, p_blob, p_clear);
  perform millrace.claim_settle(p_now, v_claim, v_ordinals, 'q');
  return p_id;
end $$;
