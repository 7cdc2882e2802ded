-- SPDX-License-Identifier: PostgreSQL
-- Takes a key for a new job. Null: it is the job's. Otherwise the id of the job that holds it. Waits for a transaction that is about to take the
-- same key, or to give it back: only its end tells.
create or replace function millrace.unique_take(p_now timestamptz, p_queue_id int, p_key text, p_id bigint, p_quiet interval)
returns bigint
language plpgsql
as $$
declare
  v_held millrace.unique_key;
begin
  loop
    insert into millrace.unique_key (queue_id, unique_name, job_id, quiet_time)
    values (p_queue_id, p_key, p_id, p_quiet)
        on conflict on constraint unique_key_pk do nothing;
    if found then
      return null;
    end if;
    select u.*
      into v_held
      from millrace.unique_key u
     where u.queue_id = p_queue_id
       and u.unique_name = p_key;
    if found then
      if not millrace.unique_is_free(p_now, v_held) then
        return v_held.job_id;
      end if;
      update millrace.unique_key u
         set job_id = p_id,
             quiet_time = p_quiet,
             free_at = null
       where u.queue_id = p_queue_id
         and u.unique_name = p_key
         and u.job_id = v_held.job_id;
      if found then
        return null;
      end if;
    elsif current_setting('transaction_isolation') <> 'read committed' then
      raise exception using errcode = 'serialization_failure',
        message = format('unique_key %s was changed by a concurrent transaction', quote_literal(left(p_key, 80))),
        hint = 'Retry the transaction.';
    end if;
  end loop;
end $$;

-- Whether a key that is written down is free all the same: the time after its job's completion is over, or the job has ended and nobody has given
-- the key back, as with one that expired before any claim came by. So a key outlives its job in no case, whatever went wrong.
create or replace function millrace.unique_is_free(p_now timestamptz, p_held millrace.unique_key)
returns boolean
language plpgsql
as $$
declare
  v_job record;
begin
  if p_held.free_at is not null then
    return p_held.free_at <= p_now;
  end if;
  -- A job may move between the looks: from delayed to the log and back.
  for i in 1..3 loop
    if exists (select from millrace.delayed d where d.job_id = p_held.job_id) then
      return false;
    end if;
    v_job := millrace.job_newest(p_held.job_id);
    if v_job.status is not null then
      return v_job.status <> 'running' and (v_job.status <> 'available' or ((v_job.job).stale_at <= p_now) is true);
    end if;
    exit when millrace.job_ended(p_held.job_id) is not null;
  end loop;
  return true;
end $$;

-- Gives back the keys of jobs that have ended; completed ones may have to keep theirs a while. A key that is locked is being taken over by a
-- producer, who has found out by itself: it is not waited for, because a claim must not wait for a producer's transaction.
create or replace function millrace.unique_release(p_now timestamptz, p_ids bigint[], p_completed boolean)
returns void
language plpgsql
as $$
begin
  if p_completed then
    update millrace.unique_key u
       set free_at = p_now + u.quiet_time
     where u.job_id = any (p_ids)
       and u.quiet_time is not null
       and u.free_at is null;
  end if;
  delete from millrace.unique_key u
   using (select u.queue_id, u.unique_name
            from millrace.unique_key u
           where u.job_id = any (p_ids)
             and (not p_completed or u.quiet_time is null)
             for update skip locked) o
   where u.queue_id = o.queue_id
     and u.unique_name = o.unique_name;
end $$;

-- Forgets keys whose time after the end of their job is over.
create or replace function millrace.unique_forget(p_now timestamptz)
returns bigint
language plpgsql
as $$
declare
  c_some constant int := 10000;
  v_n    bigint;
begin
  delete from millrace.unique_key u
   using (select u.queue_id, u.unique_name
            from millrace.unique_key u
           where u.free_at <= p_now
           order by u.free_at
           limit c_some
             for update skip locked) o
   where u.queue_id = o.queue_id
     and u.unique_name = o.unique_name;
  get diagnostics v_n = row_count;
  return v_n;
end $$;

-- What the new one of two jobs with one key has to say is told to the one that is there, if it waits: args, and a time if one is given. p_afresh: its
-- attempts are counted anew, and it does not wait for a retry any more. False: it does not wait, but runs or has ended.
create or replace function millrace.unique_replace(p_now timestamptz, p_id bigint, p_args jsonb, p_due timestamptz, p_afresh boolean = false)
returns boolean
language plpgsql
as $$
declare
  v_later record;
  v_job   millrace.job;
  v_found record;
begin
  perform millrace.check_isolation('on_conflict => ''replace''');
  for i in 1..5 loop
    v_later := millrace.job_recall(p_id);
    if (v_later.job).job_id is not null then
      v_job := v_later.job;
      v_job.payload_args := p_args;
      v_job.attempt := case when p_afresh then 1 else v_job.attempt end;
      if p_afresh and v_later.why in ('r', 'l') then
        p_due := coalesce(p_due, p_now);
      end if;
      if v_later.why in ('p', 'w') then
        perform millrace.job_set_aside(p_now, v_job, v_later.why, coalesce(p_due, v_later.resume_at));
      else
        perform millrace.job_requeue(p_now, v_job, jsonb_build_object('run_at', coalesce(p_due, v_later.due_at)), null, null, '{}');
      end if;
      return true;
    end if;
    v_found := millrace.job_newest(p_id);
    if v_found.status is distinct from 'available' then
      exit when v_found.status is not null;
    elsif millrace.job_withdraw(p_now, v_found.job) then
      v_job := v_found.job;
      v_job.payload_args := p_args;
      v_job.attempt := case when p_afresh then 1 else v_job.attempt end;
      perform millrace.job_requeue(p_now, v_job, case when p_due is null then '{}' else jsonb_build_object('run_at', p_due) end, null, null, '{}');
      return true;
    end if;
  end loop;
  return false;
end $$;
