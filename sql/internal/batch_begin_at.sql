-- SPDX-License-Identifier: PostgreSQL
-- batch_begin, batch_add and batch_seal with the time as an argument.
create or replace function millrace.batch_begin_at(p_now timestamptz, p_on_complete jsonb, p_on_death jsonb, p_label text, p_on_end jsonb)
returns bigint
language plpgsql
as $$
declare
  v_id bigint;
begin
  perform millrace.at_home();
  perform millrace.check_text('label', p_label);
  perform millrace.check_callback(p_now, 'on_complete', p_on_complete), millrace.check_callback(p_now, 'on_death', p_on_death),
          millrace.check_callback(p_now, 'on_end', p_on_end);
  -- The hint is taken back by batches_forget, which needs that no transaction is about to begin a batch: see mark_make.
  perform pg_advisory_xact_lock_shared(1297219592, 4);
  perform setval('millrace.batch_hint', 1);
  insert into millrace.batch (batch_label, began_at, payload_complete, payload_death, payload_end)
  values (p_label, p_now, p_on_complete, p_on_death, p_on_end)
  returning batch_id
       into v_id;
  insert into millrace.batch_total (batch_id, no)
  values (v_id, 0);
  return v_id;
end $$;

-- Checks a callback by enqueueing it, and undoing that: it is refused now for what it would be refused for then. Its queue is made now, so that no
-- claim has to wait for somebody who is about to make it. A key, a batch and dependencies could make upkeep wait, too: a callback has none.
create or replace function millrace.check_callback(p_now timestamptz, p_what text, p_job jsonb)
returns void
language plpgsql
as $$
declare
  v_hint text;
begin
  if p_job is null then
    return;
  elsif jsonb_typeof(p_job) <> 'object' or jsonb_typeof(p_job -> 'meta') not in ('object', 'null') then
    perform millrace.refuse(format('%s must be an object%s', p_what, case when jsonb_typeof(p_job) = 'object' then ', and its meta too' end),
      'Pass a job as enqueue_jobs takes it, such as {"kind": "report"}.');
  elsif p_job ?| array['unique_key', 'on_conflict', 'unique_for', 'batch', 'depends_on'] then
    perform millrace.refuse(format('%s must not have unique_key, on_conflict, unique_for, batch or depends_on', p_what),
      'A callback is enqueued once, and belongs to no batch.');
  end if;
  begin
    perform millrace.enqueue_jobs_at(p_now, jsonb_build_array(p_job));
    raise exception using errcode = 'triggered_action_exception', message = 'this callback is fine';
  exception
    when triggered_action_exception then
      perform millrace.queue_of(coalesce(p_job ->> 'queue', 'default'));
    when data_exception or feature_not_supported then
      get stacked diagnostics v_hint = pg_exception_hint;
      perform millrace.refuse(format('%s: %s', p_what, regexp_replace(sqlerrm, '^job 1:? ', '')), replace(v_hint, 'job 1: ', ''));
  end;
end $$;

create or replace function millrace.batch_add_at(p_now timestamptz, p_batch bigint, p_jobs jsonb, p_source text = null)
returns setof bigint
language plpgsql
as $$
begin
  perform millrace.at_home();
  perform millrace.batch_enter('', p_batch, 0);
  if jsonb_typeof(p_jobs) = 'array' and exists (select from jsonb_array_elements(p_jobs) j where j ->> 'batch' is not null) then
    perform millrace.refuse('jobs has a job with a batch of its own', 'Leave batch out, or pass the jobs to enqueue_jobs().');
  end if;
  return query
    select *
      from millrace.enqueue_jobs_at(p_now, p_jobs, p_batch, p_source);
end $$;

-- Waits for all who are about to add. Their notes are committed then, and this one after them: who sees this one sees theirs.
create or replace function millrace.batch_seal_at(p_now timestamptz, p_batch bigint)
returns void
language plpgsql
as $$
declare
  v_sealed timestamptz;
begin
  perform millrace.at_home();
  select b.sealed_at
    into v_sealed
    from millrace.batch b
   where b.batch_id = p_batch
     for update;
  if not found then
    perform millrace.batch_known('', p_batch);
  elsif v_sealed is null then
    update millrace.batch b
       set sealed_at = p_now
     where b.batch_id = p_batch;
    insert into millrace.batch_note (batch_id, sealed)
    values (p_batch, true);
  end if;
end $$;
