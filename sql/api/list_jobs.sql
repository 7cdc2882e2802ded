-- SPDX-License-Identifier: PostgreSQL
-- A page of jobs, newest first. filter: queue, status, kind, tenant, ref, source, error (a part of it), id, limit (1 to 200, default 50), after (next of the page
-- before). Returns jobs with the columns of the view jobs, without args and meta over 2 KB (args_cut, meta_cut), next to go on with, null at the end, and
-- complete. Each call looks at a bounded number of rows: jobs may be few, or none, though complete is false; then go on with next.
-- Newest first means by position: a job that is tried again is as new as its last try. What runs comes by the time of its claim.
-- Errors: 22023 bad filter or cursor, MR003 unknown queue, MR004 restored schema.
create or replace function millrace.list_jobs(filter jsonb = '{}')
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
  return millrace.list_jobs_page(clock_timestamp(), filter);
end $$;
comment on function millrace.list_jobs(jsonb) is
  'a page of jobs, newest first';
