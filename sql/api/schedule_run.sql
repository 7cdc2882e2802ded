-- SPDX-License-Identifier: PostgreSQL
-- Enqueues the job of a schedule at once, in the caller's transaction, active or not; its occurrences stay as they are. Returns the job's
-- id. Errors: MR003 unknown schedule; 22023 its args are larger than the queue takes; MR002 its queue is full.
create or replace function millrace.schedule_run(name text)
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
declare
  v_now timestamptz := clock_timestamp();
begin
  perform millrace.at_home();
  return millrace.schedule_enqueue(v_now, millrace.schedule_known(name), v_now);
end $$;
comment on function millrace.schedule_run(text) is
  'enqueues the job of a schedule at once';
