-- SPDX-License-Identifier: PostgreSQL
-- The storage of Millrace: two append-only logs on a ring of sixteen leaves, and what stands around them.
--
-- Invariants of the layout (docs/architecture.md has the proofs):
--   1. A row of `job` is written once. It is never updated and never deleted; its whole leaf is truncated.
--      (Exceptions: `park` and `lane_relocate` move rows as they are off a leaf that is about to be truncated.)
--   2. `xid` is the first column, so the transaction id exists before `seg` is read. Hence every xid in a
--      segment is smaller than the segment's closed_xid.
--   3. `pos_seq` has cache 1: a position taken after another transaction's commit is larger than its positions.
--      It counts in steps of 32: a number is a block of 31 positions, of which one job takes the first and a pack as many as it has jobs.
--      So the jobs of a pack have ids in a row whoever else enqueues, and no id of another row's lies between them.
--   4. `seg_seq` is moved by `rotate` alone, by setval. It is read with pg_sequence_last_value, which is not
--      transactional, so that a writer with an old snapshot is placed in the open segment too.
--   5. No column has the name of a parameter of a public function.

-- Sequences: positions, the open segment, identifiers, and hints.
-- A hint is overwritten in place and leaves no dead row behind; a lost or old value costs time, never a job.
create sequence millrace.pos_seq as bigint increment 32 cache 1;
create sequence millrace.seg_seq as int minvalue 0;
select setval('millrace.seg_seq', 1);
create sequence millrace.queue_seq as int maxvalue 524287;
create sequence millrace.promote_hint as bigint minvalue 0;
create sequence millrace.rescue_hint as bigint minvalue 0;
create sequence millrace.promote_sweep as bigint minvalue 0;
create sequence millrace.rescue_sweep as bigint minvalue 0;
create sequence millrace.upkeep_clock as bigint minvalue 0;
create sequence millrace.pulse_clock as bigint minvalue 0;
create sequence millrace.clean_clock as bigint minvalue 0;
comment on sequence millrace.pos_seq is 'blocks of positions in the job log (1 to 31, 33 to 63, ...); cache must stay 1';
comment on sequence millrace.seg_seq is 'number of the open segment; moved by rotate() alone';
comment on sequence millrace.promote_hint is 'microseconds since 1970: nothing committed is due before it, as far as the last pass knew';
comment on sequence millrace.rescue_hint is 'microseconds since 1970: no open claim expires before it, as far as the last pass knew';
comment on sequence millrace.promote_sweep is 'milliseconds since 1970: the last promotion that ignored the hint';
comment on sequence millrace.rescue_sweep is 'milliseconds since 1970: the last rescue that ignored the hint';
comment on sequence millrace.upkeep_clock is 'milliseconds since 1970: the last slice of upkeep done by a claim';
comment on sequence millrace.clean_clock is 'milliseconds since 1970: the last time emptied leaves were given back';
comment on sequence millrace.pulse_clock is 'milliseconds since 1970: the last row written to pulse';

-- One sequence for each of 64 groups of queues holds the time until which some worker waits for a wake-up.
do $$
begin
  for i in 0..63 loop
    execute format('create sequence millrace.wait_%s as bigint minvalue 0', i);
  end loop;
end $$;

create table millrace.home (
  only_row     boolean not null default true,
  system_id    bigint not null,
  installed_at timestamptz not null default now(),
  constraint home_pk primary key (only_row),
  constraint home_only_row check (only_row)
);
comment on table millrace.home is 'the cluster whose transaction ids the logs speak of';
insert into millrace.home (system_id)
select system_identifier
  from pg_control_system();

-- Configuration: small, rarely written.
create table millrace.queue_setting (
  setting_name  text not null,
  column_name   text,
  value_type    text not null,
  default_text  text,
  least_value   numeric,
  most_value    numeric,
  summary       text not null,
  constraint queue_setting_pk primary key (setting_name)
);
comment on table millrace.queue_setting is
  'what set_queue accepts; a setting without a column belongs to a later version and is refused';
insert into millrace.queue_setting (setting_name, column_name, value_type, default_text, least_value, most_value, summary)
values
  ('lease',          'lease_time',     'interval', '30 seconds', 0.001, 31536000,    'how long a claim holds its jobs without a heartbeat'),
  ('parts',          'part_count',     'integer',  '1',          1, 32,              'lanes per priority; more let many connections claim single jobs side by side'),
  ('max_attempts',   'attempts_limit', 'integer',  '3',          1, 32000,           'attempts before a job becomes a dead letter'),
  ('poison_limit',   'poison_limit',   'integer',  '3',          1, 32000,           'workers a job may lose in a row while the fleet is healthy'),
  ('retention',      'retention_time', 'interval', '24 hours',   1, 77760000,        'how long finished jobs are kept'),
  ('dead_retention', 'dead_time',      'interval', '30 days',    1, 3153600000,      'how long dead letters are kept'),
  ('dead_max',       'dead_limit',     'bigint',   '100000',     1, 1000000000,      'dead letters kept at most, newest first'),
  ('dead_max_bytes', 'dead_bytes',     'bigint',   '1073741824', 1, 1000000000000,   'bytes of dead letters kept at most, newest first'),
  ('max_args',       'args_bytes',     'bigint',   '1048576',    1, 268435456,       'largest args'),
  ('max_state',      'state_bytes',    'bigint',   '67108864',   1, 1000000000,      'largest state'),
  ('max_blob',       'blob_bytes',     'bigint',   '67108864',   1, 1000000000,      'largest blob'),
  ('warn_depth',     'warn_depth',     'bigint',   '100',        1, 1000000000000,   'pending jobs from which health() says WARNING'),
  ('critical_depth', 'critical_depth', 'bigint',   '1000',       1, 1000000000000,   'pending jobs from which health() says CRITICAL'),
  ('durability',     'durability',     'text',     'strict',     null, null,         'strict, or relaxed: clients may commit completions asynchronously'),
  ('depth_limit',    null,             'bigint',   null,         null, null,         'refuse jobs above this depth'),
  ('overflow',       null,             'text',     null,         null, null,         'queue that takes what depth_limit refuses'),
  ('concurrency',    null,             'integer',  null,         null, null,         'jobs running at once'),
  ('rate',           null,             'text',     null,         null, null,         'jobs started per time'),
  ('ordered',        null,             'boolean',  null,         null, null,         'one job at a time per ordering_key'),
  ('fair',           null,             'boolean',  null,         null, null,         'serve tenants in turn');

create table millrace.queue (
  queue_id       int not null default nextval('millrace.queue_seq'),
  queue_name     text not null,
  created_at     timestamptz not null default now(),
  paused_at      timestamptz,
  lease_time     interval not null default '30 seconds',
  part_count     int not null default 1,
  parts_seen     int not null default 1,
  attempts_limit int not null default 3,
  poison_limit   int not null default 3,
  retention_time interval not null default '24 hours',
  dead_time      interval not null default '30 days',
  dead_limit     bigint not null default 100000,
  dead_bytes     bigint not null default 1073741824,
  args_bytes     bigint not null default 1048576,
  state_bytes    bigint not null default 67108864,
  blob_bytes     bigint not null default 67108864,
  warn_depth     bigint not null default 100,
  critical_depth bigint not null default 1000,
  durability     text not null default 'strict',
  constraint queue_pk primary key (queue_id),
  constraint queue_name_unique unique (queue_name),
  constraint queue_durability check (durability in ('strict', 'relaxed'))
);
comment on table millrace.queue is 'a queue and its settings';

-- lane = queue_id * 4096 + priority * 32 + part: computed, not allocated. The registry says which (queue, priority)
-- have been used; it has no unique index on purpose, so that two producers never wait for each other's commit.
create table millrace.lane (
  lane int not null
);
create index lane_range on millrace.lane (lane);
comment on table millrace.lane is 'part 0 of each (queue, priority) that was ever used; duplicates are harmless';

create table millrace.retry_policy (
  policy_kind    text not null,
  attempts_limit int not null,
  base_delay     interval not null,
  growth         real not null,
  delay_cap      interval not null,
  jitter_share   real not null,
  constraint retry_policy_pk primary key (policy_kind)
);
comment on table millrace.retry_policy is 'attempts and backoff of a kind';

-- Segments: only what cannot be derived. The newest sixteen rows are ever read, newest first.
create table millrace.segment (
  seg            int not null,
  closed_xid     xid8 not null,
  closed_at      timestamptz not null,
  closed_pos     bigint not null,
  parked         boolean not null default false,
  archived_block bigint not null default 0,
  archived       boolean not null default false,
  truncated      boolean not null default false,
  constraint segment_pk primary key (seg)
);
comment on table millrace.segment is 'closed segments; never empty, so that max(seg) + 1 is the first one not recorded as closed';
comment on column millrace.segment.parked is 'on its way out: its open claims and their jobs were moved to the leaves "parked", the rest does not change any more';
insert into millrace.segment (seg, closed_xid, closed_at, closed_pos, parked, archived, truncated)
values (0, '3', now(), 0, true, true, true);

-- The job log. Fixed-width columns first: a job without options costs no padding.
create table millrace.job (
  xid            xid8 not null default pg_current_xact_id(),
  pos            bigint not null default nextval('millrace.pos_seq'),
  job_id         bigint not null,
  created_at     timestamptz not null,
  seg            int not null default pg_sequence_last_value('millrace.seg_seq'::regclass),
  lane           int not null,
  slot           int2 not null default pg_sequence_last_value('millrace.seg_seq'::regclass) % 16,
  attempt        int2 not null default 1,
  lost           int2 not null default 0,
  attempts_limit int2 not null,
  pack_n         int2,
  job_kind       text not null,
  payload_args   jsonb,
  pack           jsonb[],
  ready_at       timestamptz,
  stale_at       timestamptz,
  run_limit      interval,
  payload_meta   jsonb,
  payload_state  bytea,
  payload_blob   bytea,
  job_tenant     text,
  job_ref        text,
  job_source     text,
  trail          jsonb,
  order_key      text,
  unique_name    text
) partition by list (slot);
comment on table millrace.job is 'the job log: one row for each time a job becomes available, or for a pack of jobs that were enqueued together';
comment on column millrace.job.pack_n is 'null: the row is one job. Otherwise it is the jobs pos - pack_n + 1 to pos, whose ids are their positions';
comment on column millrace.job.pack is 'the args of each job of a pack, in order';
comment on column millrace.job.ready_at is 'when this row became available; null: at created_at';
comment on column millrace.job.stale_at is 'a job nobody took by then has expired';
comment on column millrace.job.trail is 'what happened in earlier attempts, newest last';

-- The claim log: one row for a whole batch is the cursor of its lane, the lease and the history at once.
-- The columns that finishing changes stand together at the end, so that the log of an update stays short.
create table millrace.claim (
  slot        int2 not null,
  seg         int not null,
  lane        int not null,
  no          bigint not null,
  win_no      bigint not null,
  last_xid    xid8 not null,
  last_pos    bigint not null,
  last_seg    int not null,
  min_seg     int not null,
  n           int not null,
  total       bigint not null,
  token       uuid,
  claimed_at  timestamptz not null,
  wait_us     bigint not null default 0,
  holder      text,
  lease_time  interval,
  win_lo      pg_snapshot,
  win_hi      pg_snapshot,
  positions   bigint[],
  job_ids     bigint[],
  leased_till timestamptz,
  status      "char" not null,
  open_n      int not null,
  done_n      int not null default 0,
  failed_n    int not null default 0,
  run_us      bigint not null default 0,
  finished_at timestamptz,
  outcome     text
) partition by list (slot);
comment on table millrace.claim is 'the claim log';
comment on column millrace.claim.no is 'dense in its lane: the newest row is the lane''s cursor';
comment on column millrace.claim.win_no is 'the row of the same leaf that holds the window';
comment on column millrace.claim.status is 'r running, d done, l lost, t tick (a cursor alone), p purged';
comment on column millrace.claim.job_ids is 'ids in the order of positions; null where they are the positions';
comment on column millrace.claim.outcome is
  'a letter a job: o open, c completed, f failed, d dead, r released, q requeued, l lost, x expired; null while all are alike';

-- Results that a handler left, only where it left one.
create table millrace.result (
  slot           int2 not null,
  job_id         bigint not null,
  pos            bigint not null,
  finished_at    timestamptz not null,
  payload_result jsonb not null
) partition by list (slot);
comment on table millrace.result is 'results of completed jobs, on the ring of the logs';

-- The depth ledger: running totals, appended, read newest first.
create table millrace.tally (
  slot       int2 not null,
  seg        int not null,
  lane       int not null,
  no         bigint not null,
  counted_at timestamptz not null,
  win_hi     pg_snapshot not null,
  counted    bigint not null,
  settled_no bigint not null,
  open_nos   bigint[] not null,
  done_total bigint not null,
  failed_total bigint not null,
  wait_total bigint not null,
  run_total  bigint not null
) partition by list (slot);
comment on table millrace.tally is 'the depth ledger of each lane: what was counted up to win_hi';

do $$
begin
  for i in -1..15 loop
    declare
      leaf text := case when i < 0 then 'parked' else i::text end;
    begin
      execute format('create table millrace.job_%s partition of millrace.job for values in (%s)', leaf, i);
      -- Out-of-line positions keep a claim's row short, so that finishing a batch piece by piece
      -- rewrites 300 bytes and not the whole list.
      execute format('create table millrace.claim_%s partition of millrace.claim for values in (%s)
                      with (fillfactor = 80, toast_tuple_target = 256)', leaf, i);
      execute format('alter table millrace.claim_%s
                        alter column positions set storage external,
                        alter column job_ids set storage external,
                        alter column outcome set storage main,
                        alter column holder set storage main', leaf);
      if i >= 0 then
        execute format('create table millrace.result_%s partition of millrace.result for values in (%s)', i, i);
        execute format('create table millrace.tally_%s partition of millrace.tally for values in (%s)', i, i);
        -- A leaf of the ring is truncated, so vacuum has nothing to do there but against wraparound; and while it is at a large
        -- leaf the leaf cannot be truncated, and the ring stands still.
        execute (select string_agg(format('alter table millrace.%s_%s
                                             set (autovacuum_vacuum_threshold = 2147483647, autovacuum_vacuum_insert_threshold = -1,
                                                  toast.autovacuum_vacuum_threshold = 2147483647,
                                                  toast.autovacuum_vacuum_insert_threshold = -1)', t, i), '; ')
                   from unnest(array['job', 'claim', 'result', 'tally']) t);
      end if;
    end;
  end loop;
end $$;
-- A pack is made to fit its page, so it is never compressed or stored out of line; nor is a kind to make room for it.
alter table millrace.job
  alter column pack set storage plain,
  alter column job_kind set storage main;
create index job_lane on millrace.job (lane, xid, pos);
create index job_lookup on millrace.job (job_id);
create index job_by_ref on millrace.job (job_ref) where job_ref is not null;
create unique index claim_pk on millrace.claim (lane, no, slot);
create index claim_expiry on millrace.claim (leased_till);
create index result_lookup on millrace.result (job_id);
create unique index tally_pk on millrace.tally (lane, no, slot);

-- Jobs whose time has not come. Leaves by due time (see delayed_slot), each truncated when it is empty.
create table millrace.delayed (
  due_at         timestamptz not null,
  job_id         bigint not null,
  created_at     timestamptz not null,
  lane           int not null,
  slot           int2 not null,
  attempt        int2 not null,
  lost           int2 not null,
  attempts_limit int2 not null,
  why            "char" not null,
  job_kind       text not null,
  payload_args   jsonb,
  stale_at       timestamptz,
  run_limit      interval,
  payload_meta   jsonb,
  payload_state  bytea,
  payload_blob   bytea,
  job_tenant     text,
  job_ref        text,
  job_source     text,
  trail          jsonb,
  order_key      text,
  unique_name    text
) partition by list (slot);
comment on table millrace.delayed is 'jobs whose time has not come: delayed, retried, put off';
comment on column millrace.delayed.why is 's scheduled, r retry after a failure, l retry after a lost lease, z put off by its worker';
do $$
begin
  for i in 0..56 loop
    execute format('create table millrace.delayed_%s partition of millrace.delayed for values in (%s)', i, i);
  end loop;
end $$;
create index delayed_due on millrace.delayed (due_at);
create index delayed_lookup on millrace.delayed (job_id);
create index delayed_lane on millrace.delayed (lane);
create index delayed_by_ref on millrace.delayed (job_ref) where job_ref is not null;

-- Dead letters, one leaf for each day of a 32-day round.
create table millrace.dead (
  died_at        timestamptz not null,
  job_id         bigint not null,
  created_at     timestamptz not null,
  queue_id       int not null,
  lane           int not null,
  bytes          int not null,
  slot           int2 not null,
  attempt        int2 not null,
  lost           int2 not null,
  attempts_limit int2 not null,
  cause          text not null,
  failure        text,
  job_kind       text not null,
  payload_args   jsonb,
  stale_at       timestamptz,
  run_limit      interval,
  payload_meta   jsonb,
  payload_state  bytea,
  payload_blob   bytea,
  job_tenant     text,
  job_ref        text,
  job_source     text,
  trail          jsonb,
  order_key      text,
  unique_name    text
) partition by list (slot);
comment on table millrace.dead is 'dead letters; never read by a claim, never counted as depth';
comment on column millrace.dead.cause is 'failed, poison or damaged';
do $$
begin
  for i in 0..31 loop
    execute format('create table millrace.dead_%s partition of millrace.dead for values in (%s)', i, i);
  end loop;
end $$;
create index dead_queue on millrace.dead (queue_id, died_at, job_id);
create index dead_lookup on millrace.dead (job_id);
create index dead_by_ref on millrace.dead (job_ref) where job_ref is not null;

-- Finished jobs of queues that keep them longer than the log, by the day they may go.
create table millrace.archive (
  finished_at    timestamptz not null,
  keep_until     timestamptz not null,
  job_id         bigint not null,
  created_at     timestamptz not null,
  queue_id       int not null,
  lane           int not null,
  slot           int2 not null,
  attempt        int2 not null,
  attempts_limit int2 not null,
  outcome        "char" not null,
  holder         text,
  claimed_at     timestamptz,
  job_kind       text not null,
  payload_args   jsonb,
  run_limit      interval,
  payload_meta   jsonb,
  payload_state  bytea,
  payload_blob   bytea,
  payload_result jsonb,
  job_tenant     text,
  job_ref        text,
  job_source     text,
  trail          jsonb
) partition by list (slot);
comment on table millrace.archive is 'finished jobs of queues whose retention is longer than the log''s';
do $$
begin
  for i in 0..63 loop
    execute format('create table millrace.archive_%s partition of millrace.archive for values in (%s)', i, i);
  end loop;
end $$;
create index archive_lookup on millrace.archive (job_id);
create index archive_queue on millrace.archive (queue_id, finished_at);
create index archive_by_ref on millrace.archive (job_ref) where job_ref is not null;

-- What a job carries is often compressed already (or noise): pglz spends 13 us to find that out for 2.7 KB, and lz4 much less.
-- PostgreSQL 14 and newer have it, when they were built with it.
do $$
begin
  if exists (select from pg_settings s where s.name = 'default_toast_compression' and 'lz4' = any (s.enumvals)) then
    execute (select string_agg(format('alter table %s alter column %I set compression lz4', a.attrelid::regclass, a.attname), '; ')
               from pg_attribute a
               join pg_class c on c.oid = a.attrelid
              where c.relnamespace = 'millrace'::regnamespace
                and c.relkind in ('r', 'p')
                and a.attname ~ '^payload_|^trail$');
  end if;
end $$;

-- Figures of each queue over time, for what happened in the last hour. Four leaves, one an hour.
create table millrace.pulse (
  slot         int2 not null,
  queue_id     int not null,
  taken_at     timestamptz not null,
  done_total   bigint not null,
  failed_total bigint not null,
  wait_total   bigint not null,
  run_total    bigint not null,
  scheduled    bigint not null,
  retrying     bigint not null,
  dead_count   bigint not null,
  took_ms      real not null
) partition by list (slot);
comment on table millrace.pulse is 'figures of each queue, a row every ten seconds while they change';
do $$
begin
  for i in 0..3 loop
    execute format('create table millrace.pulse_%s partition of millrace.pulse for values in (%s)', i, i);
  end loop;
end $$;
create index pulse_queue on millrace.pulse (queue_id, taken_at);

-- What public functions return.
create type millrace.claimed_job as (
  lease        text,
  id           bigint,
  attempt      int,
  max_attempts int,
  kind         text,
  args         jsonb,
  meta         jsonb,
  state        bytea,
  blob         bytea,
  tenant       text,
  ref          text,
  priority     int,
  source       text,
  created_at   timestamptz,
  lease_until  timestamptz,
  timeout      interval
);
comment on type millrace.claimed_job is 'a job as claim returns it';
create type millrace.lease_state as (
  lease_until timestamptz,
  cancelled   bigint[]
);
comment on type millrace.lease_state is 'what heartbeat returns';
create type millrace.queue_stats as (
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
  avg_run_seconds_1h  double precision
);
comment on type millrace.queue_stats is 'what stats returns for a queue';
create type millrace.queue_health as (
  queue   text,
  status  text,
  message text
);
comment on type millrace.queue_health is 'what health returns; queue is null for what concerns the whole schema';
create type millrace.duty_done as (
  duty text,
  done bigint
);
comment on type millrace.duty_done is 'what maintain returns for a duty';

-- What internal functions hand to each other.
create type millrace.lane_cursor as (
  no         bigint,
  total      bigint,
  seg        int,
  win_no     bigint,
  lo         pg_snapshot,
  hi         pg_snapshot,
  last_seg   int,
  last_xid   xid8,
  last_pos   bigint,
  status     "char",
  claimed_at timestamptz
);
comment on type millrace.lane_cursor is 'the newest claim of a lane with its window';
create type millrace.taken as (
  lane     int,
  lease    text,
  until    timestamptz,
  n        int,
  hi       pg_snapshot,
  seg      int[],
  from_xid xid8[],
  from_pos bigint[],
  to_xid   xid8[],
  rows     int[],
  jobs     millrace.claimed_job[]
);
comment on type millrace.taken is 'what a claim took: n jobs, in ranges of the log that are still to be read, or read already';

-- The latest of some transaction ids. PostgreSQL has it from version 15 on.
do $$
begin
  if current_setting('server_version_num')::int < 150000 then
    create function millrace.later_xid(p_a xid8, p_b xid8)
    returns xid8
    language sql
    immutable
    strict
    as 'select case when p_a > p_b then p_a else p_b end';
    create aggregate millrace.newest_xid(xid8) (sfunc = millrace.later_xid, stype = xid8);
  else
    create aggregate millrace.newest_xid(xid8) (sfunc = pg_catalog.xid8_larger, stype = xid8);
  end if;
end $$;
