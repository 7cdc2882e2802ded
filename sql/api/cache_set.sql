-- SPDX-License-Identifier: PostgreSQL
-- Sets a key of the cache to a JSON value, for ttl from now on: there is no entry without an end. What was there before is replaced, its ttl too. Belongs to
-- the caller's transaction: others see it when that commits. Two sessions that set one key do not wait for each other; the call that began last wins.
-- Keys have 1 to 16,384 bytes, values at most 16 MiB. Errors: 22023 bad argument (a ttl that is null, zero, negative or over 1000 years; a null value), MR004.
create or replace function millrace.cache_set(
  key text,
  value jsonb,
  ttl interval)
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
  perform millrace.cache_set_at(clock_timestamp(), key, value, ttl);
end $$;
comment on function millrace.cache_set(text, jsonb, interval) is
  'sets a key of the cache, for a time';
