-- SPDX-License-Identifier: PostgreSQL
-- Those of some keys that have a value, with it: a row each, in the order in which they were asked for; a key that was given twice comes once, one without a value
-- does not come. At most 10,000 keys; an empty array is fine. Errors: 22023 bad argument (an array or a key that is null), MR004 restored schema.
create or replace function millrace.cache_get_many(
  keys text[])
returns setof millrace.cache_entry
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
  return query select e.* from millrace.cache_get_many_at(clock_timestamp(), keys) e;
end $$;
comment on function millrace.cache_get_many(text[]) is
  'the values of some keys of the cache';
