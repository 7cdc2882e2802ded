-- SPDX-License-Identifier: PostgreSQL
-- Puts jobs of a queue that are on their way elsewhere back into it, with their ids, and returns how many. For the day when the other database is lost for
-- good: what has arrived there is there, too. Errors: MR003 unknown queue, 25000 not read committed, MR004 restored schema.
create or replace function millrace.move_give_back(queue text)
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
  return millrace.move_give_back_at(clock_timestamp(), queue);
end $$;
comment on function millrace.move_give_back(text) is
  'puts jobs that are on their way back into their queue';
