-- SPDX-License-Identifier: PostgreSQL
-- Changes a job that waits: queue, priority, run_at or delay, args, meta, as requeue does; null: unchanged. It keeps its id and its attempts.
-- Errors: MR003 unknown job, 22023 it does not wait, or a wrong change. Commit soon: until then no job of the same lane is delivered.
create or replace function millrace.change_job(
  id bigint,
  changes jsonb)
returns void
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
  perform millrace.change_job_at(clock_timestamp(), id, changes);
end $$;
comment on function millrace.change_job(bigint, jsonb) is
  'changes a job that waits';
