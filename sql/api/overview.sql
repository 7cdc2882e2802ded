-- SPDX-License-Identifier: PostgreSQL
-- All queues with their figures, health and totals, and how the log is, for pages that look once a second. Its cost depends on the number of queues and
-- lanes alone: delayed jobs and dead letters are counted up to 1,000 a queue, more are known as of the last count by maintain. wait and run are percentiles
-- in seconds over the newest finished claims, at most 1,000 of a queue and about 4,000 of all (at least 50 of each): a claim knows the sums over its jobs
-- only, so each job counts with the average of its claim. Totals only grow, as the ledger of depth has them; they begin anew where a database
-- was restored. enqueued_total counts what came into the log: new jobs, ones whose time has come, ones that a worker gave back; not retries.
-- Errors: MR004 restored schema.
create or replace function millrace.overview()
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
  return millrace.overview_at(clock_timestamp());
end $$;
comment on function millrace.overview() is
  'all queues and the log at a glance';
