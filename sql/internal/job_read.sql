-- SPDX-License-Identifier: PostgreSQL
-- A row of the log as claim returns it, every part of it read; null when a part cannot be read. A damaged value would otherwise
-- raise when the row is built or sent, and stop its lane for ever.
create or replace function millrace.job_read(p_slot int, p_id bigint, p_pos bigint, p_lease text, p_rank int, p_until timestamptz,
                                             p_state boolean)
returns millrace.claimed_job
language plpgsql
as $$
declare
  v_job millrace.claimed_job;
begin
  select p_lease, j.job_id, j.attempt, j.attempts_limit, j.job_kind, j.payload_args, j.payload_meta,
         case when p_state then j.payload_state end, j.payload_blob, j.job_tenant, j.job_ref, p_rank, j.job_source, j.created_at, p_until,
         j.run_limit
    into v_job
    from millrace.job_rows(p_id) j
   where j.slot = p_slot
     and j.pos = p_pos;
  perform length(v_job.args::text), length(v_job.meta::text), length(v_job.tenant || ''), length(v_job.ref || '');
  perform get_byte(v_job.state, 0) where length(v_job.state) > 0;
  perform get_byte(v_job.blob, 0) where length(v_job.blob) > 0;
  return v_job;
exception
  when data_corrupted or internal_error or data_exception or program_limit_exceeded then
    return null;
end $$;
