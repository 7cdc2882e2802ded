-- SPDX-License-Identifier: PostgreSQL
--
-- A handler of the demo (sql): books a batch of entries with one statement. The entries and the completion of their
-- jobs are one transaction, so each job is booked exactly once, whatever dies when. What it returns has failed.
create schema if not exists demo;

create table if not exists demo.entry (job bigint primary key, amount numeric not null);

create or replace function demo.book(jobs jsonb[])
returns table (id bigint, error text)
language sql
as $$
  with given as (
    select (j ->> 'id')::bigint as job, (j #>> '{args,amount}')::numeric as amount
      from unnest(jobs) j
  ), booked as (
    insert into demo.entry
    select g.job, g.amount
      from given g
     where g.amount > 0
  )
  select g.job, format('the amount is %s', g.amount)
    from given g
   where g.amount <= 0
$$;
