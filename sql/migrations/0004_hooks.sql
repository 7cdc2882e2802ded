-- SPDX-License-Identifier: PostgreSQL
-- Hooks: jobs whose end is the business of others, too. A job has one when it has a unique key, an ordering key or a batch; a claim that holds such a job
-- carries its hooks, and only then anybody looks (see jobs_ended). And the first of them: unique keys, held by a job until it ends.
create type millrace.hook as (
  job_id      bigint,
  lane        int,
  order_key   text,
  unique_name text,
  batch_id    bigint
);
comment on type millrace.hook is 'why the end of a job is the business of others, too';
alter table millrace.claim add column hooks millrace.hook[];
comment on column millrace.claim.hooks is 'of its jobs, in the order of positions, null for one that has none; null where none has one';
alter table millrace.job add column batch_id bigint;
alter table millrace.delayed add column batch_id bigint;

create table millrace.unique_key (
  queue_id    int not null,
  unique_name text not null,
  job_id      bigint not null,
  quiet_time  interval,
  free_at     timestamptz,
  constraint unique_key_pk primary key (queue_id, unique_name)
);
create index unique_key_job on millrace.unique_key (job_id);
create index unique_key_free on millrace.unique_key (free_at) where free_at is not null;
comment on table millrace.unique_key is 'keys of jobs that have not ended, and of those that completed a short while ago';
comment on column millrace.unique_key.quiet_time is 'how long the key is held after its job has completed';
comment on column millrace.unique_key.free_at is 'its job has completed: until when the key is held';

-- Functions that get other parameters or results.
drop function if exists millrace.range_jobs(int, int, xid8, bigint, xid8, pg_snapshot, int);
drop function if exists millrace.take_odd(timestamptz, int, int, xid8, bigint, xid8, pg_snapshot, int, int, int, bigint, text, timestamptz, boolean, boolean);
drop function if exists millrace.enqueue_at(timestamptz, text, jsonb, text, int, timestamptz, interval, text, text, text, text, int, interval, interval, jsonb, bytea, bytea, text);
drop function if exists millrace.enqueue(text, jsonb, text, int, timestamptz, interval, text, text, text, text, int, interval, interval, jsonb, bytea, bytea);
drop function if exists millrace.check_job(text, text, jsonb, text, int, timestamptz, interval, text, text, text, text, int, interval, interval);
