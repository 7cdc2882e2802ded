-- SPDX-License-Identifier: PostgreSQL
-- The schedules, with the columns of the view, and next: the next three times of each that is active (of more than a hundred, the next one).
-- Errors: MR004 restored schema.
create or replace function millrace.list_schedules()
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
  return millrace.list_schedules_at(clock_timestamp());
end $$;
comment on function millrace.list_schedules() is
  'the schedules and their next times';
