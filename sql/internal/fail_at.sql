-- SPDX-License-Identifier: PostgreSQL
-- fail with the time as an argument.
create or replace function millrace.fail_at(p_now timestamptz, p_lease text, p_id bigint, p_error text, p_retry_in interval,
                                            p_retry boolean, p_state bytea)
returns text
language plpgsql
as $$
declare
  v_claim    millrace.claim;
  v_ordinals int[];
  v_mark     text;
begin
  perform millrace.check_interval('retry_in', p_retry_in);
  v_claim := millrace.lease_take(p_lease);
  v_ordinals := millrace.held_ordinals(v_claim, array[p_id], p_lease);
  if v_claim.positions[v_ordinals[1]] = any (millrace.marks_of(v_claim)) then
    perform millrace.marks_end(p_now, v_claim.lane, array[v_claim.positions[v_ordinals[1]]]);
    perform millrace.claim_settle(p_now, v_claim, v_ordinals, 'k');
    return 'cancelled';
  end if;
  v_mark := millrace.job_fail(p_now, millrace.held_job(v_claim, v_ordinals[1]), v_claim.holder, p_error, p_retry_in,
                              coalesce(p_retry, true), p_state);
  perform millrace.claim_settle(p_now, v_claim, v_ordinals, v_mark);
  return case v_mark when 'd' then 'dead' else 'scheduled' end;
end $$;
