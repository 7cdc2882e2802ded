-- SPDX-License-Identifier: PostgreSQL
-- Takes jobs of a queue for claim_at, which reads them: looks for a lane that has some and moves its cursor.
-- Lock order: upkeep (class 8) is never waited for here; lanes (class 7) one after the other. A lane that another claimer holds
-- is passed over for the next part, but never for a lower priority: before going down the busy lane is waited for. But never with
-- another lane in hand that turned out to be empty: two claimers would wait for each other. Then the call ends with nothing.
create or replace function millrace.claim_take(p_now timestamptz, p_queue text, p_worker text, p_max_jobs int, p_lease_for interval,
                                               p_with_state boolean)
returns millrace.taken
language plpgsql
as $$
declare
  c_lane_lock constant int := 1297219591;
  v_queue  millrace.queue;
  v_worker text := coalesce(p_worker, 'pid ' || pg_backend_pid());
  v_lease  interval;
  v_taken  millrace.taken;
  v_rest   int[];
  v_lanes  int[];
  v_busy   int;
  v_held   boolean := false;
  v_lane   int;
  v_memo   text;
  v_memo_xid xid8;
begin
  -- What check_claim checks, in one expression: it is called where something is not as usual.
  if (p_max_jobs between 1 and 10000 and p_lease_for is null and coalesce(octet_length(p_worker), 0) <= 200
      and current_setting('transaction_isolation') = 'read committed' and current_setting('transaction_read_only') = 'off'
      and current_setting('millrace.at_home', true) = 'millrace.home'::regclass::oid::text) is not true then
    perform millrace.check_claim(p_worker, p_max_jobs, p_lease_for);
  end if;
  select q.*
    into v_queue
    from millrace.queue q
   where q.queue_name = p_queue;
  if not found or v_queue.paused_at is not null then
    return null;
  end if;
  if abs(date_part('epoch', p_now) * 1000 - coalesce(pg_sequence_last_value('millrace.upkeep_clock'::regclass), 0)) >= 1000 then
    perform millrace.upkeep_slice(p_now);
  end if;
  v_lease := coalesce(p_lease_for, v_queue.lease_time);
  v_lane := millrace.lane_memo(v_queue);
  if v_lane is not null and pg_try_advisory_xact_lock(c_lane_lock, v_lane) then
    v_taken := millrace.lane_take(p_now, v_lane, p_max_jobs, 'r', v_worker, v_lease, p_lease_for is not null, p_with_state);
    if v_taken.n > 0 then
      return v_taken;
    end if;
    v_held := true;
  end if;
  v_rest := millrace.lanes_of(v_queue, pg_backend_pid());
  while v_rest <> '{}' loop
    -- As many as one priority has parts: usually the first that may have jobs has some, and those below need not be looked at.
    v_lanes := v_rest;
    if cardinality(v_rest) > 1 then
      select f.lanes, f.memo, f.memo_xid
        into v_lanes, v_memo, v_memo_xid
        from millrace.lanes_first(v_queue, v_rest) f;
    end if;
    for i in 1 .. cardinality(v_lanes) + 1 loop
      if v_busy is not null and v_lanes[i] >> 5 is distinct from v_busy >> 5 then
        if v_held then
          return null;
        end if;
        perform pg_advisory_xact_lock(c_lane_lock, v_busy);
        v_taken := millrace.lane_take(p_now, v_busy, p_max_jobs, 'r', v_worker, v_lease, p_lease_for is not null, p_with_state);
        if v_taken.n > 0 then
          return v_taken;
        end if;
        v_held := true;
        v_busy := null;
      end if;
      exit when i > cardinality(v_lanes);
      if not pg_try_advisory_xact_lock(c_lane_lock, v_lanes[i]) then
        v_busy := coalesce(v_busy, v_lanes[i]);
        continue;
      end if;
      v_taken := millrace.lane_take(p_now, v_lanes[i], p_max_jobs, 'r', v_worker, v_lease, p_lease_for is not null, p_with_state);
      if v_taken.n > 0 then
        if v_memo_xid = pg_current_xact_id() then
          perform set_config('millrace.first_lane', v_memo, false);
        end if;
        return v_taken;
      end if;
      v_held := true;
    end loop;
    exit when v_lanes = '{}';
    v_rest := v_rest[array_position(v_rest, v_lanes[cardinality(v_lanes)]) + 1 :];
  end loop;
  return null;
end $$;
