-- SPDX-License-Identifier: PostgreSQL
-- Lets a paused job go on: at the time it was due, at once where that has passed. Errors: MR003 unknown job, 22023 it is not paused.
create or replace function millrace.resume_job(id bigint)
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
  perform millrace.resume_job_at(clock_timestamp(), id);
end $$;
comment on function millrace.resume_job(bigint) is
  'lets a paused job go on';
