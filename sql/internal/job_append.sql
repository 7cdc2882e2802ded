-- SPDX-License-Identifier: PostgreSQL
-- Appends a job to the log again: a retry, a rescue, a release. Same id, new position; p_job carries what changed.
-- The part is chosen anew, so that a queue may change its number of parts at any time; a job with an ordering key stays in its key's.
create or replace function millrace.job_append(p_now timestamptz, p_job millrace.job)
returns bigint
language plpgsql
as $$
declare
  v_pos bigint := nextval('millrace.pos_seq');
begin
  perform pg_current_xact_id();
  insert into millrace.job (pos, job_id, created_at, lane, attempt, lost, attempts_limit, job_kind, payload_args, ready_at, stale_at,
                            run_limit, payload_meta, payload_state, payload_blob, job_tenant, job_ref, job_source, trail,
                            order_key, unique_name, batch_id)
  values (v_pos, p_job.job_id, p_job.created_at, millrace.lane_for(p_job.lane, v_pos, p_job.order_key), p_job.attempt, p_job.lost,
          p_job.attempts_limit, p_job.job_kind, p_job.payload_args, p_now, p_job.stale_at, p_job.run_limit, p_job.payload_meta,
          p_job.payload_state, p_job.payload_blob, p_job.job_tenant, p_job.job_ref, p_job.job_source, p_job.trail,
          p_job.order_key, p_job.unique_name, p_job.batch_id);
  perform millrace.wake(p_job.lane >> 12, p_now);
  return v_pos;
end $$;
