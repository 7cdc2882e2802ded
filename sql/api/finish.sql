-- SPDX-License-Identifier: PostgreSQL
-- Finishes many jobs of a lease with mixed outcomes in one call: an array of objects with id and outcome, which is completed (result),
-- failed (error, retry_in, retry, state), released, lost (its worker is gone: as if its lease had expired), requeued (changes, state, blob, clear), or snoozed (delay and the same); state and blob as base64 text.
-- Returns how many. All or none. Errors: 22023, MR001, MR003.
create or replace function millrace.finish(lease text,
  outcomes jsonb)
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
  return millrace.finish_at(clock_timestamp(), lease, outcomes);
end $$;
comment on function millrace.finish(text, jsonb) is
  'finishes jobs of a lease with mixed outcomes';
