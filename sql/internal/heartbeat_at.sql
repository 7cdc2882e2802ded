-- SPDX-License-Identifier: PostgreSQL
-- heartbeat with the time as an argument.
create or replace function millrace.heartbeat_at(p_now timestamptz, p_lease text, p_extend interval)
returns millrace.lease_state
language plpgsql
as $$
declare
  v_key   record := millrace.lease_parts(p_lease);
  v_until timestamptz;
begin
  perform millrace.at_home();
  perform millrace.check_interval('extend', p_extend);
  update millrace.claim k
     set leased_till = p_now + coalesce(p_extend, k.lease_time, (select q.lease_time
                                                                   from millrace.queue q
                                                                  where q.queue_id = k.lane >> 12))
   where k.slot = any (array[v_key.slot, (v_key.slot + 1) % 16, -1])
     and k.lane = v_key.lane
     and k.no = v_key.no
     and k.token = v_key.token
     and k.status = 'r'
  returning k.leased_till
    into v_until;
  if not found then
    perform millrace.refuse_lease(p_lease);
  end if;
  return row(v_until, '{}'::bigint[])::millrace.lease_state;
end $$;
