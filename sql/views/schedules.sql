-- SPDX-License-Identifier: PostgreSQL
-- The schedules and when they fire next.
drop view if exists millrace.schedules;
create view millrace.schedules as
select s.schedule_name as name, s.cron_text as cron, s.zone_name as timezone, s.job_kind as kind, s.payload_args as args, s.job_queue as queue,
       s.job_priority as priority, s.catch_up_mode as catch_up, s.enabled as active, s.next_at, s.last_at, s.last_job_id, s.last_error, s.set_at
  from millrace.schedule s;
comment on view millrace.schedules is 'the schedules and when they fire next';
