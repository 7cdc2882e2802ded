-- SPDX-License-Identifier: PostgreSQL
-- Sets a job that waits aside until resume_job. Errors: MR003 unknown job, 22023 it does not wait. Commit soon: until then no job of the same
-- lane is delivered.
create or replace function millrace.pause_job(id bigint)
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
  perform millrace.pause_job_at(clock_timestamp(), id);
end $$;
comment on function millrace.pause_job(bigint) is
  'sets a job aside';
