-- SPDX-License-Identifier: PostgreSQL
-- Whose turn it is to carry payloads between the tables and the blob store: one daemon at a time, which keeps its turn by asking again within half a minute.
-- Returns null where it is another's, else what the names of this database's objects begin with. over: gives the turn back. Errors: 22023 bad argument, 25000 isolation level.
create or replace function millrace.offload_turn(worker text,
  over boolean = false)
returns text
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
  perform millrace.check_isolation('offload_turn');
  return millrace.offload_turn_at(clock_timestamp(), worker, coalesce(over, false));
end $$;
comment on function millrace.offload_turn(text, boolean) is
  'whether it is the caller''s turn to carry payloads to the blob store and back';
