-- SPDX-License-Identifier: PostgreSQL
-- Refused by this version (0A000): jobs that wait or run cannot be changed from outside yet.
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
  perform millrace.refuse_feature('resume_job');
end $$;
comment on function millrace.resume_job(bigint) is
  'refused by this version';
