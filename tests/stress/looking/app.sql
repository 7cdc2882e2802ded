-- SPDX-License-Identifier: PostgreSQL
-- One job that goes round, and somebody who looks.
create schema app;
create table app.moved (moves bigint);
create table app.look (found text);

-- Moves the job of a queue about, each step in a transaction of its own; ends with its time.
create procedure app.move(p_queue text, p_for interval)
language plpgsql
as $$
declare
  v_until timestamptz := clock_timestamp() + p_for;
  v_moves bigint := 0;
  v_job   record;
begin
  while clock_timestamp() < v_until loop
    select c.lease, c.id
      into v_job
      from millrace.claim(p_queue, lease_for => case when v_moves % 4 = 0 then interval '1 microsecond' else interval '1 minute' end) c;
    commit;
    continue when v_job.id is null;      -- not due yet: a claim promotes and rescues what is
    v_moves := v_moves + 1;
    case (v_moves - 1) % 4
      when 0 then
        perform millrace.rescue(clock_timestamp(), 100);
      when 1 then
        perform millrace.fail(v_job.lease, v_job.id, 'again', retry_in => interval '1 microsecond');
      when 2 then
        perform millrace.requeue(v_job.lease, v_job.id, '{"delay": "1 microsecond"}');
      when 3 then
        perform millrace.release(v_job.lease);
    end case;
    commit;
    perform millrace.promote(clock_timestamp(), 100);
    commit;
  end loop;
  insert into app.moved (moves)
  values (v_moves);
end $$;

-- Looks until the mover is done, which it says in app.moved, or a minute has passed; keeps what was not one job.
create procedure app.look(p_query text)
language plpgsql
as $$
declare
  v_until timestamptz := clock_timestamp() + interval '1 minute';
  v_look  record;
begin
  while clock_timestamp() < v_until and not exists (select from app.moved) loop
    execute p_query into v_look;
    commit;
    if v_look.n is distinct from 1 then
      insert into app.look (found)
      values (coalesce(v_look.found::text, 'nothing'));
    end if;
  end loop;
end $$;
