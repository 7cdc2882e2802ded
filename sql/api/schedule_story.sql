-- SPDX-License-Identifier: PostgreSQL
-- One schedule: the columns of the view without the nulls, args whole, and next, its next five times; none while it is not active.
-- Errors: MR003 unknown schedule, MR004 restored schema.
create or replace function millrace.schedule_story(name text)
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
  return millrace.schedule_story_of(name);
end $$;
comment on function millrace.schedule_story(text) is
  'one schedule and its next times';
