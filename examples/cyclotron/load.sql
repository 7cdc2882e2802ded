-- SPDX-License-Identifier: PostgreSQL
--
-- Invocations by number: what number n calls, for which team, how often and when follows from n, so that everybody knows what has to come of it.
create schema load;

-- How the producer is getting on.
create table load.chunk (first_n int not null, refused int not null, created_at timestamptz not null default clock_timestamp());

create function load.ref(n int)
returns text
language sql
immutable
as $$
  select '00000000-0000-4000-8000-' || lpad(to_hex(n), 12, '0')
$$;

-- Of a thousand: one is gone, one is broken for good, one hangs once, ten fail twice, ten are told to come later, ten are slow.
create function load.url(n int)
returns text
language sql
immutable
as $$
  select case n % 1000 when 3 then '/gone' when 4 then '/broken' when 6 then '/hang'
           else case n % 100 when 1 then '/flaky' when 2 then '/limited' when 5 then '/slow' else '/ok' end
         end
$$;

-- So many letters that do not compress to nothing.
create function load.text(seed int, size int)
returns text
language sql
immutable
as $$
  select left(string_agg(md5(seed::text || ' ' || i), ''), size) from generate_series(1, size / 32 + 1) i
$$;

-- The functions of the fifty teams, each with a stack of its own: about 2.7 KB of state. A request has 1.6 KB.
create table load.team as
select t as team_id, md5('function ' || t)::uuid as function_id, encode(load.text(-t, 1600)::bytea, 'base64') as body,
       encode(convert_to(jsonb_build_object('step', 1, 'tries', 0, 'stack', load.text(t, 2600))::text, 'UTF8'), 'base64') as vm_state
  from generate_series(0, 49) t;
alter table load.team add primary key (team_id);

create function load.invocation(n int, url text, steps int, scheduled timestamptz, more jsonb)
returns jsonb
language sql
stable
as $$
  select jsonb_build_object('queue_name', 'hog', 'team_id', t.team_id, 'function_id', t.function_id, 'ref', load.ref(n), 'scheduled', scheduled,
           'parameters', jsonb_build_object('method', 'POST', 'url', url, 'headers', jsonb_build_object('X-Team', t.team_id::text), 'steps', steps) || more,
           'metadata', jsonb_build_object('n', n, 'trace', md5(n::text)),
           'vm_state', t.vm_state, 'blob', t.body)
    from load.team t
   where t.team_id = n % 50
$$;

-- Creates some invocations that are alike.
create function load.some(first_n int, last_n int, url text, scheduled timestamptz = null, more jsonb = '{}')
returns setof bigint
language sql
as $$
  select cyclotron.bulk_create_jobs(jsonb_agg(load.invocation(n, url, 1, scheduled, more) order by n)) from generate_series(first_n, last_n) n
$$;

-- Invocation number n of the load. Every fifth has two steps, two of a thousand are for later.
create function load.numbered(n int)
returns jsonb
language sql
as $$
  select load.invocation(n, load.url(n), case when n % 5 = 0 then 2 else 1 end, case when n % 500 = 7 then clock_timestamp() + interval '3 seconds' end, '{}')
$$;

-- Creates the invocations 0 to n - 1 in chunks. A chunk that is refused is tried again until there is room.
create procedure load.create_invocations(n int, chunk int)
language plpgsql
as $$
declare
  v_jobs    jsonb;
  v_refused int;
begin
  for v_first in 0 .. n - 1 by chunk loop
    v_jobs := (select jsonb_agg(load.numbered(i) order by i) from generate_series(v_first, least(v_first + chunk, n) - 1) i);
    v_refused := 0;
    loop
      begin
        perform cyclotron.bulk_create_jobs(v_jobs, chunk);
        exit;
      exception
        when sqlstate 'MR002' then
          v_refused := v_refused + 1;
      end;
      if v_refused = 1 then
        insert into load.chunk (first_n, refused) values (v_first, 1);
        commit;
      end if;
      perform pg_sleep(0.1);
    end loop;
    if v_refused = 0 then
      insert into load.chunk (first_n, refused) values (v_first, 0);
    end if;
    commit;
  end loop;
end $$;

-- How many jobs of both queues, or of one, have ended in any of these ways, words with blanks between them: since the queues are there, as upkeep has counted them.
create function load.total(outcomes text, only_queue text = null)
returns bigint
language sql
as $$
  select coalesce(sum((q ->> (o || '_total'))::bigint), 0)
    from jsonb_array_elements(millrace.metrics() -> 'queues') q
   cross join regexp_split_to_table(outcomes, ' ') o
   where q ->> 'queue' = coalesce(only_queue, q ->> 'queue')
$$;
