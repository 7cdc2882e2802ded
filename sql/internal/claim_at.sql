-- SPDX-License-Identifier: PostgreSQL
-- claim with the time as an argument.
-- Lock order: upkeep (class 8) is never waited for here; lanes (class 7) one after the other. A lane that another claimer holds
-- is passed over for the next part, but never for a lower priority: before going down the busy lane is waited for. But never with
-- another lane in hand that turned out to be empty: two claimers would wait for each other. Then the call ends with nothing.
create or replace function millrace.claim_at(p_now timestamptz, p_queue text, p_worker text, p_max_jobs int, p_lease_for interval,
                                             p_with_state boolean)
returns setof millrace.claimed_job
language plpgsql
as $$
declare
  c_lane_lock constant int := 1297219591;
  v_queue  millrace.queue;
  v_worker text := coalesce(p_worker, 'pid ' || pg_backend_pid());
  v_lease  interval;
  v_rest   int[];
  v_lanes  int[];
  v_busy   int;
  v_held   boolean := false;
  v_lane   int;
  v_memo   text;
  v_memo_xid xid8;
begin
  perform millrace.check_claim(p_worker, p_max_jobs, p_lease_for);
  select q.*
    into v_queue
    from millrace.queue q
   where q.queue_name = p_queue;
  if not found or v_queue.paused_at is not null then
    return;
  end if;
  perform millrace.upkeep_slice(p_now);
  v_lease := coalesce(p_lease_for, v_queue.lease_time);
  v_lane := millrace.lane_memo(v_queue);
  if v_lane is not null and pg_try_advisory_xact_lock(c_lane_lock, v_lane) then
    return query
      select *
        from millrace.lane_take(p_now, v_lane, p_max_jobs, 'r', v_worker, v_lease, p_lease_for is not null, p_with_state);
    if found then
      return;
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
          return;
        end if;
        perform pg_advisory_xact_lock(c_lane_lock, v_busy);
        return query
          select *
            from millrace.lane_take(p_now, v_busy, p_max_jobs, 'r', v_worker, v_lease, p_lease_for is not null, p_with_state);
        if found then
          return;
        end if;
        v_held := true;
        v_busy := null;
      end if;
      exit when i > cardinality(v_lanes);
      if not pg_try_advisory_xact_lock(c_lane_lock, v_lanes[i]) then
        v_busy := coalesce(v_busy, v_lanes[i]);
        continue;
      end if;
      return query
        select *
          from millrace.lane_take(p_now, v_lanes[i], p_max_jobs, 'r', v_worker, v_lease, p_lease_for is not null, p_with_state);
      if found then
        if v_memo_xid = pg_current_xact_id() then
          perform set_config('millrace.first_lane', v_memo, false);
        end if;
        return;
      end if;
      v_held := true;
    end loop;
    exit when v_lanes = '{}';
    v_rest := v_rest[array_position(v_rest, v_lanes[cardinality(v_lanes)]) + 1 :];
  end loop;
end $$;
