-- SPDX-License-Identifier: PostgreSQL
-- Batches: jobs that end together. What happens to a batch is written down in notes, appended by whoever adds members or ends them, so that none
-- waits for another; upkeep folds them into totals (see batches_fold). And jobs that wait until others have completed.
create sequence millrace.batch_seq as bigint;
create table millrace.batch (
  batch_id         bigint not null default nextval('millrace.batch_seq'),
  batch_label      text,
  began_at         timestamptz not null,
  sealed_at        timestamptz,
  payload_complete jsonb,
  payload_death    jsonb,
  payload_end      jsonb,
  constraint batch_pk primary key (batch_id)
);
comment on table millrace.batch is 'batches: locked by those who add members, so that sealing one waits for them';
comment on column millrace.batch.payload_complete is 'the job that is enqueued when all members have completed; the others: when the first died, when all have ended';

create table millrace.batch_note (
  xid         xid8 not null default pg_current_xact_id(),
  batch_id    bigint not null,
  member_n    int not null default 0,
  completed_n int not null default 0,
  dead_n      int not null default 0,
  cancelled_n int not null default 0,
  expired_n   int not null default 0,
  sealed      boolean not null default false
);
create index batch_note_xid on millrace.batch_note (xid);
comment on table millrace.batch_note is 'what happened to batches and is not in their totals yet';

create table millrace.batch_total (
  batch_id        bigint not null,
  no              bigint not null,
  member_n        bigint not null default 0,
  completed_n     bigint not null default 0,
  dead_n          bigint not null default 0,
  cancelled_n     bigint not null default 0,
  expired_n       bigint not null default 0,
  sealed          boolean not null default false,
  ended_at        timestamptz,
  complete_job_id bigint,
  death_job_id    bigint,
  end_job_id      bigint,
  last_error      text,
  constraint batch_total_pk primary key (batch_id, no)
);
create index batch_total_turn on millrace.batch_total (no, batch_id);
create index batch_total_open on millrace.batch_total (batch_id) where ended_at is null;
create index batch_total_ended on millrace.batch_total (ended_at) where ended_at is not null;
comment on table millrace.batch_total is 'what is known of each batch; one row, that only upkeep writes';
comment on column millrace.batch_total.no is 'the pass of upkeep that changed it. Newest first: then the dead versions of the row are not walked while a snapshot is held';

create table millrace.batch_pass (
  no      bigint not null,
  win_hi  pg_snapshot not null,
  full_no bigint not null,
  look_no bigint not null,
  look_id bigint not null,
  constraint batch_pass_pk primary key (no)
);
comment on table millrace.batch_pass is 'how far upkeep is with batches; one row';
comment on column millrace.batch_pass.win_hi is 'what is visible in it is in the totals';
comment on column millrace.batch_pass.full_no is 'the newest pass that had taken all there was: totals up to it are those of one moment';
comment on column millrace.batch_pass.look_no is 'batches up to (look_no, look_id) were looked at whether they have ended';
insert into millrace.batch_pass (no, win_hi, full_no, look_no, look_id)
values (0, '1:1:', 0, 0, 0);

create sequence millrace.batch_hint as bigint minvalue 0;
comment on sequence millrace.batch_hint is '0: no batch is open';

-- A job that waits for others is in delayed, without a time; these are the jobs it waits for.
create table millrace.dependency (
  job_id   bigint not null,
  needs_id bigint not null,
  constraint dependency_pk primary key (job_id, needs_id)
);
create index dependency_needs on millrace.dependency (needs_id, job_id);
comment on table millrace.dependency is 'jobs that wait until others have completed; a row goes when the other one has ended';
comment on column millrace.delayed.why is
  's scheduled, r retry after a failure, l retry after a lost lease, z put off by its worker, p paused, w waits for other jobs';
comment on column millrace.delayed.resume_at is 'of a job that is paused or waits for others: when it was due; null: at once';

create sequence millrace.depend_hint as bigint minvalue 0;
create sequence millrace.depend_place as bigint minvalue 0;
create sequence millrace.depend_low as bigint minvalue 0;
create sequence millrace.depend_sweep as bigint minvalue 0;
create sequence millrace.depend_seen as bigint minvalue 0;
comment on sequence millrace.depend_hint is '0: no job waits for another';
comment on sequence millrace.depend_place is 'the job that was looked at last, of those that others wait for';
comment on sequence millrace.depend_low is 'no job before it is waited for, as far as the last round knew';
comment on sequence millrace.depend_seen is 'milliseconds since 1970: the last time that a job waited for another';
comment on sequence millrace.depend_sweep is 'milliseconds since 1970: the last round that began at the beginning';

do $$
begin
  if exists (select from pg_settings s where s.name = 'default_toast_compression' and 'lz4' = any (s.enumvals)) then
    alter table millrace.batch
      alter column payload_complete set compression lz4,
      alter column payload_death set compression lz4,
      alter column payload_end set compression lz4;
  end if;
end $$;

-- Functions that get other parameters.
drop function if exists millrace.enqueue_jobs_at(timestamptz, jsonb);
drop function if exists millrace.enqueue_at(timestamptz, text, jsonb, text, int, timestamptz, interval, text, text, text, text, int, interval, interval, jsonb, bytea, bytea, text, text, interval);
drop function if exists millrace.enqueue(text, jsonb, text, int, timestamptz, interval, text, text, text, text, int, interval, interval, jsonb, bytea, bytea, text, interval);
