-- SPDX-License-Identifier: PostgreSQL
-- heartbeat with the time as an argument.
create or replace function millrace.heartbeat_at(p_now timestamptz, p_lease text, p_extend interval)
returns millrace.lease_state
language plpgsql
as $$
declare
  v_claim millrace.claim;
  v_until timestamptz;
begin
  perform millrace.check_interval('extend', p_extend);
  v_claim := millrace.lease_take(p_lease);
  update millrace.claim k
     set leased_till = p_now + coalesce(p_extend, k.lease_time, (select q.lease_time
                                                                   from millrace.queue q
                                                                  where q.queue_id = k.lane >> 12))
   where k.slot = v_claim.slot
     and k.lane = v_claim.lane
     and k.no = v_claim.no
  returning k.leased_till
    into v_until;
  return row(v_until, '{}'::bigint[])::millrace.lease_state;
end $$;
