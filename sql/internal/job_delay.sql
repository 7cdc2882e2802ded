-- SPDX-License-Identifier: PostgreSQL
-- Sets a job aside until p_due. p_why: s scheduled, r retry, l lost, z put off by its worker. One whose payload is away stays so, until it is due.
create or replace function millrace.job_delay(p_now timestamptz, p_job millrace.job, p_due timestamptz, p_why "char")
returns void
language plpgsql
as $$
begin
  insert into millrace.delayed (due_at, job_id, created_at, lane, slot, attempt, lost, attempts_limit, why, job_kind, payload_args,
                                stale_at, run_limit, payload_meta, payload_state, payload_blob, job_tenant, job_ref, job_source,
                                trail, order_key, unique_name, batch_id, out_no, away_due)
  values (p_due, p_job.job_id, p_job.created_at, p_job.lane, millrace.delayed_slot(p_now, p_due), p_job.attempt, p_job.lost,
          p_job.attempts_limit, p_why, p_job.job_kind, p_job.payload_args, p_job.stale_at, p_job.run_limit, p_job.payload_meta,
          p_job.payload_state, p_job.payload_blob, p_job.job_tenant, p_job.job_ref, p_job.job_source, p_job.trail,
          p_job.order_key, p_job.unique_name, p_job.batch_id,
          case when greatest(octet_length(p_job.payload_state), octet_length(p_job.payload_blob)) >= 512 and not (millrace.is_away(p_job.payload_state) or millrace.is_away(p_job.payload_blob))
               then millrace.offload_no(p_now, p_due, p_job.lane) end,
          case when millrace.is_away(p_job.payload_state) or millrace.is_away(p_job.payload_blob) then p_due end);
end $$;

-- A job that was taken out of where it waited goes on at once: to the log, or, where its payload is away, to delayed until it is back.
create or replace function millrace.job_go_on(p_now timestamptz, p_job millrace.job)
returns void
language plpgsql
as $$
begin
  if millrace.is_away(p_job.payload_state) or millrace.is_away(p_job.payload_blob) then
    perform millrace.job_delay(p_now, p_job, p_now, 's');
  else
    perform millrace.job_append(p_now, p_job);
  end if;
end $$;
