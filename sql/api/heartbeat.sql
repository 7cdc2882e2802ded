-- SPDX-License-Identifier: PostgreSQL
-- Extends a lease by extend, or by what it was taken for. Returns the new end, and the ids of its jobs that were cancelled meanwhile.
-- An expired lease that nobody has rescued is revived. Errors: 22023, MR001 lost lease.
create or replace function millrace.heartbeat(lease text,
  extend interval = null)
returns millrace.lease_state
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
  return millrace.heartbeat_at(clock_timestamp(), lease, extend);
end $$;
comment on function millrace.heartbeat(text, interval) is
  'extends a lease';
