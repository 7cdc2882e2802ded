-- SPDX-License-Identifier: PostgreSQL
-- schedule with the time as an argument. A schedule that is set again as it was keeps its next occurrence: a program may say its schedules
-- each time it starts, and what was missed meanwhile is still caught up.
create or replace function millrace.schedule_at(p_now timestamptz, p_name text, p_cron text, p_kind text, p_args jsonb, p_queue text,
                                                p_timezone text, p_catch_up text, p_active boolean, p_priority int)
returns void
language plpgsql
as $$
declare
  v_queue millrace.queue;
  v_next  timestamptz;
  v_kept  timestamptz;
begin
  perform millrace.at_home();
  perform millrace.check_name('schedule', p_name);
  perform millrace.check_job('', p_kind, p_args, p_queue, p_priority, null, null, null, null, null, null, null, null, null);
  if p_catch_up is null or p_catch_up not in ('none', 'last', 'all') then
    perform millrace.refuse(format('catch_up must be none, last or all, not %s', coalesce(quote_literal(left(p_catch_up, 80)), 'null')),
      'none forgets what was missed, last makes up for it with one job, all with a job for each.');
  end if;
  if p_active is null then
    perform millrace.refuse('active must not be null', 'Pass true or false, or leave it out.');
  end if;
  v_queue := millrace.queue_of(p_queue);      -- made now, so that a claim finds it and does what is due
  perform millrace.check_size('args', millrace.json_size(p_args, v_queue.args_bytes), v_queue.args_bytes, 'max_args');
  v_next := millrace.schedule_next(p_cron, p_now, p_timezone);
  if p_active then
    select s.next_at
      into v_kept
      from millrace.schedule s
     where s.schedule_name = p_name
       and (s.cron_text, s.zone_name) = (p_cron, p_timezone)
       for update;
    v_next := coalesce(v_kept, v_next);
  else
    v_next := null;
  end if;
  insert into millrace.schedule (schedule_name, cron_text, zone_name, catch_up_mode, enabled, job_kind, payload_args, job_queue,
                                 job_priority, set_at, next_at, look_at)
  values (p_name, p_cron, p_timezone, p_catch_up, p_active, p_kind, p_args, p_queue, p_priority, p_now, v_next, v_next)
      on conflict on constraint schedule_pk do update
     set cron_text = excluded.cron_text,
         zone_name = excluded.zone_name,
         catch_up_mode = excluded.catch_up_mode,
         enabled = excluded.enabled,
         job_kind = excluded.job_kind,
         payload_args = excluded.payload_args,
         job_queue = excluded.job_queue,
         job_priority = excluded.job_priority,
         set_at = excluded.set_at,
         last_error = null,
         next_at = excluded.next_at,
         look_at = excluded.look_at;
end $$;
