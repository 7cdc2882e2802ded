-- SPDX-License-Identifier: PostgreSQL
-- Marks: what was decided from outside about a job that waits in the log or runs. A row of the log is never changed; whoever comes to it looks
-- for its mark. Where there is none, mark_hint is 0 and nobody looks.
create table millrace.mark (
  lane      int not null,
  pos       bigint not null,
  job_id    bigint not null,
  letter    "char" not null,
  made_at   timestamptz not null,
  mark_text text,
  constraint mark_pk primary key (lane, pos),
  constraint mark_letter check (letter in ('k', 'a', 'w'))
);
create index mark_lookup on millrace.mark (job_id);
create index mark_asked on millrace.mark (made_at) where letter = 'a';
comment on table millrace.mark is 'what was decided about jobs that wait or run; gone once the cursor has passed them, or their claim has ended';
comment on column millrace.mark.letter is
  'k cancelled while it waited, a cancelled while it ran: its worker is told, w withdrawn: it goes on elsewhere';
comment on column millrace.mark.mark_text is 'the reason that was given';

create sequence millrace.mark_hint as bigint minvalue 0;
comment on sequence millrace.mark_hint is '0: there is no mark';

comment on column millrace.claim.outcome is
  'a letter a job: o open, c completed, f failed, d dead, r released, q requeued, l lost, x expired, k cancelled, w withdrawn; null while all are alike';

-- A job that is paused has no time; this is the one it had.
alter table millrace.delayed add column resume_at timestamptz;
comment on column millrace.delayed.why is
  's scheduled, r retry after a failure, l retry after a lost lease, z put off by its worker, p paused';
comment on column millrace.delayed.resume_at is 'of a paused job: when it was due; null: at once';
