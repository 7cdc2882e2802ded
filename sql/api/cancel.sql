-- SPDX-License-Identifier: PostgreSQL
-- Cancels a job. One that waits (scheduled, available, paused) is not delivered any more and ends as cancelled: returns cancelled. A running one
-- goes on until its worker is told, with its next heartbeat; it ends as cancelled when it fails, is given back or is lost, and as
-- completed if it completes all the same: returns running. One that has ended stays as it is: returns its status. Errors: MR003 unknown job.
-- In a transaction: a job that a worker takes before the commit counts as running. Commit soon: what the worker of a running one has to say of its
-- lease waits for it.
create or replace function millrace.cancel(
  id bigint,
  reason text = null)
returns text
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
  return millrace.cancel_at(clock_timestamp(), id, reason);
end $$;
comment on function millrace.cancel(bigint, text) is
  'cancels a job';
