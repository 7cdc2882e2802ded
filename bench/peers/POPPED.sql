-- SPDX-License-Identifier: PostgreSQL
-- A table as pgmq has it, and its two ways to read: popped_take deletes at once, as pop() does, and loses the jobs of a worker
-- that dies with them; popped_read hides jobs for a time and popped_delete removes them, as read() and delete() do, which is
-- what a job queue needs. The driver runs this file at the start of each of its sessions.
create schema if not exists popped;

create table if not exists popped.job (
  id         bigint generated always as identity primary key,
  attempt    int not null default 0,
  created_at timestamptz not null default now(),
  visible_at timestamptz not null default now(),
  args       jsonb not null
);

create index if not exists job_visible
    on popped.job (visible_at, id);

prepare popped_take (int) as
  delete from popped.job j
   where j.id = any (array (select a.id
                              from popped.job a
                             where a.visible_at <= now()
                             order by a.id
                             limit $1
                               for update skip locked))
  returning j.id, j.attempt, j.created_at, j.args;

prepare popped_read (text, int) as
  update popped.job j
     set visible_at = now() + interval '30 seconds',
         attempt = j.attempt + 1
   where j.id = any (array (select a.id
                              from popped.job a
                             where a.visible_at <= now()
                               and $1 <> ''
                             order by a.id
                             limit $2
                               for update skip locked))
  returning j.id, j.attempt, j.created_at, j.visible_at, j.args;

prepare popped_delete (bigint[]) as
  delete from popped.job j
   where j.id = any ($1);

prepare popped_enqueue (text, jsonb[]) as
  insert into popped.job (args)
  select a
    from unnest($2) a
   where $1 <> '';
