-- SPDX-License-Identifier: PostgreSQL
-- One row a queue: OK, WARNING or CRITICAL by its settings warn_depth and critical_depth, with the count and the age of the oldest, and what
-- captures into it have missed; and rows with queue null for what concerns the log: a full ring and the lanes that pin it, a transaction that holds segments.
create or replace function millrace.health()
returns setof millrace.queue_health
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
      from millrace.health_at(clock_timestamp());
end $$;
comment on function millrace.health() is
  'health of queues and of the log';
