-- SPDX-License-Identifier: PostgreSQL
-- Takes the lock of a name for an owner, for ttl from now on; it belongs to no session and works behind any pooler. Returns a fencing number, or null when another owner has it. Whenever it is
-- taken the number is larger than any before; what is protected should refuse smaller ones than it has seen, because a holder may be late. The owner who has it renews it with the same
-- call: ttl counts from now on, the number stays. After ttl it is free, whatever became of its owner. Commits wait for the disk, so that no number comes twice after a crash.
-- A call for a name waits for the end of a transaction that has one in hand. Errors: 22023 bad argument, 25000 not read committed, MR004.
create or replace function millrace.lock_lease(
  name text,
  owner text,
  ttl interval)
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
  return millrace.lock_lease_at(null, name, owner, ttl);
end $$;
comment on function millrace.lock_lease(text, text, interval) is
  'takes or renews a lock with a lease and returns its fencing number';
