-- SPDX-License-Identifier: PostgreSQL
-- What a metrics page needs of the database, in one call: queues as in overview, without percentiles, segments by state, pinned segments by queue, the age
-- of the oldest snapshot, sizes, how long each duty took last, what was removed; keys of the cache, keys of the rate limiter and locks
-- with a lease, the last two counted up to a thousand. Errors: MR004 restored schema.
create or replace function millrace.metrics()
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
  return millrace.metrics_at(clock_timestamp());
end $$;
comment on function millrace.metrics() is
  'what a metrics page needs';
