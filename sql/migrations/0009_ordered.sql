-- SPDX-License-Identifier: PostgreSQL
-- Ordered queues: of the jobs with one ordering key one runs at a time, in the order of the log. A claim that meets a job whose turn it is not sets
-- it aside (in delayed, why o); the end of the job before lets it in again. docs/architecture.md has the rules and the races.
alter table millrace.queue
  add column ordered boolean not null default false,
  add column on_failure text not null default 'hold',
  add constraint queue_on_failure check (on_failure in ('hold', 'skip'));
update millrace.queue_setting s
   set column_name = 'ordered',
       default_text = 'false'
 where s.setting_name = 'ordered';
insert into millrace.queue_setting (setting_name, column_name, value_type, default_text, least_value, most_value, summary)
values ('on_failure', 'on_failure', 'text', 'hold', null, null, 'hold: a failed job of an ordered queue holds its key until it ends, or skip: the next one goes first');

create sequence millrace.turn_seq as bigint;
comment on sequence millrace.turn_seq is 'numbers turns and the places of jobs that are set aside; cache must stay 1';

-- Whose turn it is. Only ever inserted and deleted, and read newest first: so a look costs the same however many jobs of a key have ended
-- while vacuum was stuck. That there is one row for a key is the work of locks: see turns_pass.
create table millrace.turn (
  queue_id  int not null,
  order_key text not null,
  no        bigint not null,
  job_id    bigint not null,
  from_pos  bigint not null,
  given_at  timestamptz not null
);
create index turn_pk on millrace.turn (queue_id, order_key, no);
create index turn_idle on millrace.turn (given_at) where job_id = 0;
comment on table millrace.turn is 'keys of ordered queues and the job whose turn it is; a key that is not here is free, and nothing of it is set aside';
comment on column millrace.turn.no is 'rises with every change, from turn_seq';
comment on column millrace.turn.job_id is '0: nobody''s; if jobs are set aside all the same, turn_doubt has the key';
comment on column millrace.turn.from_pos is 'jobs that are set aside have a larger aside_pos';

-- Turns that could not be passed on at once: somebody else was at the row, or the transaction could not see what was set aside.
create table millrace.turn_doubt (
  queue_id  int not null,
  order_key text not null,
  turn_no   bigint not null
);
comment on table millrace.turn_doubt is 'keys that upkeep has to look at, soon gone';
comment on column millrace.turn_doubt.turn_no is 'the turn that is over; 0: it is not known whether it is';

alter table millrace.delayed add column aside_pos bigint;
comment on column millrace.delayed.aside_pos is 'of a job that was set aside: its place in the line of its key, from turn_seq';
comment on column millrace.delayed.why is
  's scheduled, r retry after a failure, l retry after a lost lease, z put off by its worker, p paused, w waits for other jobs, o set aside until it is its turn';
create index delayed_aside on millrace.delayed ((lane >> 12), order_key, aside_pos) where why = 'o';
alter table millrace.archive add column order_key text;
alter table millrace.pulse add column aside bigint not null default 0;

-- Functions that get other parameters.
drop function if exists millrace.lane_for(int, bigint);
