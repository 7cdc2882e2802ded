-- SPDX-License-Identifier: PostgreSQL
-- How one job stands and what came of it, at the price of a few lookups: for whoever waits for its end and asks again and again. The whole
-- story is job()'s. Errors: MR003 unknown job.
create or replace function millrace.outcome(id bigint)
returns millrace.job_outcome
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
  return millrace.outcome_at(clock_timestamp(), id);
end $$;
comment on function millrace.outcome(bigint) is
  'how one job stands and what came of it';
