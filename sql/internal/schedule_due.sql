-- SPDX-License-Identifier: PostgreSQL
-- Enqueues what schedules have due, p_limit schedules at most. Returns how many jobs. A schedule's row is locked, its next occurrence is
-- moved and the job is enqueued in one transaction: each occurrence once, whatever number of passes run.
-- Starts at a hint, ten seconds before the last pass, so that the old versions of rows are not walked; once a minute at the beginning,
-- for schedules whose transaction committed late.
create or replace function millrace.schedule_due(p_now timestamptz, p_limit int)
returns bigint
language plpgsql
as $$
declare
  v_sweep boolean := millrace.due('millrace.schedule_sweep', p_now, 60000);
  v_from  timestamptz := case when v_sweep then '-infinity' else to_timestamp(millrace.hint('millrace.schedule_hint') / 1000.0) end;
  v_first timestamptz;
  v_row   record;
  v_n     bigint := 0;
begin
  for v_row in
    select s.ctid as place, s as schedule
      from millrace.schedule s
     where s.look_at >= v_from
       and s.look_at <= p_now
     order by s.look_at
     limit p_limit
       for update skip locked
  loop
    v_first := least(v_first, (v_row.schedule).look_at);
    v_n := v_n + millrace.schedule_fire(p_now, v_row.place, v_row.schedule);
  end loop;
  if v_sweep then
    perform setval('millrace.schedule_sweep', millrace.epoch_ms(p_now));
  end if;
  perform setval('millrace.schedule_hint', greatest(millrace.epoch_ms(coalesce(v_first, p_now)) - 10000, 0));
  return v_n;
end $$;

-- Enqueues what one schedule has due, a thousand jobs at most, and moves its next occurrence. An occurrence that is less than a minute late
-- is on time and always enqueued. Those before it were missed, and catch_up_mode says what becomes of them: nothing, one job for all of
-- them unless one is on time, or a job each. Where a job cannot be enqueued last_error tells, and
-- it is tried again a minute later: it must not hold other schedules back.
create or replace function millrace.schedule_fire(p_now timestamptz, p_place tid, p_schedule millrace.schedule)
returns bigint
language plpgsql
as $$
declare
  c_late  constant interval := '1 minute';
  v_spec  millrace.cron_spec;
  v_next  timestamptz := p_schedule.next_at;
  v_last  timestamptz := p_schedule.last_at;
  v_job   bigint := p_schedule.last_job_id;
  v_error text;
  v_n     bigint := 0;
begin
  begin
    v_spec := millrace.cron_parse(p_schedule.cron_text);
    if v_next <= p_now - c_late and p_schedule.catch_up_mode <> 'all' then
      v_next := case p_schedule.catch_up_mode
                  when 'last' then millrace.cron_newest(v_spec, v_next - interval '1 second', p_now, p_schedule.zone_name)
                end;
      if v_next is null or v_next > p_now - c_late then
        v_next := millrace.cron_after(v_spec, p_now - c_late, p_schedule.zone_name);
      end if;
    end if;
    while v_next <= p_now and v_n < 1000 loop
      v_last := v_next;
      v_next := millrace.cron_after(v_spec, v_next, p_schedule.zone_name);
      v_job := millrace.schedule_enqueue(p_now, p_schedule, v_last);
      v_n := v_n + 1;
    end loop;
  exception
    when data_exception or sqlstate 'MR002' then
      -- A zone that is gone, args that are too large by now, a queue that is full. The jobs of this pass are undone with it.
      v_error := sqlerrm;
      v_last := p_schedule.last_at;
      v_job := p_schedule.last_job_id;
      v_n := 0;
      v_next := p_schedule.next_at;
      raise warning 'millrace: schedule % failed: % (%)', quote_literal(p_schedule.schedule_name), sqlerrm, sqlstate;
  end;
  update millrace.schedule s
     set next_at = v_next,
         look_at = case when v_error is null then v_next else p_now + c_late end,
         last_at = v_last,
         last_job_id = v_job,
         last_error = v_error
   where s.ctid = p_place;
  return v_n;
end $$;

-- Enqueues the job of a schedule for an occurrence; its meta says which.
create or replace function millrace.schedule_enqueue(p_now timestamptz, p_schedule millrace.schedule, p_for timestamptz)
returns bigint
language sql
as $$
  select millrace.enqueue_at(p_now, p_schedule.job_kind, p_schedule.payload_args, p_schedule.job_queue, p_schedule.job_priority, null, null,
                             null, null, null, null, null, null, null,
                             jsonb_build_object('schedule', p_schedule.schedule_name, 'scheduled_for', p_for), null, null, 'cron')
$$;
