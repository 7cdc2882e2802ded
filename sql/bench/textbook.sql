-- SPDX-License-Identifier: PostgreSQL
-- The textbook queue that ratios refer to: one row a job, a partial index over what is available, a claim that updates under
-- SKIP LOCKED, a completion that updates once more. No trigger, no NOTIFY, one index beside the key: the leanest form of what most
-- PostgreSQL queues do.
create schema textbook;

create table textbook.job (
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

create index job_available
    on textbook.job (queue, priority, id)
 where state = 'available';
