-- SPDX-License-Identifier: PostgreSQL
-- Makes a job a dead letter. p_cause: failed, poison or damaged; p_failure: the text of the last error.
create or replace function millrace.job_bury(p_now timestamptz, p_job millrace.job, p_cause text, p_failure text)
returns void
language plpgsql
as $$
begin
  insert into millrace.dead (died_at, job_id, created_at, queue_id, lane, bytes, slot, attempt, lost, attempts_limit, cause, failure,
                             job_kind, payload_args, stale_at, run_limit, payload_meta, payload_state, payload_blob, job_tenant,
                             job_ref, job_source, trail, order_key, unique_name, out_no)
  values (p_now, p_job.job_id, p_job.created_at, millrace.queue_owner(p_job.lane >> 12), p_job.lane,
          200 + coalesce(pg_column_size(p_job.payload_args), 0) + coalesce(pg_column_size(p_job.payload_meta), 0)
              + coalesce(pg_column_size(p_job.payload_state), 0) + coalesce(pg_column_size(p_job.payload_blob), 0)
              + coalesce(pg_column_size(p_job.trail), 0),
          pg_sequence_last_value('millrace.dead_seq'::regclass), p_job.attempt, p_job.lost, p_job.attempts_limit, p_cause,
          p_failure, p_job.job_kind, p_job.payload_args, p_job.stale_at, p_job.run_limit, p_job.payload_meta,
          p_job.payload_state, p_job.payload_blob, p_job.job_tenant, p_job.job_ref, p_job.job_source, p_job.trail,
          p_job.order_key, p_job.unique_name,
          case when greatest(octet_length(p_job.payload_state), octet_length(p_job.payload_blob)) >= 512
               then millrace.offload_letter_no(p_job.lane) end);
end $$;

-- Buries a job of which some part cannot be read, without the parts that cannot. p_pos null: the job is in delayed, not in the log, and
-- goes from there.
create or replace function millrace.job_bury_damaged(p_now timestamptz, p_slot int, p_id bigint, p_pos bigint)
returns void
language plpgsql
as $$
declare
  v_job  millrace.job;
  v_lost text[] := '{}';
begin
  if p_pos is not null then
    select j.*
      into v_job
      from millrace.job_rows(p_id) j
     where j.slot = p_slot
       and j.pos = p_pos;
  else
    delete from millrace.delayed d
     where d.slot = p_slot
       and d.job_id = p_id
    returning d.job_id, d.created_at, d.lane, d.attempt, d.lost, d.attempts_limit, d.job_kind, d.payload_args, d.stale_at, d.run_limit,
              d.payload_meta, d.payload_state, d.payload_blob, d.job_tenant, d.job_ref, d.job_source, d.trail, d.order_key,
              d.unique_name, d.batch_id
      into v_job.job_id, v_job.created_at, v_job.lane, v_job.attempt, v_job.lost, v_job.attempts_limit, v_job.job_kind, v_job.payload_args,
           v_job.stale_at, v_job.run_limit, v_job.payload_meta, v_job.payload_state, v_job.payload_blob, v_job.job_tenant, v_job.job_ref,
           v_job.job_source, v_job.trail, v_job.order_key, v_job.unique_name, v_job.batch_id;
  end if;
  begin
    perform length(v_job.payload_args::text);
  exception when data_corrupted or internal_error or data_exception or program_limit_exceeded then
    v_job.payload_args := null;
    v_lost := v_lost || 'args'::text;
  end;
  begin
    perform length(v_job.payload_meta::text);
  exception when data_corrupted or internal_error or data_exception or program_limit_exceeded then
    v_job.payload_meta := null;
    v_lost := v_lost || 'meta'::text;
  end;
  begin
    perform get_byte(v_job.payload_state, 0) where length(v_job.payload_state) > 0;
  exception when data_corrupted or internal_error or data_exception or program_limit_exceeded then
    v_job.payload_state := null;
    v_lost := v_lost || 'state'::text;
  end;
  begin
    perform get_byte(v_job.payload_blob, 0) where length(v_job.payload_blob) > 0;
  exception when data_corrupted or internal_error or data_exception or program_limit_exceeded then
    v_job.payload_blob := null;
    v_lost := v_lost || 'blob'::text;
  end;
  begin
    perform length(v_job.job_tenant || ''), length(v_job.job_ref || ''), length(v_job.job_source || ''), length(v_job.trail::text),
            length(v_job.order_key || ''), length(v_job.unique_name || '');
  exception when data_corrupted or internal_error or data_exception or program_limit_exceeded then
    v_job.job_tenant := null;
    v_job.job_ref := null;
    v_job.job_source := null;
    v_job.trail := null;
    v_job.order_key := null;
    v_job.unique_name := null;
    v_lost := v_lost || 'tenant, ref, source, keys or history'::text;
  end;
  perform millrace.job_bury(p_now, v_job, 'damaged', format('cannot be read: %s', array_to_string(v_lost, ', ')));
  if p_pos is null then
    perform millrace.job_ended_alone(p_now, v_job, 'd');      -- of one in a claim that is told there
  end if;
end $$;
