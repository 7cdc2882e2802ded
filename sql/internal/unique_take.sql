-- SPDX-License-Identifier: PostgreSQL
-- Takes a key for a new job. Null: it is the job's. Otherwise the id of the job that holds it. Waits for a transaction that is about to take the
-- same key: only its end tells. One that is about to give it back has not done so yet, and is not waited for.
create or replace function millrace.unique_take(p_now timestamptz, p_queue_id int, p_key text, p_id bigint, p_quiet interval)
returns bigint
language plpgsql
as $$
declare
  v_held millrace.unique_key;
begin
  loop
    -- Newest first, here and below: what earlier uses left behind is not walked.
    insert into millrace.unique_key (queue_id, unique_name, use_no, job_id, quiet_time)
    select p_queue_id, p_key, 1, p_id, p_quiet
     where (select u.use_no
              from millrace.unique_key u
             where u.queue_id = p_queue_id
               and u.unique_name = p_key
             order by u.use_no desc
             limit 1) is null
        on conflict on constraint unique_key_pk do nothing;
    if found then
      return null;
    end if;
    select u.*
      into v_held
      from millrace.unique_key u
     where u.queue_id = p_queue_id
       and u.unique_name = p_key
     order by u.use_no desc
     limit 1;
    continue when not found;      -- forgotten this moment
    if not millrace.unique_is_free(p_now, v_held) then
      return v_held.job_id;
    end if;
    update millrace.unique_key u
       set use_no = u.use_no + 1,
           job_id = p_id,
           quiet_time = p_quiet,
           free_at = null,
           forget_at = null
     where u.queue_id = p_queue_id
       and u.unique_name = p_key
       and u.use_no = v_held.use_no;
    if found then
      return null;
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
-- A key is remembered for two minutes after each of its uses and for longer the more it was used, up to a day: whoever forgets one and meets it again has
-- to walk past what all its uses left behind, if vacuum is stuck.
create or replace function millrace.unique_release(p_now timestamptz, p_ids bigint[], p_completed boolean)
returns void
language plpgsql
as $$
begin
  update millrace.unique_key u
     set use_no = u.use_no + 1,
         free_at = p_now + coalesce(case when p_completed then u.quiet_time end, interval '0'),
         forget_at = p_now + coalesce(case when p_completed then u.quiet_time end, interval '0') + least(u.use_no, 720) * interval '2 minutes'
   where u.ctid = any (array(select k.ctid
                               from millrace.unique_key k
                              where k.job_id = any (p_ids)
                                and k.free_at is null
                                for update skip locked));
end $$;

-- Forgets keys that nobody has used for long. From a hint on, because those that went before are in the way while vacuum is stuck; a transaction that
-- gave one back and was open for longer than the hint goes back is caught once an hour.
create or replace function millrace.unique_forget(p_now timestamptz)
returns bigint
language plpgsql
as $$
declare
  c_some  constant int := 100000;
  v_sweep boolean := millrace.due('millrace.unique_sweep', p_now, 3600000);
  v_from  timestamptz := case when v_sweep then '-infinity' else to_timestamp(millrace.hint('millrace.unique_hint') / 1000.0) end;
  v_last  timestamptz;
  v_n     bigint;
begin
  with gone as (
    delete from millrace.unique_key u
     where u.ctid = any (array(select k.ctid
                                 from millrace.unique_key k
                                where k.forget_at >= v_from
                                  and k.forget_at <= p_now
                                order by k.forget_at
                                limit c_some
                                  for update skip locked))
    returning u.forget_at)
  select count(*), max(g.forget_at)
    into v_n, v_last
    from gone g;
  if v_sweep then
    perform setval('millrace.unique_sweep', millrace.epoch_ms(p_now));
  end if;
  if v_n < c_some then
    v_last := p_now;
  end if;
  perform setval('millrace.unique_hint', greatest(millrace.epoch_ms(v_last - interval '1 minute'), 0));
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
