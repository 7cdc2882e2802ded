-- SPDX-License-Identifier: PostgreSQL
-- Schedules: jobs that a calendar enqueues.

-- A cron expression, read. Each list rises and holds no value twice.
create type millrace.cron_spec as (
  seconds   int[],
  minutes   int[],
  hours     int[],
  days      int[],
  months    int[],
  week_days int[]
);
comment on type millrace.cron_spec is
  'a cron expression, read; days: 1 to 31, 100 + n the weekday nearest to n, 200 + n the day n before the last, 300 the last weekday, null: any; '
  'week_days: 0 (Sunday) to 6, 10 * n + d the n-th such day of the month, 60 + d the last one, null: any';

-- One row a schedule, updated with each run: a pass looks from a hint on, so that old versions are not walked (see schedule_due).
create table millrace.schedule (
  schedule_name text not null,
  cron_text     text not null,
  zone_name     text not null,
  catch_up_mode text not null,
  enabled       boolean not null,
  job_kind      text not null,
  payload_args  jsonb,
  job_queue     text not null,
  job_priority  int not null,
  set_at        timestamptz not null,
  next_at       timestamptz,
  look_at       timestamptz,
  last_at       timestamptz,
  last_job_id   bigint,
  last_error    text,
  constraint schedule_pk primary key (schedule_name),
  constraint schedule_catch_up check (catch_up_mode in ('none', 'last', 'all')),
  constraint schedule_enabled check (enabled or next_at is null),
  constraint schedule_look check ((next_at is null) = (look_at is null))
);
create index schedule_due on millrace.schedule (look_at) where look_at is not null;
comment on table millrace.schedule is 'what a calendar enqueues';
comment on column millrace.schedule.next_at is 'the next occurrence; moving it, in the transaction that enqueues the job, is the proof that it is enqueued once';
comment on column millrace.schedule.look_at is 'when a pass looks at it: at next_at, or later after an error';
comment on column millrace.schedule.last_at is 'the newest occurrence that was enqueued';
comment on column millrace.schedule.last_error is 'why the newest occurrence could not be enqueued; null once one could';

create sequence millrace.schedule_hint as bigint minvalue 0;
create sequence millrace.schedule_sweep as bigint minvalue 0;
comment on sequence millrace.schedule_hint is 'milliseconds since 1970: where the next pass over schedules starts';
comment on sequence millrace.schedule_sweep is 'milliseconds since 1970: the last pass over all schedules';

-- As in the logs.
do $$
begin
  if exists (select from pg_settings s where s.name = 'default_toast_compression' and 'lz4' = any (s.enumvals)) then
    alter table millrace.schedule alter column payload_args set compression lz4;
  end if;
end $$;
