-- SPDX-License-Identifier: PostgreSQL
--
-- The two sides of the incident: a queue whose jobs all die, and one that works.
create schema incident;

-- n jobs of 4.5 KB that fail for good, a thousand at a time, as fast as it goes.
create procedure incident.flood(n int)
language plpgsql
as $$
declare
  v_args  jsonb := jsonb_build_object('url', '/gone', 'body', (select string_agg(md5(i::text), '') from generate_series(1, 140) i));
  v_lease text;
  v_ends  jsonb;
begin
  for i in 1 .. n / 1000 loop
    perform millrace.enqueue_many('invocation', array_fill(v_args, array[1000]), 'broken');
    commit;
    loop
      select min(c.lease), jsonb_agg(jsonb_build_object('id', c.id, 'outcome', 'failed', 'error', 'the service answered 404', 'retry', false))
        into v_lease, v_ends
        from millrace.claim('broken', 'flood', 1000) c;
      exit when v_lease is null;
      perform millrace.finish(v_lease, v_ends);
      commit;
    end loop;
  end loop;
end $$;

-- Works for so many seconds with a backlog of ten thousand: a hundred jobs come, a hundred are taken and done. How many, and the longest claim.
create procedure incident.work(seconds int, inout jobs bigint = 0, inout slowest_ms numeric = 0)
language plpgsql
as $$
declare
  v_end   timestamptz := clock_timestamp() + make_interval(secs => seconds);
  v_begun timestamptz;
  v_lease text;
begin
  while clock_timestamp() < v_end loop
    perform millrace.enqueue_many('fetch', array_fill('{"url": "/ok"}'::jsonb, array[100]), 'steady');
    commit;
    v_begun := clock_timestamp();
    select min(c.lease)
      into v_lease
      from millrace.claim('steady', 'steady', 100) c;
    commit;
    slowest_ms := greatest(slowest_ms, round((extract(epoch from clock_timestamp() - v_begun) * 1000)::numeric, 1));
    jobs := jobs + millrace.complete(v_lease);
    commit;
  end loop;
end $$;

-- Depth of the queue that works, its backlog; bytes of the dead letters with their indexes, and of the whole database.
create function incident.sample(out depth bigint, out letters_mb bigint, out database_mb bigint)
language sql
as $$
  select millrace.depth('steady'),
         (select sum(pg_total_relation_size(i.inhrelid)) / 1000000 from pg_inherits i where i.inhparent = 'millrace.dead'::regclass)::bigint,
         pg_database_size(current_database()) / 1000000
$$;
