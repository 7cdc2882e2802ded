-- SPDX-License-Identifier: PostgreSQL
-- Completes jobs of a lease: all that are still open, or those in ids. result is kept with each of them for the retention.
-- Returns how many. Inside the caller's transaction the completion and the caller's own writes are one.
-- Errors: 22023 a result of more than 64 MiB, MR001 lost lease or job finished already, MR003 an id that is not in the lease. Nothing is changed then.
create or replace function millrace.complete(lease text,
  ids bigint[] = null,
  result jsonb = null)
returns int
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
  return millrace.complete_at(clock_timestamp(), lease, ids, result);
end $$;
comment on function millrace.complete(text, bigint[], jsonb) is
  'completes jobs of a lease';
