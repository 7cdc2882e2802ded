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
  constraint move_pkey primary key (move_id),
  constraint move_once unique (queue_id, place_name, place_queue)
);
comment on table millrace.move is 'queues that are, or were, moved elsewhere: one row for each queue and place';
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
  job_id        bigint not null,
  lane          int not null,
  facts         jsonb not null,
  payload_args  jsonb,
  payload_meta  jsonb,
  payload_state bytea,
  payload_blob  bytea
);
create index moving_batch on millrace.moving (move_id, batch_no, ord);
create index moving_job on millrace.moving (job_id);
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
