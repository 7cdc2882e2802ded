-- SPDX-License-Identifier: PostgreSQL
-- Gives back a lock that an owner took with lock_lease. False: it has not got it, because its lease is over or because another owner has it. Errors: 22023 bad argument,
-- 25000 not read committed, MR004 restored schema.
create or replace function millrace.unlock_lease(
  name text,
  owner text)
returns boolean
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
  return millrace.unlock_lease_at(null, name, owner);
end $$;
comment on function millrace.unlock_lease(text, text) is
  'gives back a lock with a lease';
