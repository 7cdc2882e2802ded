-- SPDX-License-Identifier: PostgreSQL
-- heartbeat with the time as an argument.
do $do$
declare
  c_update constant text := $one$
  update millrace.claim_%s k
     set leased_till = p_now + coalesce(p_extend, k.lease_time, (select q.lease_time
                                                                   from millrace.queue q
                                                                  where q.queue_id = k.lane >> 12))
   where k.lane = v_claim.lane
     and k.no = v_claim.no
  returning k.leased_till
    into v_until;$one$;
begin
  execute format($sql$
create or replace function millrace.heartbeat_at(p_now timestamptz, p_lease text, p_extend interval)
returns millrace.lease_state
language plpgsql
as $$
declare
  v_claim millrace.claim;
  v_slot  int;      -- -1: parked
  v_until timestamptz;
begin
  perform millrace.check_interval('extend', p_extend);
  v_claim := millrace.lease_take(p_lease);
  v_slot := v_claim.slot;
  if v_slot < 0 then
    %s
  else
    %s
  end if;
  return row(v_until, millrace.cancelled_of(v_claim))::millrace.lease_state;
end $$
  $sql$, format(c_update, 'parked'), millrace.by_leaf('v_slot', c_update));
end $do$;

-- The ids of the open jobs of a claim that were cancelled.
create or replace function millrace.cancelled_of(p_claim millrace.claim)
returns bigint[]
language plpgsql
as $$
declare
  v_stopped bigint[] := millrace.marks_of(p_claim);
begin
  return case
           when v_stopped is null then '{}'
           else array(select coalesce(p_claim.job_ids[u.ord], u.pos)
                        from unnest(p_claim.positions) with ordinality u(pos, ord)
                       where u.pos = any (v_stopped)
                         and (p_claim.outcome is null or substr(p_claim.outcome, u.ord::int, 1) = 'o')
                       order by 1)
         end;
end $$;
