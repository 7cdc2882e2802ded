-- SPDX-License-Identifier: PostgreSQL
-- Puts a job of a lease back with changes; the attempt is not counted. changes may hold queue, priority, run_at or delay, args, meta (null means
-- unchanged); state and blob replace those parts; clear names parts to unset: args, meta, state, blob. Returns the job's id.
-- Errors: 22023, MR001 lost lease or job finished already, MR003 an id that is not in the lease.
create or replace function millrace.requeue(
  lease text,
  id bigint,
  changes jsonb = '{}',
  state bytea = null,
  blob bytea = null,
  clear text[] = '{}')
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
  return millrace.requeue_at(clock_timestamp(), lease, id, changes, state, blob, clear);
end $$;
comment on function millrace.requeue(text, bigint, jsonb, bytea, bytea, text[]) is
  'puts a job back with changes';
