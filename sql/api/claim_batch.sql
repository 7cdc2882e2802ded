-- SPDX-License-Identifier: PostgreSQL
-- claim for programs that read many jobs at once: what all of them share comes once and not with each. The first row is the lease's:
-- lease, priority, lease_until, and when it was made in created_at; its id is null, its kind null or the limit that the queue has
-- (concurrency or rate). Then come the jobs, in which lease, priority and lease_until may be null. No rows at all where there are no jobs.
-- Where a limit leaves none, one row without a lease: lease_until is when a rate allows the next job, or now, where this call has let jobs in that had
-- been set aside; null: when one has ended.
-- For a small job these columns are a good part of what is printed and copied.
-- Errors: as claim.
do $do$
begin
  execute format($sql$
create or replace function millrace.claim_batch(
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
  v_now   timestamptz := clock_timestamp();
  v_taken millrace.taken := millrace.claim_take(v_now, queue, worker, max_jobs, lease_for, with_state is not false);
  v_row   millrace.claimed_job;
  v_seg   int;
begin
  if v_taken.lease is null and v_taken.limited is null then
    return;
  end if;
  v_row.lease := v_taken.lease;
  v_row.kind := v_taken.limited;
  v_row.priority := v_taken.lane >> 5 & 127;
  v_row.created_at := v_now;
  v_row.lease_until := v_taken.until;
  return next v_row;
  -- As claim_read reads them; here and not there because each level of functions copies every row.
  for i in 1 .. coalesce(cardinality(v_taken.seg), 0) loop
    v_seg := v_taken.seg[i];
    %s
  end loop;
  if v_taken.jobs is not null then
    foreach v_row in array v_taken.jobs loop
      return next v_row;
    end loop;
  end if;
end $$
  $sql$, millrace.by_leaf('v_seg', $one$
    return query
      select null::text, j.job_id, j.attempt::int, j.attempts_limit::int, j.job_kind, j.payload_args, j.payload_meta,
             case when with_state is not false then j.payload_state end, j.payload_blob, j.job_tenant, j.job_ref, null::int, j.job_source,
             j.created_at, null::timestamptz, j.run_limit
        from millrace.range_jobs_%s(v_taken.lane, v_taken.from_xid[i], v_taken.from_pos[i], v_taken.to_xid[i],
                                   v_taken.hi, v_taken.rows[i]) j;$one$));
end $do$;
comment on function millrace.claim_batch(text, text, int, interval, boolean) is
  'takes jobs under a lease, which comes once, in the first row';
