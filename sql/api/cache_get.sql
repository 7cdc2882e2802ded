-- SPDX-License-Identifier: PostgreSQL
-- The value of a key of the cache; null where there is none, or where it has expired or was deleted. Writes nothing. Never returns a value whose ttl is over by the
-- server's clock. Errors: 22023 bad argument, MR004 restored schema.
create or replace function millrace.cache_get(
  key text)
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
  return millrace.cache_get_at(clock_timestamp(), key);
end $$;
comment on function millrace.cache_get(text) is
  'the value of a key of the cache';
