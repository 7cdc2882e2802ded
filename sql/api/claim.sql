-- SPDX-License-Identifier: PostgreSQL
-- Takes up to max_jobs jobs of a queue under one lease and returns them; none when there are none, the queue is paused, at its limits or unknown.
-- One call returns jobs of one priority and part, and of large ones 16 MB. The jobs stay the worker's until lease_until; heartbeat
-- extends it. Every later call carries the lease. with_state => false leaves the heavy state behind. worker defaults to a name with
-- the backend's pid.
-- Also does a bounded slice of promotion and rescue once a second. Commit at once: the claim holds a lock until then.
-- Errors: 22023 bad argument, 25000 not read committed, 25006 read-only, MR004 restored schema.
create or replace function millrace.claim(
  queue text = 'default',
  worker text = null,
  max_jobs int = 1,
  lease_for interval = null,
  with_state boolean = true)
returns setof millrace.claimed_job
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
  v_taken millrace.taken := millrace.claim_take(clock_timestamp(), queue, worker, max_jobs, lease_for, coalesce(with_state, true));
  v_job   millrace.claimed_job;
begin
  if v_taken.jobs is null then
    return query
      select *
        from millrace.claim_read(v_taken, coalesce(with_state, true));
  else
    -- Few jobs, or large ones, which were read already.
    foreach v_job in array v_taken.jobs loop
      return next v_job;
    end loop;
  end if;
end $$;
comment on function millrace.claim(text, text, int, interval, boolean) is
  'takes jobs under a lease';
