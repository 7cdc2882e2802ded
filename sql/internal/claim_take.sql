-- SPDX-License-Identifier: PostgreSQL
-- Takes jobs of a queue; claim and claim_batch read them. Here the usual case: one priority, and no look at parts that others serve.
-- Everything else is claim_search's, claim_limited's where the queue has limits, and claim_fair's where it has tenants.
-- A statement costs ten microseconds and an expression one, each time: hence one statement for all that a claim has to know first.
create or replace function millrace.claim_take(p_now timestamptz, p_queue text, p_worker text, p_max_jobs int, p_lease_for interval,
                                               p_with_state boolean)
returns millrace.taken
language plpgsql
as $$
declare
  v_queue record;
  v_lane  int;
  v_taken millrace.taken;
  v_held  boolean := false;
begin
  -- What check_claim checks, in one expression: it is called where something is not as usual.
  if (p_max_jobs between 1 and 10000 and p_lease_for is null and coalesce(octet_length(p_worker), 0) <= 200
      and current_setting('transaction_isolation') = 'read committed' and current_setting('transaction_read_only') = 'off'
      and current_setting('millrace.at_home', true) = 'millrace.home'::regclass::oid::text) is not true then
    perform millrace.check_claim(p_worker, p_max_jobs, p_lease_for);
  end if;
  -- A session has a part of its own; but now and then it begins with any, because where there are fewer sessions than parts the
  -- others would wait as long as those have jobs.
  select q.queue_id as id, q.parts_seen as parts, l.base, l.base = l.last and not (q.limited or q.has_tenants) as one, q.limited, q.has_tenants,
         l.base = l.last and q.parts_seen = 1 as only,
         coalesce(p_lease_for, q.lease_time) as lease, coalesce(p_worker, 'pid ' || pg_backend_pid()) as worker,
         case when random() < 0.1 then floor(random() * q.parts_seen)::int else pg_backend_pid() end as part,
         abs(date_part('epoch', p_now) * 1000 - coalesce(pg_sequence_last_value('millrace.upkeep_clock'::regclass), 0)) >= 1000 as upkeep,
         current_setting('millrace.some', true) as some, current_setting('millrace.many', true) as many
    into v_queue
    from (select q.*, q.concurrency_limit is not null or q.rate_limit is not null or q.key_limit is not null or q.tenant_rate is not null as limited
            from millrace.queue q) q
   cross join lateral (select min(l.lane) as base, max(l.lane) as last
                         from millrace.lane l
                        where l.lane >= q.queue_id << 12
                          and l.lane < (q.queue_id + 1) << 12) l
   where q.queue_name = p_queue
     and q.parent_id is null
     and q.paused_at is null;
  if not found then
    return null;
  end if;
  if v_queue.upkeep then
    perform millrace.upkeep_slice(p_now);
  end if;
  -- With several parts only where the last claim found jobs (some): a lane that turns out to be empty stays locked, and with it in hand
  -- no other may be waited for. One job is not looked for where the last claim took more (many).
  for i in 1 .. case when v_queue.one and (v_queue.parts = 1 or v_queue.some = v_queue.base::text) then v_queue.parts else 0 end loop
    v_lane := v_queue.base + (v_queue.part + i) % v_queue.parts;
    continue when not pg_try_advisory_xact_lock(1297219591, v_lane);
    v_taken := case when pg_current_xact_id_if_assigned() is null and (p_max_jobs = 1 or (v_queue.many = v_queue.base::text) is not true) then
                 millrace.lane_take_one(p_now, pg_sequence_last_value('millrace.seg_seq'::regclass)::int, v_lane, p_max_jobs, v_queue.worker,
                                        v_queue.lease, p_lease_for is not null)
               end;
    if v_taken.n is null then
      v_taken := millrace.lane_take(p_now, v_lane, p_max_jobs, 'r', v_queue.worker, v_queue.lease, p_lease_for is not null, p_with_state);
      if p_max_jobs > 1 and (coalesce(v_taken.n, 0) > 1) <> (coalesce(v_queue.many, '') = v_queue.base::text) then
        perform set_config('millrace.many', case when v_taken.n > 1 then v_queue.base::text else '' end, false);
      end if;
    end if;
    if v_taken.n > 0 then
      return v_taken;
    elsif v_queue.parts = 1 then
      return null;
    end if;
    perform set_config('millrace.some', '', false);
    v_held := true;
    exit;
  end loop;
  if v_queue.limited then
    return millrace.claim_limited(p_now, v_queue.id, v_queue.worker, p_max_jobs, p_lease_for, p_with_state, v_queue.part,
                                  case when v_queue.only then v_queue.base end);
  end if;
  if v_queue.has_tenants then
    return millrace.claim_fair(p_now, v_queue.id, v_queue.worker, p_max_jobs, p_lease_for, p_with_state, v_queue.part);
  end if;
  return millrace.claim_search(p_now, v_queue.id, v_queue.worker, p_max_jobs, v_queue.lease, p_lease_for is not null, p_with_state, v_queue.part,
                               v_held);
end $$;
