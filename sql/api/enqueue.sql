-- SPDX-License-Identifier: PostgreSQL
-- Enqueues a job in the caller's transaction: its commit makes the job available, its rollback undoes it.
-- Returns the job's id. An unknown queue is created with defaults. Priority 0-99, lower runs first.
-- run_at or delay: not before. expires_in: a job nobody took by then ends as expired. ref: the caller's own id, not unique.
-- max_attempts: else the kind's retry policy, else the queue's setting. timeout: how long a handler may run.
-- unique_key: while a job of the queue with this key has not ended, no second one is made, and its id is returned: as it is
-- (on_conflict ignore), or with the new args and time where it still waits (replace). unique_for: the key is held so long after completion.
-- Waits for a transaction that enqueues the same key. ordering_key: of the jobs of an ordered queue with this key one runs at a time, in order;
-- of those of a queue with concurrency_per_key so many.
-- A queue that has reached its depth_limit takes no more, for later neither: the job goes to its overflow, or is refused.
-- batch: the job is a member of it (see batch_begin). depends_on: jobs, 1,000 at most, that have to complete before it; it is cancelled when one of them
-- ends in another way.
-- Errors: 22023 bad argument or a sealed batch, MR002 queue full, MR003 unknown batch or need, MR004 restored schema. Nothing is written then.
create or replace function millrace.enqueue(
  kind text,
  args jsonb = '{}',
  queue text = 'default',
  priority int = 50,
  run_at timestamptz = null,
  delay interval = null,
  unique_key text = null,
  ordering_key text = null,
  tenant text = null,
  ref text = null,
  max_attempts int = null,
  timeout interval = null,
  expires_in interval = null,
  meta jsonb = null,
  state bytea = null,
  blob bytea = null,
  on_conflict text = 'ignore',
  unique_for interval = null,
  batch bigint = null,
  depends_on bigint[] = null)
returns bigint
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
begin
  return millrace.enqueue_at(clock_timestamp(), kind, args, queue, priority, run_at, delay, unique_key, ordering_key, tenant, ref,
                             max_attempts, timeout, expires_in, meta, state, blob, null, on_conflict, unique_for, batch, depends_on);
end $$;
comment on function millrace.enqueue(text, jsonb, text, int, timestamptz, interval, text, text, text, text, int, interval, interval, jsonb, bytea, bytea, text, interval, bigint, bigint[]) is
  'enqueues a job in the caller''s transaction';
