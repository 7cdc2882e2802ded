-- SPDX-License-Identifier: PostgreSQL
-- Figures of a queue, or of all together, over the last minutes (1 to 360), from the pulse that maintain takes every ten seconds: rates a second over each
-- step, and gauges at its end. At most 180 points. Where nobody called maintain for more than ten minutes nothing is known, and is left out.
-- Errors: 22023 bad argument, MR003 unknown queue, MR004 restored schema.
create or replace function millrace.history(
  queue text = null,
  minutes int = 60)
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
  return millrace.history_at(clock_timestamp(), queue, minutes);
end $$;
comment on function millrace.history(text, int) is
  'figures over time';
