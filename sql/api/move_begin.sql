-- SPDX-License-Identifier: PostgreSQL
-- Begins to move a queue to the place that the other database's move_target() names, or goes on where an earlier mover stopped. to_queue: its name there, the
-- same if null. Returns {"move", "origin", "ordered", "fair"} and what is left here: available, scheduled, retrying, running, dead, moving (taken, and not known to have
-- arrived), and in all moved and merged. Takes nothing yet. Errors: 22023 bad argument or the queue itself, MR003 unknown queue, MR004 restored schema.
create or replace function millrace.move_begin(
  queue text,
  place text,
  to_queue text = null)
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
  return millrace.move_begin_at(clock_timestamp(), queue, place, coalesce(to_queue, queue));
end $$;
comment on function millrace.move_begin(text, text, text) is
  'begins to move a queue to another database, or goes on with it';
