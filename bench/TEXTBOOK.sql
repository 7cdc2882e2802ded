-- SPDX-License-Identifier: PostgreSQL
-- The textbook queue that every ratio of the benchmarks refers to: one row a job, a partial index over what is available,
-- a claim that updates under SKIP LOCKED, a completion that updates once more. No trigger, no NOTIFY, one index beside the key:
-- the leanest form of what most PostgreSQL queues do. The driver runs this file at the start of each of its sessions.
create schema if not exists textbook;

create table if not exists textbook.job (
  id          bigint generated always as identity primary key,
  queue       text not null,
  priority    int not null default 50,
  state       text not null default 'available',
  kind        text not null,
  args        jsonb not null,
  attempt     int not null default 0,
  created_at  timestamptz not null default now(),
  worker      text,
  claimed_at  timestamptz,
  lease_until timestamptz,
  finished_at timestamptz
);

create index if not exists job_available
    on textbook.job (queue, priority, id)
 where state = 'available';

prepare textbook_claim (text, int) as
  update textbook.job j
     set state = 'running',
         attempt = j.attempt + 1,
         worker = 'bench',
         claimed_at = now(),
         lease_until = now() + interval '30 seconds'
   where j.id in (select a.id
                    from textbook.job a
                   where a.queue = $1
                     and a.state = 'available'
                   order by a.priority, a.id
                   limit $2
                     for update skip locked)
  returning j.id, j.attempt, j.kind, j.args, j.priority, j.created_at, j.lease_until;

prepare textbook_complete (bigint[]) as
  update textbook.job j
     set state = 'completed',
         finished_at = now()
   where j.id = any ($1)
     and j.state = 'running';

prepare textbook_enqueue (text, jsonb[]) as
  insert into textbook.job (queue, kind, args)
  select $1, 'bench', a
    from unnest($2) a;
