-- SPDX-License-Identifier: PostgreSQL
-- A page of dead letters. filter: queue, kind, error (a part of it), cause, limit (1 to 200, default 50), after (next of the page before). Returns jobs with
-- the columns of the view dead_letters, next and complete as list_jobs does. In a queue the last that died come first, in all queues the largest ids.
-- Errors: 22023 bad filter or cursor, MR003 unknown queue, MR004 restored schema.
create or replace function millrace.list_dead(filter jsonb = '{}')
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
  return millrace.list_dead_page(filter);
end $$;
comment on function millrace.list_dead(jsonb) is
  'a page of dead letters, newest first';
