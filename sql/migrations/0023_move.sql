-- SPDX-License-Identifier: PostgreSQL
-- Moving a queue to another database. Jobs leave a queue in numbered batches. A batch is frozen in `moving` before anybody elsewhere hears of it; the
-- other database applies batch after batch and remembers the number of the last one with the jobs, in one transaction; then the batch is forgotten here. So
-- a mover may be killed anywhere and be started anywhere again. docs/moving.md has the rules.
create sequence millrace.move_seq as int;

create table millrace.move (
  move_id     int not null default nextval('millrace.move_seq'),
  queue_id    int not null,
  place_name  text not null,
  place_queue text not null,
  origin_name text not null,
  begun_at    timestamptz not null,
  copy        boolean not null default false,
  copy_from   pg_snapshot,
  copy_share  real not null default 100,
  copy_tenant text,
  cut_n       int not null default 0,
  constraint move_pkey primary key (move_id),
  constraint move_once unique (queue_id, place_name, place_queue, copy)
);
comment on table millrace.move is 'queues that are, or were, moved elsewhere: one row for each queue and place';
comment on column millrace.move.copy is 'a shadow: the jobs stay, copies of them go';
comment on column millrace.move.copy_from is 'of a shadow: what was committed before it began is not copied';
comment on column millrace.move.cut_n is 'of a shadow: how often it was so late that part of the log was gone';
comment on column millrace.move.origin_name is 'what the other database knows this move by; it stays when this database is restored elsewhere';

-- Batches that have arrived elsewhere. Appended; the newest is the floor, and what was there before it is deleted.
create table millrace.departure (
  move_id      int not null,
  batch_no     bigint not null,
  departed_at  timestamptz not null,
  total        bigint not null,
  merged_total bigint not null,
  constraint departure_pkey primary key (move_id, batch_no)
);
comment on table millrace.departure is 'how far each move is: the last batch that has arrived there, and how many jobs have in all';

create table millrace.moving (
  move_id       int not null,
  batch_no      bigint not null,
  ord           int not null,
  copy          boolean not null default false,
  job_id        bigint not null,
  lane          int not null,
  facts         jsonb not null,
  payload_args  jsonb,
  payload_meta  jsonb,
  payload_state bytea,
  payload_blob  bytea
);
create index moving_batch on millrace.moving (move_id, batch_no, ord);
create index moving_job on millrace.moving (job_id) where not copy;
comment on table millrace.moving is 'jobs on their way to another database: they are in no queue any more, and not known to have arrived';
comment on column millrace.moving.facts is 'what a job has beside its payload, as move_arrive takes it';

-- Where jobs went. Eight leaves, one a day.
create table millrace.moved (
  slot       int2 not null,
  moved_at   timestamptz not null,
  job_id     bigint not null,
  place_id   bigint,
  created_at timestamptz not null,
  lane       int not null,
  move_id    int not null,
  attempt    int2 not null,
  attempts_limit int2 not null,
  job_kind   text not null,
  job_tenant text,
  job_ref    text,
  job_source text
) partition by list (slot);
do $$
begin
  for i in 0..7 loop
    execute format('create table millrace.moved_%s partition of millrace.moved for values in (%s)', i, i);
  end loop;
end $$;
create index moved_lookup on millrace.moved (job_id);
create index moved_by_ref on millrace.moved (job_ref) where job_ref is not null;
comment on table millrace.moved is 'jobs that were moved elsewhere, kept for a week';
comment on column millrace.moved.place_id is 'the id of the job there';

-- The other side: the last batch of each origin.
create table millrace.arrival (
  origin_name text not null,
  batch_no    bigint not null,
  queue_id    int not null,
  arrived_at  timestamptz not null,
  job_ids     bigint[] not null,
  merged_n    int not null,
  total       bigint not null,
  constraint arrival_pkey primary key (origin_name, batch_no)
);
comment on table millrace.arrival is 'batches that came from elsewhere: of each origin the last one, and how many jobs have come in all';
comment on column millrace.arrival.merged_n is 'jobs of the batch that were not made anew: another one of the queue had their unique key';

do $$
begin
  if 'lz4' = any (select unnest(s.enumvals) from pg_settings s where s.name = 'default_toast_compression') then
    execute 'alter table millrace.moving alter column payload_args set compression lz4, alter column payload_meta set compression lz4,
                                         alter column payload_state set compression lz4, alter column payload_blob set compression lz4';
  end if;
end $$;

-- A shadow reads the log as a claim does, with cursors of its own: appended, read newest first. They pin no segment: what has gone before it was read is cut.
create table millrace.shadow_cursor (
  move_id  int not null,
  lane     int not null,
  no       bigint not null,
  read_at  timestamptz not null,
  win_lo   pg_snapshot not null,
  win_hi   pg_snapshot not null,
  last_xid xid8 not null,
  last_pos bigint not null,
  constraint shadow_cursor_pkey primary key (move_id, lane, no)
);
comment on table millrace.shadow_cursor is 'how far a shadow has read each lane of the job log';

-- The other side of a shadow: copies that have come and were not given out yet, what was found, and what did not match.
create table millrace.mirror (
  origin_name text not null,
  ord         bigint not null,
  job_id      bigint not null,
  copied_id   bigint not null,
  hash        text not null,
  constraint mirror_pkey primary key (job_id)
);
create index mirror_origin on millrace.mirror (origin_name);
comment on table millrace.mirror is 'copies of jobs that wait to be given out and compared';
comment on column millrace.mirror.hash is 'of the kind and the payload, as the other database has them';

create table millrace.mirror_total (
  origin_name  text not null,
  no           bigint not null,
  checked_at   timestamptz not null,
  equal_n      bigint not null,
  different_n  bigint not null,
  disordered_n bigint not null,
  extra_n      bigint not null,
  last_ords    jsonb not null,
  constraint mirror_total_pkey primary key (origin_name, no)
);
comment on table millrace.mirror_total is 'what came of comparing copies: of each origin the last row, with sums';
comment on column millrace.mirror_total.last_ords is 'by lane: the place of the copy that was given out last';

create table millrace.mirror_mismatch (
  origin_name text not null,
  found_at    timestamptz not null,
  what        text not null,
  copied_id   bigint,
  job_id      bigint not null
);
create index mirror_mismatch_origin on millrace.mirror_mismatch (origin_name, found_at);
comment on table millrace.mirror_mismatch is 'copies that did not match, of each origin the newest thousand';

create type millrace.move_batch as (
  origin text,
  batch  bigint,
  jobs   jsonb[],
  args   jsonb[],
  meta   jsonb[],
  state  bytea[],
  blob   bytea[]
);
comment on type millrace.move_batch is 'jobs on their way, as one database gives them and the other takes them';

-- Functions that get other parameters: where jobs come from.
drop function if exists millrace.enqueue_jobs(jsonb);
drop function if exists millrace.enqueue_jobs_at(timestamptz, jsonb, bigint);
drop function if exists millrace.enqueue_once(text, jsonb);
drop function if exists millrace.enqueue_once_at(timestamptz, text, jsonb);
drop function if exists millrace.batch_add(bigint, jsonb);
drop function if exists millrace.batch_add_at(timestamptz, bigint, jsonb);
drop function if exists millrace.page_fits(jsonb, text, text, text, text);
