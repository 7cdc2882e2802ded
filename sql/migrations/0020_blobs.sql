-- SPDX-License-Identifier: PostgreSQL
-- Payloads in a blob store. A part (state, blob) of a job that waits for long, or is a dead letter, may be away: an object in a store that the daemon
-- writes and reads, and in the row a reference of some 200 bytes in its place. SQL never talks to the store: it says what is to be carried, and
-- takes note of what was. docs/architecture.md has the rules.
alter table millrace.queue
  add column offload_after interval,
  add column offload_dead boolean not null default false;
comment on column millrace.queue.offload_after is 'parts of jobs that are delayed for longer than this are moved to the blob store until they are due; null: none';
comment on column millrace.queue.offload_dead is 'parts of dead letters are moved to the blob store';
insert into millrace.queue_setting (setting_name, column_name, value_type, default_text, least_value, most_value, summary)
values
  ('offload_delay', 'offload_after', 'interval', null,    10, 3153600000,   'state and blob of jobs delayed for longer than this wait in the blob store'),
  ('offload_dead',  'offload_dead',  'boolean',  'false', null, null,       'state and blob of dead letters are moved to the blob store');

-- What is to be moved has a number, given when the row is written; so new ones are found behind old ones, whatever dead rows lie between. Rows of other
-- queues have none, and are in neither index.
create sequence millrace.offload_seq as bigint cache 1;
comment on sequence millrace.offload_seq is 'numbers of rows whose payload is to be moved to the blob store';
alter table millrace.delayed
  add column out_no bigint,
  add column away_due timestamptz;
comment on column millrace.delayed.out_no is 'not null: the payload is to be moved to the blob store';
comment on column millrace.delayed.away_due is 'not null: the payload is in the blob store, and this is when the job was due; due_at is when to try next';
create index delayed_out on millrace.delayed (out_no) where out_no is not null;
create index delayed_away on millrace.delayed (due_at) where away_due is not null;
alter table millrace.dead
  add column out_no bigint;
comment on column millrace.dead.out_no is 'not null: the payload is to be moved to the blob store';
create index dead_out on millrace.dead (out_no) where out_no is not null;

-- The ledger: every object that a row names. An object of the store that is in neither of the two tables was written by somebody who did not live to
-- commit its name, and is removed.
create table millrace.blob_object (
  object_key   text not null,
  job_id       bigint not null,
  kept_at      timestamptz not null,
  look_at      timestamptz not null,
  object_bytes bigint not null
);
comment on table millrace.blob_object is 'objects of the blob store that jobs name';
comment on column millrace.blob_object.look_at is 'when to see whether the job names it still';
create index blob_object_key on millrace.blob_object (object_key);
create index blob_object_job on millrace.blob_object (job_id);
create index blob_object_look on millrace.blob_object (look_at);

create sequence millrace.doom_seq as bigint cache 1;
create table millrace.blob_doomed (
  doom_no    bigint not null default nextval('millrace.doom_seq'),
  doomed_at  timestamptz not null,
  object_key text not null
);
comment on table millrace.blob_doomed is 'objects of the blob store that no job names any more, until they are removed';
create index blob_doomed_no on millrace.blob_doomed (doom_no);
create index blob_doomed_key on millrace.blob_doomed (object_key);

create sequence millrace.objects_removed as bigint minvalue 0;
comment on sequence millrace.objects_removed is 'objects removed from the blob store so far';

-- What the names of this database's objects begin with. A copy of it gets another one (see rehome): two databases never remove each other's objects.
alter table millrace.home
  add column blob_home text not null default left(replace(gen_random_uuid()::text, '-', ''), 16);
comment on column millrace.home.blob_home is 'the first part of the names of this database''s objects in a blob store';
