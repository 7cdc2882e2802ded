-- SPDX-License-Identifier: PostgreSQL
-- The workers, with the columns of the view. Errors: MR004 restored schema.
create or replace function millrace.list_workers()
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
  return millrace.list_workers_all();
end $$;
comment on function millrace.list_workers() is
  'the workers';
