-- SPDX-License-Identifier: PostgreSQL
-- What pages, metrics and the HTTP interface look at: more of what the ledger learns anyway, a longer pulse, rounds of upkeep; and keys that make a
-- request repeatable.

-- The ledger: besides what was completed and failed, how attempts ended. Counted from this version on.
alter table millrace.tally
  add column fresh_total     bigint not null default 0,
  add column retried_total   bigint not null default 0,
  add column dead_total      bigint not null default 0,
  add column rescued_total   bigint not null default 0,
  add column cancelled_total bigint not null default 0;
comment on column millrace.tally.fresh_total is 'rows of the log that are no retry: jobs that came in';
comment on column millrace.tally.retried_total is 'attempts that failed, after which there is another one';

-- The pulse: gauges beside the totals, a row for all queues together (queue_id 0), and eight leaves instead of four, for six hours.
alter table millrace.pulse
  add column fresh_total     bigint not null default 0,
  add column retried_total   bigint not null default 0,
  add column dead_total      bigint not null default 0,
  add column rescued_total   bigint not null default 0,
  add column cancelled_total bigint not null default 0,
  add column available       bigint not null default 0,
  add column running         bigint not null default 0;
comment on column millrace.pulse.queue_id is '0: the sum of all queues';
do $$
begin
  for i in 4..7 loop
    execute format('create table millrace.pulse_%s partition of millrace.pulse for values in (%s)', i, i);
  end loop;
end $$;

-- Rounds of maintain, appended and read newest first. Four leaves, one an hour.
create table millrace.upkeep_round (
  slot     int2 not null,
  ended_at timestamptz not null,
  duties   jsonb not null
) partition by list (slot);
comment on table millrace.upkeep_round is 'rounds of maintain: a row for each that did something, and every ten seconds';
comment on column millrace.upkeep_round.duties is 'for each duty: when it ran last, for how many milliseconds, what it did then, and in all';
do $$
begin
  for i in 0..3 loop
    execute format('create table millrace.upkeep_round_%s partition of millrace.upkeep_round for values in (%s)', i, i);
  end loop;
end $$;
create index upkeep_round_newest on millrace.upkeep_round (ended_at);

-- Keys of enqueue_once, in six leaves of six hours each. No unique index: a key may stand in any of them, and a lock makes sure of it.
create table millrace.once_key (
  slot      int2 not null,
  made_at   timestamptz not null,
  once_name text not null,
  jobs_hash bytea not null,
  job_ids   bigint[] not null
) partition by list (slot);
comment on table millrace.once_key is 'keys of enqueue_once and what was enqueued under them, kept for a day';
do $$
begin
  for i in 0..5 loop
    execute format('create table millrace.once_key_%s partition of millrace.once_key for values in (%s)', i, i);
  end loop;
end $$;
create index once_key_name on millrace.once_key (once_name);

create type millrace.queue_figures as (
  queue               text,
  available           bigint,
  running             bigint,
  scheduled           bigint,
  retrying            bigint,
  dead                bigint,
  completed_1h        bigint,
  failed_1h           bigint,
  oldest_seconds      double precision,
  avg_wait_seconds_1h double precision,
  avg_run_seconds_1h  double precision,
  claims_open         bigint,
  enqueued_total      bigint,
  completed_total     bigint,
  failed_total        bigint,
  retried_total       bigint,
  dead_total          bigint,
  rescued_total       bigint,
  cancelled_total     bigint
);
comment on type millrace.queue_figures is 'figures of a queue: those of queue_stats, and totals as the ledger has them';

-- Functions that get other parameters.
drop function if exists millrace.window_count(int, pg_snapshot, pg_snapshot);
drop function if exists millrace.queue_totals(millrace.queue);

-- What one source has for a page of list_jobs.
create type millrace.page_part as (
  keys   bigint[],
  places jsonb[],
  faces  jsonb[],
  place  jsonb
);
comment on type millrace.page_part is
  'jobs, newest first: what they are sorted by, where to go on behind each, and the jobs; place: where to go on behind all of them, null: there is nothing more';
