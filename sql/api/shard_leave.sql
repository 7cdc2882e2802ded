-- SPDX-License-Identifier: PostgreSQL
-- Takes this database out of its set, which must be told, too: `millrace shard remove` does both, and sees to it that no job is left. Jobs keep their ids. Errors: 22023 no shard;
-- MR004.
create or replace function millrace.shard_leave()
returns void
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
  delete from millrace.shard_place;
  if not found then
    perform millrace.refuse('this database is not a shard', 'There is nothing to leave.');
  end if;
end $$;
comment on function millrace.shard_leave() is
  'takes this database out of its set of shards';
