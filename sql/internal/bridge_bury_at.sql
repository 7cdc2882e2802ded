-- SPDX-License-Identifier: PostgreSQL
-- bridge_bury with the time as an argument. The entry is a job that never was available: it has an id, one attempt, and no row in the log.
create or replace function millrace.bridge_bury_at(p_now timestamptz, p_bridge text, p_stream text, p_group text, p_entry text, p_queue text,
                                                   p_kind text, p_args jsonb, p_error text)
returns bigint
language plpgsql
as $$
declare
  v_queue millrace.queue;
  v_job   millrace.job;
begin
  perform millrace.check_name('bridge', p_bridge);
  perform millrace.check_name('kind', p_kind);
  perform millrace.stream_place(p_entry);
  v_queue := millrace.queue_of(p_queue);
  v_job.job_id := nextval('millrace.pos_seq');
  v_job.created_at := p_now;
  v_job.lane := (v_queue.queue_id << 12) + (50 << 5);
  v_job.attempt := 1;
  v_job.lost := 0;
  v_job.attempts_limit := v_queue.attempts_limit;
  v_job.job_kind := p_kind;
  v_job.payload_args := coalesce(p_args, '{}');
  v_job.payload_meta := jsonb_build_object('bridge', p_bridge, 'stream', p_stream, 'group', p_group, 'entry', p_entry);
  v_job.job_ref := p_entry;
  v_job.job_source := 'bridge:' || p_bridge;
  perform millrace.job_bury(p_now, v_job, 'failed', left(coalesce(p_error, 'no reason given'), 8000));
  return v_job.job_id;
end $$;
