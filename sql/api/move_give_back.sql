-- SPDX-License-Identifier: PostgreSQL
-- Puts jobs of a move that are on their way back into their queue, with their ids, and returns how many. For the day when the other database is lost for good: what has
-- arrived there is there, too. Errors: MR003 unknown move, 25000 not read committed, MR004 restored schema.
create or replace function millrace.move_give_back(move int)
returns bigint
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
set intervalstyle = 'iso_8601'
as $$
begin
  return millrace.move_give_back_at(clock_timestamp(), move);
end $$;
comment on function millrace.move_give_back(int) is
  'puts jobs that are on their way back into their queue';
