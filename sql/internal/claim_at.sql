-- SPDX-License-Identifier: PostgreSQL
-- claim with the time as an argument.
create or replace function millrace.claim_at(p_now timestamptz, p_queue text, p_worker text, p_max_jobs int, p_lease_for interval,
                                             p_with_state boolean)
returns setof millrace.claimed_job
language plpgsql
as $$
begin
  return query
    select *
      from millrace.claim_read(millrace.claim_take(p_now, p_queue, p_worker, p_max_jobs, p_lease_for, p_with_state), p_with_state);
end $$;

-- The jobs that a claim took, all of a range at once.
do $do$
begin
  execute format($sql$
create or replace function millrace.claim_read(p_taken millrace.taken, p_with_state boolean)
returns setof millrace.claimed_job
language plpgsql
as $$
declare
  v_job millrace.claimed_job;
  v_seg int;
begin
  for i in 1 .. coalesce(cardinality(p_taken.seg), 0) loop
    v_seg := p_taken.seg[i];
    %s
  end loop;
  if p_taken.jobs is not null then
    foreach v_job in array p_taken.jobs loop
      return next v_job;
    end loop;
  end if;
end $$
  $sql$, millrace.by_leaf('v_seg', $one$
    return query
      select p_taken.lease, j.job_id, j.attempt::int, j.attempts_limit::int, j.job_kind, j.payload_args, j.payload_meta,
             case when p_with_state then j.payload_state end, j.payload_blob, j.job_tenant, j.job_ref, p_taken.lane >> 5 & 127, j.job_source,
             j.created_at, p_taken.until, j.run_limit
        from millrace.range_jobs_%s(p_taken.lane, p_taken.from_xid[i], p_taken.from_pos[i], p_taken.to_xid[i],
                                 p_taken.hi, p_taken.rows[i]) j;$one$));
end $do$;
