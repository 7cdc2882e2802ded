-- SPDX-License-Identifier: PostgreSQL
-- Takes the lock of a name for this session, and waits for it as long as lock_timeout and statement_timeout allow. It lasts until unlock or the end of the session, whatever becomes of
-- the transaction; a session that has it may take it again and has to give it back as often. Not behind a pooler that hands sessions around: lock_lease is for those. The name
-- stands for 64 bits of its SHA-256: two names with the same bits exclude each other, so that a name never has two holders. Errors: 22023, 55P03, 57014, MR004.
create or replace function millrace.lock(
  name text)
returns void
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
  perform pg_advisory_lock(millrace.lock_key(name));
end $$;
comment on function millrace.lock(text) is
  'takes the lock of a name for this session';
