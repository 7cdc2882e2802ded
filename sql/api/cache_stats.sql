-- SPDX-License-Identifier: PostgreSQL
-- Figures of the cache: total keys, of which valid ones have a value and expired ones wait to be swept; bytes on disk. Counted while the cache is
-- small (exact), otherwise estimated from 256 pages taken at random: a look costs the same however large it is. Errors: MR004 restored schema.
create or replace function millrace.cache_stats()
returns millrace.cache_figures
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
  return millrace.cache_stats_at(clock_timestamp());
end $$;
comment on function millrace.cache_stats() is
  'figures of the cache';
