-- SPDX-License-Identifier: PostgreSQL
-- Makes a job a dead letter. p_cause: failed, poison or damaged; p_failure: the text of the last error.
create or replace function millrace.job_bury(p_now timestamptz, p_job millrace.job, p_cause text, p_failure text)
returns void
language plpgsql
as $$
begin
  insert into millrace.dead (died_at, job_id, created_at, queue_id, lane, bytes, slot, attempt, lost, attempts_limit, cause, failure,
                             job_kind, payload_args, stale_at, run_limit, payload_meta, payload_state, payload_blob, job_tenant,
                             job_ref, job_source, trail, order_key, unique_name)
  values (p_now, p_job.job_id, p_job.created_at, p_job.lane >> 12, p_job.lane,
          200 + coalesce(pg_column_size(p_job.payload_args), 0) + coalesce(pg_column_size(p_job.payload_meta), 0)
              + coalesce(pg_column_size(p_job.payload_state), 0) + coalesce(pg_column_size(p_job.payload_blob), 0)
              + coalesce(pg_column_size(p_job.trail), 0),
          (date_part('epoch', p_now)::bigint / 86400) % 32, p_job.attempt, p_job.lost, p_job.attempts_limit, p_cause,
          p_failure, p_job.job_kind, p_job.payload_args, p_job.stale_at, p_job.run_limit, p_job.payload_meta,
          p_job.payload_state, p_job.payload_blob, p_job.job_tenant, p_job.job_ref, p_job.job_source, p_job.trail,
          p_job.order_key, p_job.unique_name);
end $$;

-- Buries a job of which some part cannot be read, without the parts that cannot.
create or replace function millrace.job_bury_damaged(p_now timestamptz, p_slot int, p_id bigint, p_pos bigint)
returns void
language plpgsql
as $$
declare
  v_job  millrace.job;
  v_lost text[] := '{}';
begin
  select j.*
    into v_job
    from millrace.job j
   where j.slot = p_slot
     and j.job_id = p_id
     and j.pos = p_pos;
  begin
    perform length(v_job.payload_args::text);
  exception when data_corrupted or internal_error or data_exception then
    v_job.payload_args := null;
    v_lost := v_lost || 'args'::text;
  end;
  begin
    perform length(v_job.payload_meta::text);
  exception when data_corrupted or internal_error or data_exception then
    v_job.payload_meta := null;
    v_lost := v_lost || 'meta'::text;
  end;
  begin
    perform get_byte(v_job.payload_state, 0) where length(v_job.payload_state) > 0;
  exception when data_corrupted or internal_error or data_exception then
    v_job.payload_state := null;
    v_lost := v_lost || 'state'::text;
  end;
  begin
    perform get_byte(v_job.payload_blob, 0) where length(v_job.payload_blob) > 0;
  exception when data_corrupted or internal_error or data_exception then
    v_job.payload_blob := null;
    v_lost := v_lost || 'blob'::text;
  end;
  perform millrace.job_bury(p_now, v_job, 'damaged', format('cannot be read: %s', array_to_string(v_lost, ', ')));
end $$;
