-- SPDX-License-Identifier: PostgreSQL
-- Reports that a job of a lease failed. It comes back after retry_in, or the kind's backoff, unless its attempts are used up or retry
-- is false: then it becomes a dead letter. state replaces the job's state for the next attempt. The lease's other jobs are not touched.
-- Returns scheduled or dead. Errors: 22023, MR001 lost lease or job finished already, MR003 an id that is not in the lease.
create or replace function millrace.fail(
  lease text,
  id bigint,
  error text,
  retry_in interval = null,
  retry boolean = true,
  state bytea = null)
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
  return millrace.fail_at(clock_timestamp(), lease, id, error, retry_in, retry, state);
end $$;
comment on function millrace.fail(text, bigint, text, interval, boolean, bytea) is
  'reports a failed job';
