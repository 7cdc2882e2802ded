-- SPDX-License-Identifier: PostgreSQL
-- Enqueues a dead letter again as a fresh job of the same id: attempt 1, history kept. Returns the id. Errors: MR003 no such dead letter.
create or replace function millrace.replay(id bigint)
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
  perform millrace.at_home();
  if millrace.dead_replay(clock_timestamp(), array[id]) = 0 then
    perform millrace.refuse_unknown(format('there is no dead letter %s', coalesce(id::text, 'null')),
      'See the view millrace.dead_letters; it may have been replayed or removed already.');
  end if;
  return id;
end $$;
comment on function millrace.replay(bigint) is
  'enqueues a dead letter again';
