-- SPDX-License-Identifier: PostgreSQL
-- Begins to copy the jobs of a queue to the place that the other database's move_target() names, from now on, or goes on with it. share_percent: of all tenants a part, in
-- percent, always the same ones; tenant: one alone. Both can be changed with another call. move_take() and move_done() do the rest, as for a move; the jobs stay.
-- Returns {"move", "origin", "mirrored", "moving", "cut"}; cut: how often the log was gone before it was read.
-- Errors: 22023 bad argument or the queue itself, MR003 unknown queue, MR004 restored schema.
create or replace function millrace.shadow_begin(
  queue text,
  place text,
  to_queue text = null,
  share_percent real = 100,
  tenant text = null)
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
  return millrace.shadow_begin_at(clock_timestamp(), queue, place, coalesce(to_queue, queue), share_percent, tenant);
end $$;
comment on function millrace.shadow_begin(text, text, text, real, text) is
  'begins to copy the jobs of a queue to another database, or goes on with it';
