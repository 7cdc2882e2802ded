-- SPDX-License-Identifier: PostgreSQL
-- Which database this is, for the one that a queue is moved from: {"place", "database", "depth", "known"}; known: the queue is there already.
-- Errors: 22023 bad argument, MR004 restored schema.
create or replace function millrace.move_target(queue text)
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
  perform millrace.at_home();
  perform millrace.check_name('queue', queue);
  return jsonb_build_object('place', millrace.place(), 'database', current_database(), 'depth', coalesce(millrace.depth(queue), 0),
                            'known', exists (select from millrace.queue q where q.queue_name = queue and q.parent_id is null));
end $$;
comment on function millrace.move_target(text) is
  'which database this is, for a queue that is to be moved here';
