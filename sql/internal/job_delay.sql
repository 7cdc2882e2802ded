-- SPDX-License-Identifier: PostgreSQL
-- Sets a job aside until p_due. p_why: s scheduled, r retry, l lost, z put off by its worker.
create or replace function millrace.job_delay(p_now timestamptz, p_job millrace.job, p_due timestamptz, p_why "char")
returns void
language plpgsql
as $$
begin
  insert into millrace.delayed (due_at, job_id, created_at, lane, slot, attempt, lost, attempts_limit, why, job_kind, payload_args,
                                stale_at, run_limit, payload_meta, payload_state, payload_blob, job_tenant, job_ref, job_source,
                                trail, order_key, unique_name, batch_id)
  values (p_due, p_job.job_id, p_job.created_at, p_job.lane, millrace.delayed_slot(p_now, p_due), p_job.attempt, p_job.lost,
          p_job.attempts_limit, p_why, p_job.job_kind, p_job.payload_args, p_job.stale_at, p_job.run_limit, p_job.payload_meta,
          p_job.payload_state, p_job.payload_blob, p_job.job_tenant, p_job.job_ref, p_job.job_source, p_job.trail,
          p_job.order_key, p_job.unique_name, p_job.batch_id);
end $$;
