-- SPDX-License-Identifier: PostgreSQL
-- enqueue with the time as an argument.
create or replace function millrace.enqueue_at(p_now timestamptz, p_kind text, p_args jsonb, p_queue text, p_priority int,
                                               p_run_at timestamptz, p_delay interval, p_unique_key text, p_ordering_key text,
                                               p_tenant text, p_ref text, p_max_attempts int, p_timeout interval,
                                               p_expires_in interval, p_meta jsonb, p_state bytea, p_blob bytea, p_source text,
                                               p_on_conflict text = 'ignore', p_unique_for interval = null, p_batch bigint = null,
                                               p_depends_on bigint[] = null)
returns bigint
language plpgsql
as $$
declare
  v_queue millrace.queue;
  v_keys  int;                 -- the queue whose unique keys count: the one that was named, also for a job that its route takes
  v_home  millrace.queue;      -- the tenant's, where the queue is fair
  v_job   millrace.job;
  v_due   timestamptz := coalesce(p_run_at, p_now + p_delay);
  v_first bigint;
  v_waits boolean;
begin
  perform millrace.at_home();
  perform millrace.check_job('', p_kind, p_args, p_queue, p_priority, p_run_at, p_delay, p_unique_key, p_ordering_key, p_tenant, p_ref,
                             p_max_attempts, p_timeout, p_expires_in, p_on_conflict, p_unique_for);
  perform pg_current_xact_id();
  v_queue := millrace.queue_of(p_queue);
  if v_queue.route_queue is not null then
    v_keys := v_queue.queue_id;
    v_queue := millrace.queue_route(v_queue, p_tenant, p_ordering_key);
    v_keys := nullif(v_keys, v_queue.queue_id);
  end if;
  if v_queue.depth_limit is not null then
    v_queue := millrace.queue_admit(p_now, v_queue, 1, case when v_due > p_now then 0 else 1 end);
  end if;
  perform millrace.check_size('args', millrace.json_size(p_args, v_queue.args_bytes), v_queue.args_bytes, 'max_args');
  perform millrace.check_size('meta', millrace.json_size(p_meta, v_queue.args_bytes), v_queue.args_bytes, 'max_args');
  perform millrace.check_size('state', millrace.part_weight('state', p_state), v_queue.state_bytes, 'max_state');
  perform millrace.check_size('blob', millrace.part_weight('blob', p_blob), v_queue.blob_bytes, 'max_blob');
  if p_ordering_key is not null and not v_queue.ordered and v_queue.key_limit is null then
    perform millrace.refuse_unordered('', p_queue);
  end if;
  v_job.job_id := nextval('millrace.pos_seq');
  if p_unique_key is not null then
    v_first := millrace.unique_take(p_now, coalesce(v_keys, v_queue.queue_id), p_unique_key, v_job.job_id, p_unique_for);
    if v_first is not null then
      if p_on_conflict = 'replace' then
        perform millrace.unique_replace(p_now, v_first, p_args, v_due);
      end if;
      return v_first;
    end if;
  end if;
  if p_batch is not null or p_depends_on is not null then
    perform millrace.batch_enter('', p_batch, 1) where p_batch is not null;
    v_waits := millrace.depend_note(p_now, '', v_job.job_id, p_depends_on, null);
  end if;
  v_home := case when v_queue.fair then millrace.tenant_of(v_queue, p_tenant) else v_queue end;
  v_job.lane := (v_home.queue_id << 12) + (p_priority << 5);
  perform millrace.lane_register(v_job.lane);
  v_job.attempts_limit := coalesce(p_max_attempts, (select r.attempts_limit from millrace.retry_policy r where r.policy_kind = p_kind),
                                   v_queue.attempts_limit);
  if v_due > p_now or v_waits then
    v_job.created_at := p_now;
    v_job.attempt := 1;
    v_job.lost := 0;
    v_job.job_kind := p_kind;
    v_job.payload_args := p_args;
    v_job.stale_at := coalesce(v_due, p_now) + p_expires_in;
    v_job.run_limit := p_timeout;
    v_job.payload_meta := p_meta;
    v_job.payload_state := p_state;
    v_job.payload_blob := p_blob;
    v_job.job_tenant := p_tenant;
    v_job.job_ref := p_ref;
    v_job.job_source := p_source;
    v_job.order_key := p_ordering_key;
    v_job.unique_name := p_unique_key;
    v_job.batch_id := p_batch;
    if v_waits then
      perform millrace.job_set_aside(p_now, v_job, 'w', v_due);
    else
      perform millrace.job_delay(p_now, v_job, v_due, 's');
    end if;
  else
    insert into millrace.job (pos, job_id, created_at, lane, attempts_limit, job_kind, payload_args, stale_at, run_limit, payload_meta,
                              payload_state, payload_blob, job_tenant, job_ref, job_source, order_key, unique_name, batch_id)
    values (v_job.job_id, v_job.job_id, p_now, v_job.lane + millrace.part_of(case when v_queue.ordered then p_ordering_key end, v_job.job_id, v_queue.part_count), v_job.attempts_limit, p_kind, p_args,
            p_now + p_expires_in, p_timeout, p_meta, p_state, p_blob, p_tenant, p_ref, p_source, p_ordering_key, p_unique_key, p_batch);
    perform millrace.wake(v_queue.queue_id, p_now);
  end if;
  if millrace.is_object(p_state) or millrace.is_object(p_blob) then
    perform millrace.parts_keep(p_now, v_job.job_id, p_state, p_blob);
  end if;
  return v_job.job_id;
end $$;
