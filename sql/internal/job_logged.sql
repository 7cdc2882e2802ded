-- SPDX-License-Identifier: PostgreSQL
-- Whether a job that was copied to the archive is still in the log, for the view jobs: in a segment that is on its way out.
create or replace function millrace.job_logged(p_id bigint)
returns boolean
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
begin
  return exists (select from millrace.job_rows(p_id) j where j.slot >= 0);
end $$;
