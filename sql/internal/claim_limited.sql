-- SPDX-License-Identifier: PostgreSQL
-- Takes jobs of a queue with limits, for claim_take: as many as its limits leave. Claims of such a queue come one after the other, under its
-- lock (class 12). Whoever has it sees all that was committed before, and counts in the logs: nothing is counted up and down, so nothing
-- has to be put right after a crash.
--   1. What is counted as running can only become less while the lock is held: jobs are taken under it alone. So no limit is ever exceeded.
--   2. A claim that cannot have the lock in time ends with nothing: an open transaction that has claimed keeps the others waiting no longer.
--   3. Lock order: a queue (class 12) before its lanes (class 7).
-- p_lane: the queue's only lane; null where it has several.
-- limited tells claim_batch and claim_packs which limit there is; without jobs, until is when a rate allows the next one, or at once, where a claim has let
-- jobs in for the next one (null: when a job ends). Limits of each key and tenant are kept by take_odd, see lines_claim.
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
  v_inner boolean;
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
  v_inner := v_queue.key_limit is not null or v_queue.tenant_rate is not null;
  if v_queue.concurrency_limit is not null or v_queue.key_limit is not null then
    v_room := least(v_room, coalesce(v_queue.concurrency_limit, 2147483647)
                            - millrace.queue_running(p_now, v_queue, case when v_queue.key_limit is null then v_queue.concurrency_limit - p_max_jobs else 0 end));
  end if;
  if v_queue.concurrency_limit is null and v_queue.key_limit is null then
    v_word := 'rate';
  end if;
  if v_queue.rate_limit is not null or v_queue.tenant_rate is not null then
    v_rate := millrace.rate_room(p_now, p_queue_id, '', coalesce(v_queue.rate_limit, v_queue.tenant_rate));
    p_now := v_rate.at;
    if v_queue.rate_limit is not null then
      v_taken.until := case when v_room > 0 then v_rate.again end;
      v_room := least(v_room, v_rate.room);
    end if;
  end if;
  if v_room <= 0 then
    v_taken.limited := v_word;
    return v_taken;
  end if;
  v_taken := null;
  if v_room = 1 and not v_inner and pg_current_xact_id_if_assigned() is null and pg_try_advisory_xact_lock(1297219591, p_lane) then
    v_taken := millrace.lane_take_one(p_now, pg_sequence_last_value('millrace.seg_seq'::regclass)::int, p_lane, 1, p_worker,
                                      coalesce(p_lease_for, v_queue.lease_time), p_lease_for is not null);
  end if;
  if v_taken.n is null then
    v_taken := millrace.claim_search(p_now, p_queue_id, p_worker, v_room::int, coalesce(p_lease_for, v_queue.lease_time),
                                     p_lease_for is not null, p_with_state,
                                     case when v_inner then least(v_queue.part_count, 31) else p_part end, false);
  end if;
  if v_inner then
    v_taken := millrace.claim_inner(p_now, v_queue, v_taken, v_room::int, v_word);
  end if;
  if v_taken.n > 0 then
    v_taken.limited := v_word;
    if v_queue.rate_limit is not null or v_queue.tenant_rate is not null then
      insert into millrace.started (slot, queue_id, share, started_at, started_total, started_n)
      values (millrace.started_slot(p_now, v_rate.period), p_queue_id, '', p_now, v_rate.total + v_taken.n, v_taken.n);
    end if;
  end if;
  return v_taken;
end $$;

-- The rest of a claim of a queue with limits for each key or tenant: notes what it started of each tenant, and lets others in where there is room. Not where it
-- got all it wanted of those that were let in before: there may be more of them. Nothing taken: says when to come again.
create or replace function millrace.claim_inner(p_now timestamptz, p_queue millrace.queue, p_taken millrace.taken, p_room int, p_word text)
returns millrace.taken
language plpgsql
as $$
declare
  c_in constant int := 1000;      -- jobs let in by one claim
  v_n  int := coalesce(p_taken.n, 0);
  v_in record;
begin
  if p_queue.tenant_rate is not null and p_taken.jobs is not null then
    insert into millrace.started (slot, queue_id, share, started_at, started_total, started_n)
    select millrace.started_slot(r.at, r.period), p_queue.queue_id, 't' || t.tenant, r.at, r.total + t.n, t.n
      from (select j.tenant, count(*) as n
              from unnest(p_taken.jobs) j
             where j.tenant is not null
             group by 1) t
      join millrace.tenants_room(p_now, p_queue.queue_id, array(select distinct j.tenant from unnest(p_taken.jobs) j where j.tenant is not null),
                                 p_queue.tenant_rate) r on r.tenant = t.tenant;
  end if;
  if v_n < p_room or p_taken.lane & 31 <> least(p_queue.part_count, 31) then
    v_in := millrace.lines_let_in(p_now, p_queue, case when v_n > 0 then p_taken.lane else 2147483647 end, c_in);
    if v_n = 0 and v_in.left_over then
      p_taken := null;
      p_taken.limited := p_word;
      p_taken.until := case when v_in.n > 0 then p_now else v_in.again end;
    end if;
  end if;
  return p_taken;
end $$;

-- Waits a moment for the lock of a queue with limits. False: it could not be had.
create or replace function millrace.limit_wait(p_queue_id int)
returns boolean
language plpgsql
as $$
declare
  v_wait text := coalesce(nullif(current_setting('millrace.limit_wait', true), ''), '100ms');      -- tests set it
begin
  return v_wait <> '0' and millrace.lock_soon(1297219596, p_queue_id, v_wait);
end $$;

-- Waits for a lock, but not for long. False: it could not be had.
create or replace function millrace.lock_soon(p_class int, p_id int, p_wait text)
returns boolean
language plpgsql
as $$
declare
  v_before text := current_setting('lock_timeout');
begin
  perform set_config('lock_timeout', p_wait, true);
  perform pg_advisory_xact_lock(p_class, p_id);
  perform set_config('lock_timeout', v_before, true);
  return true;
exception
  when lock_not_available or deadlock_detected then
    return false;      -- lock_timeout is what it was: the block was undone
end $$;
