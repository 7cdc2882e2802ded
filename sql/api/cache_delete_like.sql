-- SPDX-License-Identifier: PostgreSQL
-- Deletes every key that is like a pattern, and returns how many had a value. As in SQL: % stands for any text, _ for one character, and a backslash before one of the three
-- takes its meaning away; all else, quotes too, stands for itself; case counts. Looks at every entry of the cache: not for each request.
-- Errors: 22023 bad argument (a pattern that is null or empty, or ends with a lone backslash), MR004 restored schema.
create or replace function millrace.cache_delete_like(
  pattern text)
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
  return millrace.cache_delete_like_at(clock_timestamp(), pattern);
end $$;
comment on function millrace.cache_delete_like(text) is
  'deletes the keys of the cache that are like a pattern';
