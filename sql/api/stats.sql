-- SPDX-License-Identifier: PostgreSQL
-- Figures of one queue, or of all. Delayed jobs and dead letters are exact up to 10,000 a queue, above that as of the last count by maintain.
-- What happened in the last hour is known up to maintain's last round. An unknown queue gives no row.
-- A queue's available, running, scheduled, retrying and dead are of one moment: a job that moves between them meanwhile is in one of them.
create or replace function millrace.stats(queue text = null)
returns setof millrace.queue_stats
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
  return query
    select *
      from millrace.stats_at(clock_timestamp(), queue);
end $$;
comment on function millrace.stats(text) is
  'figures of queues';
