-- SPDX-License-Identifier: PostgreSQL
-- Unique keys that are used over and over beside a snapshot that is held. A key that is given back is not deleted but numbered anew, with each use, and
-- found by its highest number: what earlier uses left behind stands below it in the index, and nobody comes by.
alter table millrace.unique_key
  add column use_no    bigint not null default 1,
  add column forget_at timestamptz,
  drop constraint unique_key_pk,
  add constraint unique_key_pk primary key (queue_id, unique_name, use_no);
alter table millrace.unique_key alter column use_no drop default;
drop index millrace.unique_key_free;
update millrace.unique_key set forget_at = free_at where free_at is not null;
create index unique_key_forget on millrace.unique_key (forget_at) where forget_at is not null;
comment on table millrace.unique_key is 'keys of jobs that have not ended, and of those that ended a short while ago: one row a key';
comment on column millrace.unique_key.use_no is 'rises by one when the key is taken and when it is given back';
comment on column millrace.unique_key.free_at is 'its job has ended: until when the key is held';
comment on column millrace.unique_key.forget_at is 'when the row may go, if nobody takes the key before';

create sequence millrace.unique_hint as bigint minvalue 0;
create sequence millrace.unique_sweep as bigint minvalue 0;
comment on sequence millrace.unique_hint is 'milliseconds since 1970: no key is to be forgotten before it, as far as the last pass knew';
comment on sequence millrace.unique_sweep is 'milliseconds since 1970: the last pass over keys that ignored the hint';

-- One function appends jobs that were set aside to the log again, aside_let_in.
drop function if exists millrace.turns_let_in(timestamptz, tid[]);
drop function if exists millrace.lines_move(timestamptz, tid[], int);
