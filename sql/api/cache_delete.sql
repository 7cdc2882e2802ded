-- SPDX-License-Identifier: PostgreSQL
-- Deletes a key of the cache. True: it had a value. Where it had none nothing is written. Errors: 22023 bad argument, MR004 restored schema.
create or replace function millrace.cache_delete(
  key text)
returns boolean
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
  return millrace.cache_delete_at(clock_timestamp(), key);
end $$;
comment on function millrace.cache_delete(text) is
  'deletes a key of the cache';
