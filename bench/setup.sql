-- SPDX-License-Identifier: PostgreSQL
-- What the benchmarks need inside a database: fast ways to fill and drain it, and ways to look at its size.
-- Loaded once into the template from which each item makes its databases.
create schema bench;

-- Jobs of about 200 bytes of JSON, none of which compresses away.
create function bench.payload(p_count int)
returns jsonb[]
language sql
as $$
  select array_agg(jsonb_build_object('id', g, 'data', repeat(md5(g::text || random()::text), 5) || left(md5(g::text), 16)))
    from generate_series(1, p_count) g
$$;

create function bench.empty_args(p_count int)
returns jsonb[]
language sql
as $$
  select array_fill('{}'::jsonb, array[p_count])
$$;

-- Enqueues p_count jobs, p_chunk a transaction. Segments are closed on the way as a daemon would do it.
-- Light jobs have a row of the log each, which is the worst case (a call with states makes no packs); heavy ones are what users have.
create procedure bench.fill(p_queue text, p_count bigint, p_chunk int, p_heavy boolean, p_priority int = 50)
language plpgsql
as $$
declare
  v_args jsonb[] := case when p_heavy then bench.payload(p_chunk) else bench.empty_args(p_chunk) end;
  v_state bytea[] := case when not p_heavy then array_fill(null::bytea, array[p_chunk]) end;
  v_left bigint := p_count;
  v_n    bigint := 0;
begin
  while v_left > 0 loop
    perform count(*) from millrace.enqueue_many('bench', v_args[1:least(v_left, p_chunk)], p_queue, p_priority, null,
                                                v_state[1:least(v_left, p_chunk)]);
    commit;
    v_left := v_left - p_chunk;
    v_n := v_n + p_chunk;
    if v_n % 200000 = 0 then
      perform count(*) from millrace.maintain();
      commit;
    end if;
  end loop;
end $$;

-- The same for the textbook queue.
create procedure bench.textbook_fill(p_queue text, p_count bigint, p_chunk int)
language plpgsql
as $$
declare
  v_args jsonb[] := bench.payload(p_chunk);
  v_left bigint := p_count;
begin
  while v_left > 0 loop
    insert into textbook.job (queue, kind, args)
    select p_queue, 'bench', a
      from unnest(v_args[1:least(v_left, p_chunk)]) a;
    commit;
    v_left := v_left - p_chunk;
  end loop;
end $$;

-- Claims and completes up to p_count jobs, p_batch a claim.
create procedure bench.finish(p_queue text, p_count bigint, p_batch int)
language plpgsql
as $$
declare
  v_left bigint := p_count;
  v_row  record;
begin
  while v_left > 0 loop
    select c.lease, count(*) as n
      into v_row
      from millrace.claim(p_queue, 'bench', least(v_left, p_batch)::int, '10 minutes') c
     group by c.lease;
    commit;
    exit when v_row.lease is null;
    perform millrace.complete(v_row.lease);
    commit;
    v_left := v_left - v_row.n;
  end loop;
end $$;

-- Jobs in and out, in turns, so that never more than p_chunk wait.
create procedure bench.cycle(p_queue text, p_count bigint, p_chunk int)
language plpgsql
as $$
declare
  v_left bigint := p_count;
begin
  while v_left > 0 loop
    call bench.fill(p_queue, least(v_left, p_chunk), p_chunk, true);
    call bench.finish(p_queue, least(v_left, p_chunk), 1000);
    v_left := v_left - p_chunk;
  end loop;
end $$;

create table bench.sample (what text not null, us double precision not null);

-- The time of p_calls empty claims inside the server, each in a transaction of its own.
create procedure bench.empty_claims(p_what text, p_queue text, p_calls int)
language plpgsql
as $$
declare
  v_begun timestamptz;
  v_us    double precision[] := '{}';
begin
  for i in 1 .. p_calls loop
    v_begun := clock_timestamp();
    perform from millrace.claim(p_queue, 'bench', 100);
    if found then
      raise exception 'the queue % is not empty', p_queue;
    end if;
    v_us := v_us || (date_part('epoch', clock_timestamp() - v_begun) * 1e6);
    commit;
  end loop;
  insert into bench.sample select p_what, u from unnest(v_us) u;
  commit;
end $$;

-- The time of p_calls calls of depth() inside the server, each in a transaction of its own.
create procedure bench.depth_calls(p_what text, p_queue text, p_calls int)
language plpgsql
as $$
declare
  v_begun timestamptz;
  v_us    double precision[] := '{}';
begin
  for i in 1 .. p_calls loop
    v_begun := clock_timestamp();
    perform millrace.depth(p_queue);
    v_us := v_us || (date_part('epoch', clock_timestamp() - v_begun) * 1e6);
    commit;
  end loop;
  insert into bench.sample select p_what, u from unnest(v_us) u;
  commit;
end $$;

create function bench.median(p_what text)
returns double precision
language sql
as $$
  select percentile_cont(0.5) within group (order by us)
    from bench.sample
   where what = p_what
$$;

-- Bytes of everything in the schema, with indexes and TOAST.
create function bench.size()
returns bigint
language sql
as $$
  select sum(pg_total_relation_size(c.oid))::bigint
    from pg_class c
   where c.relnamespace = 'millrace'::regnamespace
     and c.relkind in ('r', 'S')
$$;

-- Bytes of the leaves of one table: bench.size_of('job').
create function bench.size_of(p_table text)
returns bigint
language sql
as $$
  select coalesce(sum(pg_total_relation_size(i.inhrelid)), 0)::bigint
    from pg_inherits i
   where i.inhparent = ('millrace.' || p_table)::regclass
$$;

-- Bytes of the largest segment on the ring: its leaves of all five tables.
create function bench.largest_segment()
returns bigint
language sql
as $$
  select max(pg_total_relation_size(('millrace.job_' || g)::regclass) + pg_total_relation_size(('millrace.claim_' || g)::regclass)
             + pg_total_relation_size(('millrace.result_' || g)::regclass) + pg_total_relation_size(('millrace.report_' || g)::regclass)
             + pg_total_relation_size(('millrace.tally_' || g)::regclass))
    from generate_series(0, 15) g
$$;

-- A schema with a past: p_days days with their jobs, of which the queue q0 keeps all in the archive; 200 lanes in 20 queues,
-- 20 of them priorities of q0; and a ring of which every leaf is in use.
create procedure bench.age(p_days int, p_jobs_a_day int)
language plpgsql
as $$
declare
  v_start timestamptz := clock_timestamp() - make_interval(days => p_days);
  v_now   timestamptz;
  v_lease text;
begin
  perform set_config('jit', 'off', false);      -- as the public functions have it; those called here have the time as an argument instead
  for q in 0 .. 19 loop
    perform millrace.set_queue('q' || q, jsonb_build_object('retention', case when q = 0 then (p_days + 2) || ' days' else '24 hours' end));
  end loop;
  update millrace.segment g
     set closed_at = v_start
   where g.seg = 0;
  commit;
  for d in 1 .. p_days loop
    v_now := v_start + make_interval(days => d - 1);
    -- 20 priorities in q0, 10 in q1 to q9, 9 in the others: 200 lanes. Most of a day's jobs belong to q0's lowest.
    for q in 0 .. 19 loop
      for p in 1 .. case when q = 0 then 20 when q < 10 then 10 else 9 end loop
        perform count(*)
           from millrace.enqueue_many_at(v_now, 'bench', bench.empty_args(case when q = 0 and p = 20 then p_jobs_a_day else 5 end),
                                         'q' || q, p * 4, null);
      end loop;
    end loop;
    commit;
    for q in 0 .. 19 loop
      loop
        select c.lease into v_lease from millrace.claim_at(v_now, 'q' || q, 'bench', 1000, '10 minutes', true) c limit 1;
        commit;
        exit when v_lease is null;
        perform millrace.complete_at(v_now, v_lease, null, null);
        commit;
      end loop;
    end loop;
    -- Fourteen rounds of upkeep a day, as retention / 14 wants it.
    for h in 1 .. 14 loop
      perform count(*) from millrace.maintain_at(v_now + h * interval '103 minutes');
      commit;
    end loop;
  end loop;
end $$;

-- Rotates, with a few jobs in each segment and upkeep's other duties, until every leaf of the ring is in use.
create procedure bench.fill_ring()
language plpgsql
as $$
declare
  v_now   timestamptz := clock_timestamp();
  v_lease text;
begin
  for i in 1 .. 40 loop
    exit when (select count(*) from millrace.segment where not truncated) >= 15;
    perform count(*) from millrace.enqueue_many('bench', bench.empty_args(100), 'q0', 80);
    commit;
    select c.lease into v_lease from millrace.claim('q0', 'bench', 1000, '10 minutes') c limit 1;
    commit;
    perform millrace.complete(v_lease);
    commit;
    perform millrace.rotate(v_now + i * interval '2 hours');
    commit;
    perform millrace.duty(v_now, 'count');
    commit;
    perform millrace.duty(v_now, 'tick');
    commit;
  end loop;
end $$;

-- Enqueues p_count jobs with options of their own, a thousand a transaction; in the options {n} is the number of the job and {k} one of a thousand.
create procedure bench.fill_with(p_queue text, p_count bigint, p_options jsonb)
language plpgsql
as $$
declare
  c_chunk constant int := 1000;
  v_args  jsonb := to_jsonb((bench.payload(1))[1]);
begin
  for v_first in 0 .. p_count - 1 by c_chunk loop
    perform count(*)
       from millrace.enqueue_jobs((select jsonb_agg(jsonb_build_object('kind', 'bench', 'queue', p_queue, 'args', v_args)
                                                    || replace(replace(p_options::text, '{n}', n::text), '{k}', (n % 1000)::text)::jsonb)
                                     from generate_series(v_first, least(v_first + c_chunk, p_count) - 1) n));
    commit;
  end loop;
end $$;

-- Claims p_batch jobs at a time of a fair queue until p_jobs jobs of tenants like p_tenant have been served. Writes down how many jobs were served before
-- the last of these, and how many claims came back without a job.
create table bench.fair_wait (tenant text, jobs bigint, empty bigint);
create procedure bench.fair_drain(p_queue text, p_batch int, p_tenant text, p_jobs bigint)
language plpgsql
as $$
declare
  v_served bigint := 0;
  v_empty  bigint := 0;
  v_lease  text;
  v_n      int;
  v_other  int;
begin
  while p_jobs > 0 loop
    select max(c.lease), count(c.id), count(c.id) filter (where c.tenant like p_tenant)
      into v_lease, v_n, v_other
      from millrace.claim(p_queue, 'bench', p_batch) c;
    if v_n = 0 then
      v_empty := v_empty + 1;
    else
      perform millrace.complete(v_lease);
    end if;
    commit;
    p_jobs := p_jobs - v_other;
    v_served := v_served + v_n;
  end loop;
  insert into bench.fair_wait
  values (p_tenant, v_served - 1, v_empty);
end $$;
