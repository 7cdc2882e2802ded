-- SPDX-License-Identifier: PostgreSQL
-- Back-pressure: depth_limit, overflow, the gauge and the ledger below it.
-- What a check reads grows with the transactions of everybody, if by little.
-- server: own
\ir lib/helpers.psql
select no_plan();

create function t.one(p_now timestamptz, p_queue text, p_delay interval = null)
returns bigint
language sql
as $$
  select millrace.enqueue_at(p_now, 'k', '{}', p_queue, 50, null, p_delay, null, null, null, null, null, null, null, null, null, null, null)
$$;

create function t.full(p_sql text, p_message text, p_hint text)
returns setof text
language plpgsql
as $$
declare
  v_state text := 'none';
  v_message text;
  v_hint text;
begin
  begin
    execute p_sql;
  exception
    when others then
      get stacked diagnostics v_state = returned_sqlstate, v_message = message_text, v_hint = pg_exception_hint;
  end;
  return next is(v_state, 'MR002', 'refused: ' || p_sql);
  return next is(v_message, p_message, 'the message names the queue');
  return next is(v_hint, p_hint || '. Try again when workers have taken some, start more workers, or raise the limit with set_queue.',
                 'the hint names depth, limit and remedy');
end $$;

create function t.gauge(p_queue text)
returns bigint
language sql
as $$
  select millrace.gauge_depth(t.qid(p_queue))
$$;

-- What a statement reads, in pages.
create function t.pages(p_sql text)
returns int
language plpgsql
as $$
declare
  v_plan json;
begin
  execute 'explain (analyze, buffers, format json) ' || p_sql into v_plan;
  return (v_plan -> 0 -> 'Plan' ->> 'Shared Hit Blocks')::int + (v_plan -> 0 -> 'Plan' ->> 'Shared Read Blocks')::int;
end $$;

-- Settings.
select millrace.set_queue('s', '{"depth_limit": 3, "overflow": "other"}');
select is((select q.settings -> 'depth_limit' from millrace.queues q where q.queue = 's'), '3', 'the limit is shown');
select is((select q.settings ->> 'overflow' from millrace.queues q where q.queue = 's'), 'other', 'the overflow is shown');
select is((select count(*) from millrace.queues q where q.queue = 'other'), 0::bigint, 'which need not be there');
select millrace.set_queue('s', '{"depth_limit": null, "overflow": null}');
select is((select (q.settings -> 'depth_limit', q.settings -> 'overflow')::text from millrace.queues q where q.queue = 's'), '(null,null)',
          'null switches both off');
select t.put(t.at('0'), 's', 5);
select is(t.one(t.at('0'), 's') is not null, true, 'and nothing is refused');
select millrace.set_queue('s', '{"depth_limit": 1000000000000}');
select millrace.set_queue('s', '{"overflow": "other", "depth_limit": "7"}');
select is((select q.settings -> 'depth_limit' from millrace.queues q where q.queue = 's'), '7', 'a number as text is one');
select t.all_rows() as before
\gset
select t.refused(format('select millrace.set_queue(%L, %L)', 's', v), '22023', m)
  from (values ('{"depth_limit": 0}', 'setting depth_limit must be from 1 to 1000000000000, not 0'), ('{"depth_limit": -1}', 'must be from 1'),
               ('{"depth_limit": 1000000000001}', 'must be from 1 to 1000000000000'), ('{"depth_limit": 99999999999999999999}', 'depth_limit does not accept'),
               ('{"depth_limit": 1.5}', 'depth_limit does not accept'), ('{"depth_limit": "many"}', 'depth_limit does not accept ''many'''),
               ('{"depth_limit": true}', 'depth_limit does not accept'), ('{"depth_limit": [1]}', 'depth_limit does not accept'),
               ('{"depth_limit": ""}', 'depth_limit does not accept'),
               ('{"overflow": "s"}', 'queue ''s'' cannot be its own overflow'), ('{"overflow": ""}', 'overflow must not be empty'),
               ('{"overflow": 5}', 'setting overflow does not accept 5'), ('{"overflow": false}', 'setting overflow does not accept false'),
               ('{"overflow": {}}', 'setting overflow does not accept'),
               (format('{"overflow": "%s"}', repeat('o', 201)), 'overflow is 201 bytes long')) v(v, m);
select is(t.all_rows(), :'before', 'a refused setting changes nothing');
select is((select count(*) from pg_class c where c.relnamespace = 'millrace'::regnamespace and c.relname ~ ('^depth_[a-z]+_' || t.qid('s') || '$')), 3::bigint,
          'a gauge is three sequences');

-- A queue of five.
select millrace.set_queue('five', '{"depth_limit": 5}');
select is((select count(t.one(t.at('1 second'), 'five')) from generate_series(1, 5)), 5::bigint, 'as many as the limit go in');
select t.all_rows() as before
\gset
select t.full($$ select t.one(t.at('1 second'), 'five') $$, 'queue ''five'' is full', '5 jobs wait in it and its depth_limit is 5');
select t.full($$ select t.one(t.at('1 second'), 'five', '1 hour') $$, 'queue ''five'' is full', '5 jobs wait in it and its depth_limit is 5');
select t.full($$ select t.put(t.at('1 second'), 'five', 2) $$, 'queue ''five'' is full', '5 jobs wait in it and its depth_limit is 5');
select t.full($$ select count(*) from millrace.enqueue_jobs_at(t.at('1 second'), '[{"kind": "k"}, {"kind": "k", "queue": "five"}]') $$,
              'queue ''five'' is full', '5 jobs wait in it and its depth_limit is 5');
select is(t.all_rows(), :'before', 'nothing was written, not for the other queue of the call either');
select is(array_length(t.put(t.at('1 second'), 'five', 0), 1), null, 'no job is none too many');
select is(millrace.lane_depth(t.at('1 second'), (t.qid('five') << 12) + (50 << 5)), 5::bigint, 'the depth is what the limit says');

-- What workers take is noticed 20 ms later, on the clock of the producers.
select t.claim('five', t.at('1 second'), 'five', 2);
select t.full($$ select t.one(t.at('1.019 seconds'), 'five') $$, 'queue ''five'' is full', '5 jobs wait in it and its depth_limit is 5');
select isnt(t.one(t.at('1.02 seconds'), 'five'), null, 'there is room again');
select isnt(t.one(t.at('1.021 seconds'), 'five'), null, 'for two');
select t.full($$ select t.one(t.at('1.022 seconds'), 'five') $$, 'queue ''five'' is full', '5 jobs wait in it and its depth_limit is 5');

-- What comes without being asked for is never refused, and counts.
select is(millrace.release_at(t.at('2 seconds'), t.lease('five'), null), 2, 'jobs that are given back');
select t.full($$ select t.one(t.at('3 seconds'), 'five') $$, 'queue ''five'' is full', '7 jobs wait in it and its depth_limit is 5');
select t.claim('fail', t.at('3 seconds'), 'five', 10), t.claim_all('rest', t.at('3 seconds'), 'five', '30 seconds');
select is(millrace.fail_at(t.at('3 seconds'), t.lease('fail'), (t.ids('fail'))[1], 'x', '1 second', true, null), 'scheduled', 'one fails');
select is(t.put(t.at('4 seconds'), 'five', 5) is not null, true, 'the queue is filled');
select is(millrace.promote(t.at('10 seconds'), 100), 1::bigint, 'the retry is promoted');
select t.full($$ select t.one(t.at('10 seconds'), 'five') $$, 'queue ''five'' is full', '6 jobs wait in it and its depth_limit is 5');
select is(millrace.fail_at(t.at('11 seconds'), t.lease('fail'), (t.ids('fail'))[2], 'x', null, false, null), 'dead', 'one dies');
select is(millrace.dead_replay(t.at('12 seconds'), array[(t.ids('fail'))[2]]), 1::bigint, 'and is replayed');
select is(millrace.rescue(t.at('1 hour'), 100) > 0, true, 'a lost worker''s jobs are rescued');
select t.full($$ select t.one(t.at('1 hour'), 'five') $$, 'queue ''five'' is full', '12 jobs wait in it and its depth_limit is 5');
select is(millrace.purge_at(t.at('1 hour'), (select q from millrace.queue q where q.queue_name = 'five')) > 0, true, 'purged');
select isnt(t.one(t.at('1 hour 0.1 seconds'), 'five'), null, 'a queue that was purged has room');

-- Bulk: whole or not at all.
select millrace.set_queue('bulk', '{"depth_limit": 10}');
select is(cardinality(t.put(t.at('0'), 'bulk', 9)), 9, 'nine of ten');
select is(cardinality(t.put(t.at('0'), 'bulk', 10)), 10, 'a call is let in whole where the queue has room for one job');
select t.full($$ select t.put(t.at('0'), 'bulk', 1) $$, 'queue ''bulk'' is full', '19 jobs wait in it and its depth_limit is 10');
select t.refused($$ select t.put(t.at('0'), 'bulk', 11) $$, '22023', '11 jobs at once are more than queue ''bulk'' takes');
select millrace.set_queue('bulk2', '{"depth_limit": 2}');
select t.refused($$ select count(*) from millrace.enqueue_jobs_at(t.at('0'), '[{"kind": "k", "queue": "bulk2"}, {"kind": "k", "queue": "bulk2"}, {"kind": "k", "queue": "bulk2"}]') $$,
                 '22023', '3 jobs at once are more than queue ''bulk2'' takes');
select is((select count(*) from millrace.enqueue_jobs_at(t.at('0'), '[{"kind": "k", "queue": "bulk2"}, {"kind": "k", "queue": "bulk2", "delay": "1 s"}]')), 2::bigint,
          'jobs of each queue are counted');
select is(t.gauge('bulk2'), 1::bigint, 'one that is delayed does not make the queue deeper');
select is(t.one(t.at('0'), 'bulk2') is not null, true, 'so there is room for another');
select t.full($$ select t.one(t.at('0'), 'bulk2') $$, 'queue ''bulk2'' is full', '2 jobs wait in it and its depth_limit is 2');

-- A transaction's own jobs count, before anybody can see them, and those taken back do not.
select millrace.set_queue('own', '{"depth_limit": 3}');
do $$
begin
  for i in 1 .. 3 loop
    perform t.one(t.at('0') + i * interval '1 minute', 'own');      -- the gauge is counted each time
  end loop;
  begin
    perform t.one(t.at('1 hour'), 'own');
    raise exception 'the fourth was let in';
  exception
    when sqlstate 'MR002' then
      null;
  end;
end $$;
select is(millrace.lane_depth(t.at('2 hours'), (t.qid('own') << 12) + (50 << 5)), 3::bigint, 'three of a transaction, not four');
select t.claim('own', t.at('2 hours'), 'own', 10);
do $$
begin
  begin
    perform t.put(t.at('3 hours'), 'own', 3);
    raise exception using errcode = 'ZZ000';
  exception
    when sqlstate 'ZZ000' then
      null;
  end;
  perform t.put(t.at('3 hours 1 second'), 'own', 3);
end $$;
select is(millrace.lane_depth(t.at('4 hours'), (t.qid('own') << 12) + (50 << 5)), 3::bigint, 'what was taken back left its room');
select set_config('millrace.own_' || t.qid('own'), 'x', false);
select t.full($$ select t.one(t.at('5 hours'), 'own') $$, 'queue ''own'' is full', '3 jobs wait in it and its depth_limit is 3');
select set_config('millrace.own_' || t.qid('own'), '-5', false);
select t.full($$ select t.one(t.at('6 hours'), 'own') $$, 'queue ''own'' is full', '3 jobs wait in it and its depth_limit is 3');
select set_config('millrace.own_' || t.qid('own'), '', false);

-- A transaction with an old snapshot believes the gauge.
begin isolation level repeatable read;
select is((select count(*) from millrace.queue q where q.queue_name = 'none'), 0::bigint, 'a snapshot');
select t.full($$ select t.one(clock_timestamp(), 'own') $$, 'queue ''own'' is full', '3 jobs wait in it and its depth_limit is 3');
commit;

-- Overflow.
select millrace.set_queue('main', '{"depth_limit": 2, "overflow": "spill", "max_args": 20}');
select is((select count(t.one(t.at('0'), 'main')) from generate_series(1, 2)), 2::bigint, 'two in');
select isnt(t.one(t.at('0'), 'main'), null, 'the third has an id as ever');
select is((select count(*) from millrace.jobs j where j.queue = 'spill'), 1::bigint, 'and is in the overflow, which was made for it');
select is(cardinality(t.put(t.at('0'), 'main', 40)), 40, 'so is a call that is larger than the limit');
select array(select * from millrace.enqueue_jobs_at(t.at('0'), '[{"kind": "k", "queue": "main", "priority": 7}, {"kind": "k", "queue": "else"}, {"kind": "k", "queue": "main"}]')) as ids
\gset
select is((select array_agg(j.queue || ' ' || j.priority order by i.ord)
             from unnest(:'ids'::bigint[]) with ordinality i(id, ord)
             join millrace.jobs j on j.id = i.id), array['spill 7', 'else 50', 'spill 50'], 'of many jobs those for the full queue');
select is(cardinality(t.claim_all('spill', t.at('1 second'), 'spill')), 43, 'workers of the overflow find them all');
select isnt(millrace.enqueue_at(t.at('1 second'), 'k', jsonb_build_object('x', repeat('x', 100)), 'main', 50, null, null, null, null, null, null, null, null, null, null, null, null, null),
            null, 'the overflow''s settings count there');
select millrace.set_queue('spill', '{"depth_limit": 2}');
select isnt(t.one(t.at('2 seconds'), 'main'), null, 'an overflow with a limit');
select t.full($$ select t.one(t.at('2 seconds'), 'main') $$, 'queue ''main'' is full, and so is its overflow ''spill''',
              '2 jobs wait in it and its depth_limit is 2; in ''spill'' 2 wait and the limit is 2');
select t.refused($$ select t.put(t.at('2 seconds'), 'main', 3) $$, '22023', '3 jobs at once are more than queue ''spill'' takes');
select millrace.set_queue('spill', '{"overflow": "main"}');
select t.full($$ select t.one(t.at('2 seconds'), 'main') $$, 'queue ''main'' is full, and so is its overflow ''spill''',
              '2 jobs wait in it and its depth_limit is 2; in ''spill'' 2 wait and the limit is 2');
select millrace.set_queue('spill', '{"overflow": "third"}');
select t.full($$ select t.one(t.at('2 seconds'), 'main') $$, 'queue ''main'' is full, and so is its overflow ''spill''',
              '2 jobs wait in it and its depth_limit is 2; in ''spill'' 2 wait and the limit is 2');
select t.one(t.at('2 seconds'), 'spill') as id
\gset
select is((select j.queue from millrace.jobs j where j.id = :id), 'third', 'its own jobs overflow into the third');
select t.claim_all('room', t.at('3 seconds'), 'main');
select t.one(t.at('3 seconds'), 'main') as id
\gset
select is((select j.queue from millrace.jobs j where j.id = :id), 'main', 'with room again, jobs stay at home');

-- Both in one call, the first into the second, which is full for its own: nothing is moved twice.
select millrace.set_queue('a', '{"depth_limit": 2, "overflow": "b"}'), millrace.set_queue('b', '{"depth_limit": 2, "overflow": "c"}');
select t.put(t.at('0'), 'a', 2), t.one(t.at('0'), 'b');
select array(select * from millrace.enqueue_jobs_at(t.at('0'), '[{"kind": "k", "queue": "a"}, {"kind": "k", "queue": "b"}, {"kind": "k", "queue": "a"}]')) as ids
\gset
select is((select array_agg(j.queue order by i.ord) from unnest(:'ids'::bigint[]) with ordinality i(id, ord) join millrace.jobs j on j.id = i.id),
          array['b', 'c', 'b'], 'an overflow is not followed further than one queue');

-- A schedule whose queue is full says so, and fires later.
select millrace.set_queue('cron', '{"depth_limit": 1}');
select t.one(t.at('0'), 'cron');
select millrace.schedule_at(t.at('0'), 'tick', '* * * * *', 'k', '{}', 'cron', 'UTC', 'last', true, 50);
set client_min_messages = error;
select is(millrace.schedule_due(t.at('1 minute 1 second'), 10), 0::bigint, 'nothing is enqueued');
set client_min_messages = warning;
select is((select s.last_error from millrace.schedule s where s.schedule_name = 'tick'), 'queue ''cron'' is full', 'the schedule says why');
select t.claim('cron', t.at('2 minutes'), 'cron', 1);
select is(millrace.schedule_due(t.at('2 minutes 2 seconds'), 10), 1::bigint, 'a minute later it fires');
select is((select s.last_error from millrace.schedule s where s.schedule_name = 'tick'), null, 'and says nothing more');

-- The check does not read the log: it costs the same with 1,000 jobs waiting and with 200,000, also when the gauge is counted anew.
select millrace.set_queue('deep', '{"depth_limit": 1000000}');
-- The least of three, 10 ms or two seconds apart: a catalog that is read again only adds pages.
create function t.one_pages(p_at interval, p_apart interval)
returns int
language sql
as $$
  select min(t.pages(format('select t.one(%L, %L)', t.at(p_at + i * p_apart), 'deep'))) from generate_series(0, 2) i
$$;
select cardinality(t.put(t.at('0'), 'deep', 1000));
select t.one_pages('2 seconds', '0');      -- plans are made, and the ledger is counted on
select t.one_pages('2.1 seconds', '10 ms') as few_known
\gset
select t.one_pages('4 seconds', '2 seconds') as few_counted
\gset
select cardinality(t.put(t.at('9 seconds'), 'deep', 194000)), count(t.one(t.at('9 seconds'), 'deep'))
  from generate_series(1, 5000);
select is(t.gauge('deep'), 200009::bigint, 'the gauge knows each of them');
select t.one_pages('11 seconds', '0');
select cmp_ok(t.one_pages('11.1 seconds', '10 ms'), '<=', :few_known + 3, 'what is known costs the same with 200,000 jobs');
select cmp_ok(t.one_pages('13 seconds', '2 seconds'), '<=', :few_counted + 10, 'to count, too');
select is(t.gauge('deep'), 200018::bigint, 'and is right');
select is(millrace.depth('deep'), 200018::bigint, 'as depth() has it');

-- The ledger is counted on by producers alone, in any transaction, and by one that stays open others are not held up (see isolation/open-count).
select cmp_ok((select count(*) from millrace.tally l where l.lane = (t.qid('deep') << 12) + (50 << 5)), '>=', 3::bigint, 'nobody called maintain');
select is((select count(*) from pg_locks l where l.locktype = 'advisory' and l.pid = pg_backend_pid()), 0::bigint, 'no lock is left');

-- Health names a full queue; a queue that is dropped takes its gauge along.
select is((select (h.status, h.message ~ '^2 pending, full \(depth_limit 2\)')::text from millrace.health() h where h.queue = 'a'), '(WARNING,t)', 'health');
select millrace.drop_queue('a');
select is((select count(*) from pg_class c where c.relnamespace = 'millrace'::regnamespace and c.relname ~ '^depth_[a-z]+_\d+$'),
          3 * (select count(*) from millrace.queue q where q.depth_limit is not null), 'gauges go with their queues');
select millrace.drop_queue('else');
select isnt(millrace.enqueue('k', queue => 'a'), null, 'a new queue of the name has no limit');

-- A duplicate of a unique job, too.
select millrace.set_queue('dup', '{"depth_limit": 1}');
select millrace.enqueue('k', queue => 'dup', unique_key => 'a');
select t.refused($$ select millrace.enqueue('k', queue => 'dup', unique_key => 'a') $$, 'MR002', 'queue ''dup'' is full');
select * from finish();
