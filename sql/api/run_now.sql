-- SPDX-License-Identifier: PostgreSQL
-- Makes a job that is scheduled, retried later or paused available at once; one that is available stays as it is. Errors: MR003 unknown job,
-- 22023 it runs or has ended.
create or replace function millrace.run_now(id bigint)
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
  perform millrace.run_now_at(clock_timestamp(), id);
end $$;
comment on function millrace.run_now(bigint) is
  'makes a job available at once';
