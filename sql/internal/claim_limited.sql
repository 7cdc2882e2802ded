-- SPDX-License-Identifier: PostgreSQL
-- Takes jobs of a queue with limits, for claim_take: as many as its limits leave. Claims of such a queue come one after the other, under its
-- lock (class 12). Whoever has it sees all that was committed before, and counts in the logs: nothing is counted up and down, so nothing
-- has to be put right after a crash.
--   1. What is counted as running can only become less while the lock is held: jobs are taken under it alone. So no limit is ever exceeded.
--   2. A claim that cannot have the lock in time ends with nothing: an open transaction that has claimed keeps the others waiting no longer.
--   3. Lock order: a queue (class 12) before its lanes (class 7).
-- p_lane: the queue's only lane; null where it has several.
-- limited tells claim_batch which limit there is; without jobs, until is when the rate allows the next one (null: when a job ends).
create or replace function millrace.claim_limited(p_now timestamptz, p_queue_id int, p_worker text, p_max_jobs int, p_lease_for interval,
                                                  p_with_state boolean, p_part int, p_lane int)
returns millrace.taken
language plpgsql
as $$
declare
  v_begun timestamptz := clock_timestamp();
  v_queue millrace.queue;
  v_taken millrace.taken;
  v_room  bigint := p_max_jobs;
  v_rate  record;
  v_word  text := 'concurrency';
begin
  if not pg_try_advisory_xact_lock(1297219596, p_queue_id) then
    if not millrace.limit_wait(p_queue_id) then
      v_taken.limited := v_word;
      return v_taken;
    end if;
    p_now := p_now + (clock_timestamp() - v_begun);      -- what counts is when a job is started, not when somebody asked for it
  end if;
  select q.*
    into v_queue
    from millrace.queue q
   where q.queue_id = p_queue_id
     and q.paused_at is null;
  if not found then
    return null;
  end if;
  if v_queue.concurrency_limit is not null then
    v_room := least(v_room, v_queue.concurrency_limit - millrace.queue_running(p_now, v_queue, v_queue.concurrency_limit - p_max_jobs));
  end if;
  if v_queue.rate_limit is not null then
    v_word := case when v_queue.concurrency_limit is null then 'rate' else v_word end;
    v_rate := millrace.rate_room(p_now, v_queue);
    p_now := v_rate.at;
    v_taken.until := case when v_room > 0 then v_rate.again end;
    v_room := least(v_room, v_rate.room);
  end if;
  if v_room <= 0 then
    v_taken.limited := v_word;
    return v_taken;
  end if;
  v_taken := null;
  if v_room = 1 and pg_current_xact_id_if_assigned() is null and pg_try_advisory_xact_lock(1297219591, p_lane) then
    v_taken := millrace.lane_take_one(p_now, pg_sequence_last_value('millrace.seg_seq'::regclass)::int, p_lane, 1, p_worker,
                                      coalesce(p_lease_for, v_queue.lease_time), p_lease_for is not null);
  end if;
  if v_taken.n is null then
    v_taken := millrace.claim_search(p_now, p_queue_id, p_worker, v_room::int, coalesce(p_lease_for, v_queue.lease_time),
                                     p_lease_for is not null, p_with_state, p_part, false);
  end if;
  if v_taken.n > 0 then
    v_taken.limited := v_word;
    if v_queue.rate_limit is not null then
      insert into millrace.started (slot, queue_id, started_at, started_total, started_n)
      values (millrace.started_slot(p_now, v_rate.period), p_queue_id, p_now, v_rate.total + v_taken.n, v_taken.n);
    end if;
  end if;
  return v_taken;
end $$;

-- Waits a moment for the lock of a queue with limits. False: it could not be had.
create or replace function millrace.limit_wait(p_queue_id int)
returns boolean
language plpgsql
as $$
declare
  v_before text := current_setting('lock_timeout');
  v_wait   text := coalesce(nullif(current_setting('millrace.limit_wait', true), ''), '100ms');      -- tests set it
begin
  if v_wait = '0' then
    return false;
  end if;
  perform set_config('lock_timeout', v_wait, true);
  perform pg_advisory_xact_lock(1297219596, p_queue_id);
  perform set_config('lock_timeout', v_before, true);
  return true;
exception
  when lock_not_available or deadlock_detected then
    return false;      -- lock_timeout is what it was: the block was undone
end $$;
