-- SPDX-License-Identifier: PostgreSQL
--
-- A handler as a function in the database:
--
--   psql -f charge.sql
--   millrace work payments --sql shop.charge --timeout 30s
--
-- The row in shop.charge_log and the job's completion are one transaction: there is exactly one
-- row for each job that completed, whatever dies when.
create schema if not exists shop;

create table if not exists shop.charge_log (job bigint primary key, amount numeric not null);

create or replace function shop.charge(job jsonb)
returns jsonb
language plpgsql
as $$
declare
  v_amount numeric := job #>> '{args,amount}';
begin
  -- Not yet: try again in a second, this attempt not counted. What is kept in state is there next time.
  if job #> '{args,wait_once}' is not null and not job ? 'state' then
    return jsonb_build_object('outcome', 'snoozed', 'delay', 1, 'state', encode('waited', 'base64'));
  end if;
  -- Longer than the timeout: ended by the server, and tried again.
  perform pg_sleep(coalesce((job #>> '{args,sleep}')::float, 0));
  -- What is raised fails the job. It is tried again later, and ends as a dead letter after the last attempt.
  if v_amount is null or v_amount <= 0 then
    raise exception 'amount must be positive, not %', coalesce(v_amount::text, 'nothing');
  end if;
  insert into shop.charge_log values ((job ->> 'id')::bigint, v_amount);
  return jsonb_build_object('charged', v_amount);
end $$;
