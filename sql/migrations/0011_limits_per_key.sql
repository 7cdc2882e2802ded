-- SPDX-License-Identifier: PostgreSQL
-- Limits inside a queue: how many jobs of one ordering key run at once, and how many of one tenant are started in a time. A claim that meets a job
-- for which there is no room sets it aside (in delayed, why k or t), in a line; a claim that finds room lets the first of a line in again.
-- docs/architecture.md has the rules.
alter table millrace.queue
  add column key_limit int,
  add column tenant_rate text;
comment on column millrace.queue.key_limit is 'jobs of one ordering key running at once; null: any number';
comment on column millrace.queue.tenant_rate is 'jobs of one tenant started per time, as rate_parse reads it; null: any number';
insert into millrace.queue_setting (setting_name, column_name, value_type, default_text, least_value, most_value, summary, zero_hint)
values
  ('concurrency_per_key', 'key_limit',   'integer', null, 1,    1000000, 'jobs of one ordering_key running at once',
   'To stop a queue, pause it; null takes the limit away.'),
  ('rate_per_tenant',     'tenant_rate', 'rate',    null, null, null,    'jobs of one tenant started per time, such as 100/s, 5000/min, 20/h', null);

-- Starts are counted for the whole queue, and for each tenant.
alter table millrace.started add column share text not null default '';
comment on column millrace.started.share is 'empty: the whole queue; otherwise t and the tenant';
drop index millrace.started_queue;
create index started_share on millrace.started (queue_id, share, started_at, started_total);

comment on column millrace.delayed.why is
  's scheduled, r retry after a failure, l retry after a lost lease, z put off by its worker, p paused, w waits for other jobs, o set aside until it is its turn, k set aside until there is room for its key, t until there is room for its tenant';
create index delayed_line on millrace.delayed (lane, (case why when 'k' then order_key else job_tenant end), aside_pos) where why in ('k', 't');

-- Which lines a queue has. Each change is a new row that takes the place of the one before, found newest first: a look costs the same whatever vacuum does.
-- Read and written by whoever has the queue's lock (class 12).
create type millrace.line as (
  lane      int,
  why       "char",
  line_name text,
  from_pos  bigint,
  again_at  timestamptz
);
comment on type millrace.line is
  'jobs of a priority (lane: part 0 of it) that are set aside for one key (why k) or tenant (t): those with a larger aside_pos than from_pos; again_at: no room before';
create table millrace.line_list (
  queue_id int not null,
  no       bigint not null,
  made_at  timestamptz not null,
  lines    millrace.line[] not null
);
create index line_list_newest on millrace.line_list (queue_id, no);
comment on table millrace.line_list is 'the lines of each queue that has or had some; a line that is empty may stand here for a while';
comment on column millrace.line_list.no is 'from turn_seq; the newest counts';

-- Functions that get other parameters.
drop function if exists millrace.rate_parse(text);
drop function if exists millrace.refuse_rate(text, text, text);
drop function if exists millrace.rate_room(timestamptz, millrace.queue);
