-- SPDX-License-Identifier: PostgreSQL
-- A batch of a move has arrived: the other database's move_arrive() returned, and committed. arrived: what it said. Returns how many jobs are
-- forgotten here; 0 where it was said before. Errors: 22023 a batch that was not taken, MR003 unknown move, MR004 restored schema.
create or replace function millrace.move_done(
  move int,
  batch bigint,
  arrived jsonb = null)
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
  return millrace.move_done_at(clock_timestamp(), move, batch, arrived);
end $$;
comment on function millrace.move_done(int, bigint, jsonb) is
  'forgets a batch that has arrived elsewhere';
