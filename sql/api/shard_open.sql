-- SPDX-License-Identifier: PostgreSQL
-- How many jobs of all queues have not ended: available, running, scheduled, to be retried. 0: a shard that is draining is empty; dead letters may be left. Errors: MR004.
create or replace function millrace.shard_open()
returns bigint
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
  return (select coalesce(sum(s.available + s.running + s.scheduled + s.retrying), 0)
            from millrace.stats_at(clock_timestamp(), null) s);
end $$;
comment on function millrace.shard_open() is
  'jobs that have not ended, of all queues';
