-- SPDX-License-Identifier: PostgreSQL
-- Gives jobs of a lease back, all that are open or those in ids; the attempt is not counted. Returns how many.
-- Errors: MR001 lost lease or job finished already, MR003 an id that is not in the lease.
create or replace function millrace.release(lease text,
  ids bigint[] = null)
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
  return millrace.release_at(clock_timestamp(), lease, ids);
end $$;
comment on function millrace.release(text, bigint[]) is
  'gives jobs of a lease back';
