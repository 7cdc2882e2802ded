-- SPDX-License-Identifier: PostgreSQL
-- lock without waiting. False: another session has it. Errors: 22023 bad argument, MR004 restored schema.
create or replace function millrace.try_lock(
  name text)
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
  perform millrace.at_home();
  perform millrace.check_key('name', name);
  return pg_try_advisory_lock(millrace.lock_key(name));
end $$;
comment on function millrace.try_lock(text) is
  'takes the lock of a name for this session if it is free';
