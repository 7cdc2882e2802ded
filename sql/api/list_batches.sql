-- SPDX-License-Identifier: PostgreSQL
-- A page of batches, newest first. filter: status, label (a part of it), limit (1 to 200, default 50), after (next of the page before).
-- Errors: 22023 bad filter or cursor, MR004 restored schema.
create or replace function millrace.list_batches(filter jsonb = '{}')
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
  return millrace.list_batches_page(filter);
end $$;
comment on function millrace.list_batches(jsonb) is
  'a page of batches, newest first';
