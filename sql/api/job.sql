-- SPDX-License-Identifier: PostgreSQL
-- One job's whole story: status, payload, attempts with workers, times and errors, result. Of state and blob the size is told and the first 16 KiB are
-- shown, as JSON, text or hex: {"bytes", "format", "value", "cut"}. Errors: MR003 unknown job.
create or replace function millrace.job(id bigint)
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
  return millrace.job_story(id);
end $$;
comment on function millrace.job(bigint) is
  'one job''s whole story';
