-- SPDX-License-Identifier: PostgreSQL
-- A database that has something in every place a page looks at, for the item "looking", and the time of what pages call.

-- Claims up to p_count jobs, p_batch a claim, and lets them die of a few kinds of errors.
create procedure bench.bury(p_queue text, p_count int, p_batch int)
language plpgsql
as $$
declare
  v_row record;
begin
  for i in 1 .. p_count / p_batch loop
    select max(c.lease) as lease, array_agg(c.id) as ids
      into v_row
      from millrace.claim(p_queue, 'bench', p_batch, '10 minutes') c;
    exit when v_row.lease is null;
    perform millrace.finish(v_row.lease, (select jsonb_agg(jsonb_build_object('id', u, 'outcome', 'failed', 'retry', false,
                                                                              'error', format('cannot reach "host %s" after %s tries', u % 13, u % 5)))
                                            from unnest(v_row.ids) u));
    commit;
  end loop;
end $$;

-- About p_jobs jobs in 200 queues: completed ones in packs and in rows of their own, by large claims and one by one; deep backlogs, delayed jobs, dead letters,
-- what runs, an archive, batches, refs and tenants; and six hours of a pulse.
create procedure bench.many_sorts(p_jobs bigint)
language plpgsql
as $$
declare
  v_part bigint := p_jobs / 100;
  v_id   bigint;
begin
  for q in 1 .. 200 loop
    perform millrace.set_queue('q' || q, '{"dead_max": 1000000}');
  end loop;
  commit;
  call bench.fill('q1', 25 * v_part, 10000, true);
  call bench.finish('q1', 18 * v_part, 1000);
  call bench.fill('q2', 6 * v_part, 10000, false);
  call bench.finish('q2', 3 * v_part, 100);
  call bench.fill('q3', 20 * v_part, 10000, true);
  call bench.fill('q4', 10 * v_part, 10000, true);
  call bench.finish('q4', 10 * v_part, 1000);
  call bench.fill('q5', v_part / 4, 10000, false);
  call bench.finish('q5', v_part / 5, 1);
  call bench.fill('q6', 10 * v_part, 10000, false);
  call bench.finish('q6', 10 * v_part, 100);
  perform count(*) from millrace.enqueue_many('later', bench.empty_args((7 * v_part)::int), 'q7', 50, now() + interval '3 hours');
  perform count(*) from millrace.enqueue_many('later', bench.empty_args((4 * v_part)::int), 'q8', 50, now() + interval '3 days');
  commit;
  call bench.fill('q9', 2 * v_part, 10000, true);
  call bench.bury('q9', v_part::int, 500);
  call bench.fill('q10', v_part, 10000, false);
  for i in 1 .. v_part / 20 loop
    perform count(*) from millrace.claim('q10', 'bench ' || i % 50, 2, '6 hours');
    commit;
  end loop;
  insert into millrace.archive (finished_at, keep_until, job_id, created_at, queue_id, lane, slot, attempt, attempts_limit, outcome, holder, claimed_at, job_kind, payload_args)
  select now() - interval '2 days', now() + interval '5 days', -g * 32, now() - interval '2 days', q.queue_id, (q.queue_id << 12) + 50 * 32,
         millrace.archive_slot(now(), now() + interval '5 days'), 1, 3, 'c', 'bench', now() - interval '2 days', 'old', '{}'
    from generate_series(1, 6 * v_part) g
    join millrace.queue q on q.queue_name = 'q11';
  commit;
  call bench.fill('q12', 7 * v_part, 10000, true);
  for q in 20 .. 200 loop
    perform count(*) from millrace.enqueue_many('few', bench.empty_args(100), 'q' || q, 50 + q % 3);
    commit;
    call bench.finish('q' || q, 50, 50);
  end loop;
  call bench.fill_with('q3', 1000, '{"ref": "r{n}", "tenant": "t{k}"}');
  for i in 1 .. v_part / 50 loop
    v_id := millrace.batch_begin(label => 'batch ' || i);
    perform count(*) from millrace.batch_add(v_id, '[{"kind": "bench", "queue": "q13"}, {"kind": "bench", "queue": "q13"}]');
    perform millrace.batch_seal(v_id);
  end loop;
  commit;
  perform millrace.schedule('schedule ' || g, (g % 60) || ' 2 * * *', 'bench', queue => 'q13', timezone => 'Europe/Berlin') from generate_series(1, 200) g;
  commit;
  perform count(*) from millrace.maintain();
  commit;
  -- A pulse of the past, so that history has all its points.
  insert into millrace.pulse (slot, queue_id, taken_at, done_total, failed_total, wait_total, run_total, scheduled, retrying, dead_count, took_ms, aside,
                              wait_spread, run_spread)
  select millrace.pulse_slot(now() - g * interval '10 seconds'), i, now() - g * interval '10 seconds', 1000000 - 100 * g, 0, 0, 0, 0, 0, 0, 1, 0,
         array(select 100 * (2160 - g) from generate_series(1, 30)), array(select 10 * (2160 - g) from generate_series(1, 20))
    from generate_series(1, 2160) g
   cross join (select 0 as i union all select q.queue_id from millrace.queue q where q.queue_name = 'q1') i;
  commit;
end $$;

-- The time of p_calls calls inside the server, each in a transaction of its own, after one that does not count: a session's first call makes its plans.
create procedure bench.look(p_what text, p_call text, p_calls int)
language plpgsql
as $$
declare
  v_begun timestamptz;
begin
  for i in 0 .. p_calls loop
    v_begun := clock_timestamp();
    execute 'select ' || p_call;
    if i > 0 then
      insert into bench.sample values (p_what, date_part('epoch', clock_timestamp() - v_begun) * 1e6);
    end if;
    commit;
  end loop;
end $$;

-- The same for the pages of a list, one behind the other, at most p_pages.
create procedure bench.turn_pages(p_what text, p_function text, p_filter jsonb, p_pages int)
language plpgsql
as $$
declare
  v_begun timestamptz;
  v_page  jsonb;
begin
  execute format('select millrace.%I($1)', p_function) into v_page using p_filter;
  commit;
  for i in 1 .. p_pages loop
    v_begun := clock_timestamp();
    execute format('select millrace.%I($1)', p_function) into v_page using p_filter;
    insert into bench.sample values (p_what, date_part('epoch', clock_timestamp() - v_begun) * 1e6);
    commit;
    exit when v_page ->> 'next' is null;
    p_filter := p_filter || jsonb_build_object('after', v_page ->> 'next');
  end loop;
end $$;
