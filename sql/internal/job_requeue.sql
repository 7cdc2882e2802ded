-- SPDX-License-Identifier: PostgreSQL
-- Puts a held job back with changes: queue, priority, run_at or delay, args, meta of p_changes, and the parts given or named in p_clear.
-- The attempt is not counted.
create or replace function millrace.job_requeue(p_now timestamptz, p_job millrace.job, p_changes jsonb, p_state bytea, p_blob bytea,
                                                p_clear text[])
returns void
language plpgsql
as $$
declare
  v_queue millrace.queue;
  v_due   timestamptz := coalesce((p_changes ->> 'run_at')::timestamptz, p_now + (p_changes ->> 'delay')::interval);
  v_rank  int := coalesce((p_changes ->> 'priority')::int, (p_job.lane >> 5) & 127);
begin
  perform millrace.check_number('priority', v_rank, 0, 99);
  perform millrace.check_time('run_at', v_due);
  if p_changes ->> 'queue' is null then
    select q.*
      into v_queue
      from millrace.queue q
     where q.queue_id = p_job.lane >> 12;
  else
    v_queue := millrace.queue_of(p_changes ->> 'queue');
    v_queue := millrace.tenant_of(v_queue, p_job.job_tenant);
  end if;
  if p_job.order_key is not null and v_queue.queue_id <> p_job.lane >> 12 then
    -- It leaves its place in one queue, and has one in the other only if that has a use for keys, too.
    perform millrace.turns_pass(p_now, array[row(p_job.job_id, p_job.lane, p_job.order_key, null, null)::millrace.hook], 'c');
    p_job.order_key := case when v_queue.ordered or v_queue.key_limit is not null then p_job.order_key end;
  end if;
  p_job.lane := (v_queue.queue_id << 12) + (v_rank << 5);
  perform millrace.lane_register(p_job.lane);
  p_job.lost := 0;
  p_job.payload_args := case when 'args' = any (p_clear) then null else coalesce(nullif(p_changes -> 'args', 'null'), p_job.payload_args) end;
  p_job.payload_meta := case when 'meta' = any (p_clear) then null else coalesce(nullif(p_changes -> 'meta', 'null'), p_job.payload_meta) end;
  p_job.payload_state := case when 'state' = any (p_clear) then null else coalesce(p_state, p_job.payload_state) end;
  p_job.payload_blob := case when 'blob' = any (p_clear) then null else coalesce(p_blob, p_job.payload_blob) end;
  perform millrace.check_size('args', millrace.json_written(p_changes -> 'args', v_queue.args_bytes), v_queue.args_bytes, 'max_args');
  perform millrace.check_size('meta', millrace.json_written(p_changes -> 'meta', v_queue.args_bytes), v_queue.args_bytes, 'max_args');
  perform millrace.check_size('state', millrace.part_weight('state', p_state), v_queue.state_bytes, 'max_state');
  perform millrace.check_size('blob', millrace.part_weight('blob', p_blob), v_queue.blob_bytes, 'max_blob');
  if millrace.is_object(p_state) or millrace.is_object(p_blob) then
    perform millrace.parts_keep(p_now, p_job.job_id, p_state, p_blob);
  end if;
  if v_due > p_now then
    perform millrace.job_delay(p_now, p_job, v_due, 'z');
  else
    perform millrace.job_go_on(p_now, p_job);
  end if;
end $$;
