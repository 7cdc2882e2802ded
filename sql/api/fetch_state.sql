-- SPDX-License-Identifier: PostgreSQL
-- The state of a job that was claimed without it (with_state => false); null where it has none. Needs the live lease that holds the job open, locks nothing
-- and extends nothing. Errors: MR001 lost lease or job finished already, MR003 an id that is not in the lease.
create or replace function millrace.fetch_state(lease text,
  id bigint)
returns bytea
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
declare
  v_claim millrace.claim := millrace.lease_look(lease);
begin
  return (millrace.held_job(v_claim, (millrace.held_ordinals(v_claim, array[id], lease))[1])).payload_state;
end $$;
comment on function millrace.fetch_state(text, bigint) is
  'the state of a job that was claimed without it';
