-- SPDX-License-Identifier: PostgreSQL
-- pause_job, resume_job, run_now and change_job with the time as an argument.
create or replace function millrace.pause_job_at(p_now timestamptz, p_id bigint)
returns void
language plpgsql
as $$
declare
  v_job record;
begin
  perform millrace.at_home();
  perform millrace.check_isolation('pause_job');
  v_job := millrace.job_take_out(p_now, p_id, 'Only a job that waits can be paused; a running one can be cancelled.');
  perform millrace.check_not_waiting(p_id, v_job.why);
  perform millrace.job_set_aside(p_now, v_job.job, 'p', case when v_job.why = 'p' then v_job.resume_at else v_job.due_at end);
end $$;

-- A job that waits for others goes on by itself, and only then (22023).
create or replace function millrace.check_not_waiting(p_id bigint, p_why "char")
returns void
language plpgsql
as $$
begin
  if p_why = 'w' then
    perform millrace.refuse_status(p_id, 'waiting', 'It goes on when the jobs that it needs have completed: see job(). It can be cancelled.');
  end if;
end $$;

-- Sets a job aside without a time: p paused, w waits for others.
create or replace function millrace.job_set_aside(p_now timestamptz, p_job millrace.job, p_why "char", p_resume_at timestamptz)
returns void
language plpgsql
as $$
begin
  perform millrace.job_delay(p_now, p_job, 'infinity', p_why);
  update millrace.delayed d
     set resume_at = p_resume_at
   where d.job_id = p_job.job_id;
end $$;

create or replace function millrace.resume_job_at(p_now timestamptz, p_id bigint)
returns void
language plpgsql
as $$
declare
  v_later record;
  v_end   text;
begin
  perform millrace.at_home();
  v_later := millrace.job_recall(p_id);
  if v_later.why is distinct from 'p' then
    v_end := coalesce(case when v_later.why = 'w' then 'waiting' when v_later.why in ('o', 'k', 't') then 'available' when v_later.why is not null then 'scheduled' end,
                      (millrace.job_newest(p_id)).status, millrace.job_ended(p_id));
    if v_end is null then
      perform millrace.refuse_job(p_id);
    end if;
    perform millrace.refuse_status(p_id, v_end, 'Only a paused job can be resumed.');
  elsif v_later.resume_at > p_now then
    perform millrace.job_delay(p_now, v_later.job, v_later.resume_at, 's');
  else
    perform millrace.job_go_on(p_now, v_later.job);
  end if;
end $$;

create or replace function millrace.run_now_at(p_now timestamptz, p_id bigint)
returns void
language plpgsql
as $$
declare
  v_later record;
  v_job   record;
  v_end   text;
begin
  perform millrace.at_home();
  for i in 1..5 loop
    v_later := millrace.job_recall(p_id);
    if v_later.why = 'o' then
      perform millrace.refuse_status(p_id, format('set aside: it is the turn of another job with ordering_key %s',
                                                  quote_literal(left((v_later.job).order_key, 80))),
        'It runs when the jobs of its key before it have ended; see waits_for in job().');
    elsif v_later.why in ('k', 't') then
      perform millrace.refuse_status(p_id, format(case v_later.why when 'k' then 'set aside: other jobs with ordering_key %s run'
                                                                   else 'set aside: tenant %s has used up its rate' end,
                                                  quote_literal(left(case v_later.why when 'k' then (v_later.job).order_key else (v_later.job).job_tenant end, 80))),
        'It runs when the limit of its queue leaves room for it; null takes the limit away.');
    elsif (v_later.job).job_id is not null then
      perform millrace.check_not_waiting(p_id, v_later.why);
      perform millrace.job_go_on(p_now, v_later.job);
      return;
    end if;
    v_job := millrace.job_newest(p_id);
    v_end := coalesce(v_job.status, millrace.job_ended(p_id));
    if v_end = 'available' then
      return;
    elsif v_end is not null then
      perform millrace.refuse_status(p_id, v_end, 'Only a job that waits can be run now; replay() enqueues a dead one again.');
    end if;
  end loop;
  perform millrace.refuse_job(p_id);
end $$;

-- A job that is delayed stays so where the changes name no time.
create or replace function millrace.change_job_at(p_now timestamptz, p_id bigint, p_changes jsonb)
returns void
language plpgsql
as $$
declare
  v_job record;
begin
  perform millrace.at_home();
  perform millrace.check_isolation('change_job');
  perform millrace.check_changes(p_changes, '{}');
  v_job := millrace.job_take_out(p_now, p_id, 'Only a job that waits can be changed.');
  perform millrace.check_not_waiting(p_id, v_job.why);
  if v_job.why = 'p' then
    perform millrace.refuse_status(p_id, 'paused', 'Resume the job first.');
  elsif v_job.due_at is not null and coalesce(p_changes ->> 'run_at', p_changes ->> 'delay') is null then
    p_changes := p_changes || jsonb_build_object('run_at', v_job.due_at);
  end if;
  perform millrace.job_requeue(p_now, v_job.job, p_changes, null, null, '{}');
end $$;
