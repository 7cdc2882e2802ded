-- SPDX-License-Identifier: PostgreSQL
-- Gives back a lock of this session. False: this session does not have it, so it was lost with another connection, or never taken. Errors: 22023 bad argument, MR004 restored schema.
create or replace function millrace.unlock(
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
set client_min_messages = error
as $$
begin
  perform millrace.at_home();
  perform millrace.check_key('name', name);
  return pg_advisory_unlock(millrace.lock_key(name));
end $$;
comment on function millrace.unlock(text) is
  'gives back a lock of this session';
