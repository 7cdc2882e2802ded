-- SPDX-License-Identifier: PostgreSQL
-- enqueue_jobs for requests that may be repeated: the first call with a key enqueues jobs (an array, or one object), and for 24 hours every other with the
-- same key and jobs returns the same ids, with again true. A call with a key that another transaction has in hand waits for its end. source: as in enqueue_jobs.
-- Errors: 22023 bad argument, MR005 the key was used for other jobs, MR002 a queue is full, 25000 not read committed, MR004 restored schema.
create or replace function millrace.enqueue_once(
  idempotency_key text,
  jobs jsonb,
  source text = null)
returns jsonb
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
  return millrace.enqueue_once_at(clock_timestamp(), idempotency_key, jobs, millrace.source_of(source));
end $$;
comment on function millrace.enqueue_once(text, jsonb, text) is
  'enqueues jobs once for a key';
