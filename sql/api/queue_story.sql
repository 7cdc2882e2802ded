-- SPDX-License-Identifier: PostgreSQL
-- One queue: settings, figures as in overview, lanes (the first 100), workers, and the jobs that have been available for longest (20).
-- Errors: MR003 unknown queue, MR004 restored schema.
create or replace function millrace.queue_story(queue text)
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
  return millrace.queue_story_at(clock_timestamp(), queue);
end $$;
comment on function millrace.queue_story(text) is
  'one queue with all there is to say of it';
