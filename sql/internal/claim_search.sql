-- SPDX-License-Identifier: PostgreSQL
-- Looks for a lane of a queue that has jobs, by priority, and takes them, for claim_take.
-- Lock order: upkeep (class 8) is never waited for here; lanes (class 7) one after the other. A lane that another claimer holds
-- is passed over for the next part, but never for a lower priority: before going down the busy lane is waited for. But never with
-- another lane in hand that turned out to be empty (p_held): two claimers would wait for each other. Then it is tried for a few milliseconds, in which whoever has it is
-- likely to commit, and the call ends with nothing.
-- A queue with limits is claimed under its own lock, so nobody else claims of its lanes: one that is busy is about to be free, because the claim before
-- gives back its locks one after the other. It is waited for in any case, but not for long: a limit may be younger than the claim that has the lane.
-- p_part: of several parts the first to look at.
create or replace function millrace.claim_search(p_now timestamptz, p_queue_id int, p_worker text, p_max_jobs int, p_lease interval,
                                                 p_own_lease boolean, p_with_state boolean, p_part int, p_held boolean)
returns millrace.taken
language plpgsql
as $$
declare
  c_lane_lock constant int := 1297219591;
  v_queue  millrace.queue;
  v_alone  boolean;
  v_taken  millrace.taken;
  v_rest   int[];
  v_lanes  int[];
  v_busy   int;
  v_lane   int;
  v_memo   text;
  v_memo_xid xid8;
begin
  select q.*
    into v_queue
    from millrace.queue q
   where q.queue_id = p_queue_id;
  v_alone := num_nonnulls(v_queue.concurrency_limit, v_queue.rate_limit, v_queue.key_limit, v_queue.tenant_rate) > 0;
  v_lane := millrace.lane_memo(v_queue);
  if v_lane is not null and pg_try_advisory_xact_lock(c_lane_lock, v_lane) then
    v_taken := millrace.lane_take(p_now, v_lane, p_max_jobs, 'r', p_worker, p_lease, p_own_lease, p_with_state);
    if v_taken.n > 0 then
      return v_taken;
    end if;
    p_held := true;
  end if;
  v_rest := millrace.lanes_of(v_queue, p_part);
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
        if not p_held then
          perform pg_advisory_xact_lock(c_lane_lock, v_busy);
        elsif not millrace.lock_try(c_lane_lock, v_busy, 10) then
          return null;
        end if;
        v_taken := millrace.lane_take(p_now, v_busy, p_max_jobs, 'r', p_worker, p_lease, p_own_lease, p_with_state);
        if v_taken.n > 0 then
          return v_taken;
        end if;
        p_held := true;
        v_busy := null;
      end if;
      exit when i > cardinality(v_lanes);
      if not pg_try_advisory_xact_lock(c_lane_lock, v_lanes[i])
         and not (v_alone and millrace.lock_soon(c_lane_lock, v_lanes[i], '100ms')) then
        v_busy := coalesce(v_busy, v_lanes[i]);
        continue;
      end if;
      v_taken := millrace.lane_take(p_now, v_lanes[i], p_max_jobs, 'r', p_worker, p_lease, p_own_lease, p_with_state);
      if v_taken.n > 0 then
        if v_queue.parts_seen > 1 then
          perform set_config('millrace.some', (v_lanes[i] & ~31)::text, false);
        elsif v_memo_xid = pg_current_xact_id() then
          perform set_config('millrace.first_lane', v_memo, false);
        end if;
        return v_taken;
      end if;
      p_held := true;
    end loop;
    exit when v_lanes = '{}';
    v_rest := v_rest[array_position(v_rest, v_lanes[cardinality(v_lanes)]) + 1 :];
  end loop;
  return null;
end $$;

-- Tries to get an advisory lock, up to so many times, half a millisecond apart. It never queues for it, so that nobody can wait in a circle.
create or replace function millrace.lock_try(p_class int, p_id int, p_times int)
returns boolean
language plpgsql
as $$
begin
  for i in 1 .. p_times loop
    if pg_try_advisory_xact_lock(p_class, p_id) then
      return true;
    end if;
    perform pg_sleep(0.0005);
  end loop;
  return false;
end $$;
