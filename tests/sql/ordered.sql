-- SPDX-License-Identifier: PostgreSQL
-- Ordered queues: one job of a key at a time, in the order of the log.
\ir lib/helpers.psql
select no_plan();

create table t.run (ord bigserial, queue text, key text, i int, id bigint, attempt int);

-- n jobs of a key with args {"k": key, "i": 1} ... ; returns their ids.
create function t.line(p_now timestamptz, p_queue text, p_key text, p_n int = 1, p_priority int = 50, p_options jsonb = '{}')
returns bigint[]
language sql
as $$
  select array(select * from millrace.enqueue_jobs_at(p_now, (
           select jsonb_agg(jsonb_build_object('kind', 'k', 'queue', p_queue, 'priority', p_priority, 'ordering_key', p_key,
                                               'args', jsonb_build_object('k', p_key, 'i', i)) || p_options order by i)
             from generate_series(1, p_n) i)))
$$;

-- Claims until a claim has nothing, under the name of a tag that is used once; returns i of each job in the order they came.
create function t.take(p_tag text, p_now timestamptz, p_queue text)
returns int[]
language sql
as $$
  select t.claim_all(p_tag, p_now, p_queue, '10 seconds');
  select array(select (g.args ->> 'i')::int from t.got g where g.tag = p_tag order by g.ord)
$$;

create function t.complete(p_tag text, p_now timestamptz)
returns int
language sql
as $$
  select coalesce(sum(millrace.complete_at(p_now, l.lease, null, null)), 0)::int from (select distinct g.lease from t.got g where g.tag = p_tag) l
$$;

-- Works a queue off, each claim and each end a transaction of its own. p_trouble: one job in so many fails, the first time.
create procedure t.work(p_now timestamptz, p_queue text, p_batch int = 100, p_trouble int = 0)
language plpgsql
as $$
declare
  v_now  timestamptz := p_now;
  v_job  record;
  v_idle int := 0;
begin
  while v_idle < 4 loop
    delete from t.got;
    commit;      -- a claim does its slice of upkeep at the start of a transaction
    insert into t.got
    select 'work', row_number() over (), c.* from millrace.claim_at(v_now, p_queue, 'w', p_batch, '1 hour', true) c;
    v_idle := case when found then 0 else v_idle + 1 end;
    commit;
    for v_job in select g.* from t.got g order by g.ord loop
      if p_trouble > 0 and v_job.attempt = 1 and v_job.id / 32 % p_trouble = 0 then
        perform millrace.fail_at(v_now, v_job.lease, v_job.id, 'trouble', '5 seconds', true, null);
      else
        insert into t.run (queue, key, i, id, attempt) values (p_queue, v_job.args ->> 'k', (v_job.args ->> 'i')::int, v_job.id, v_job.attempt);
        perform millrace.complete_at(v_now, v_job.lease, array[v_job.id], null);
      end if;
      commit;
    end loop;
    v_now := v_now + interval '2 seconds';
  end loop;
end $$;

-- Keys whose jobs did not complete in the order they were enqueued.
create function t.disorder(p_queue text)
returns bigint
language sql
as $$
  select count(*) from (select r.i - lag(r.i) over (partition by r.key order by r.ord) as step from t.run r where r.queue = p_queue) s where s.step < 1
$$;

create function t.aside(p_queue text)
returns bigint
language sql
as $$
  select count(*) from millrace.delayed d where d.why = 'o' and d.lane >> 12 = t.qid(p_queue)
$$;

create function t.turns(p_queue text)
returns bigint
language sql
as $$
  select count(*) from millrace.turn t where t.queue_id = t.qid(p_queue) and t.job_id > 0
$$;

-- ---- one at a time ----
select millrace.set_queue('o', '{"ordered": true, "parts": 4}');
select is((select q.settings -> 'ordered' from millrace.queues q where q.queue = 'o'), 'true', 'the setting is shown');
select t.line(t.at('0'), 'o', 'a', 4) as a, t.line(t.at('0'), 'o', 'b', 2) as b
\gset
select is((select count(distinct j.lane) from millrace.job j where j.order_key = 'a'), 1::bigint, 'the jobs of a key are in one lane');
select is(millrace.depth('o'), 6::bigint, 'six wait');
select is((select array_agg(i order by k, i) from (select g.args ->> 'k' as k, (g.args ->> 'i')::int as i from t.got g where g.tag = 'first') s), null, 'nothing yet');
select is(t.take('first', t.at('1 second'), 'o'), '{1,1}', 'the first of each key');
select is((select array_agg(g.args ->> 'k' order by g.args ->> 'k') from t.got g where g.tag = 'first'), '{a,b}', 'of both');
select is(t.aside('o'), 4::bigint, 'the others are set aside');
select is(millrace.depth('o'), 4::bigint, 'and still count');
select is((select s.available || ' ' || s.running || ' ' || s.scheduled from millrace.stats_at(t.at('1 second'), 'o') s), '4 2 0', 'as available');
select is((select j.status || ' ' || j.ordering_key from millrace.jobs j where j.id = (:'a'::bigint[])[2]), 'available a', 'they are shown as available, with their key');
select is((millrace.job((:'a'::bigint[])[2]) ->> 'waits_for')::bigint, (:'a'::bigint[])[1], 'job() says for which job one waits');
select is(millrace.job((:'a'::bigint[])[1]) -> 'waits_for', null, 'one that runs waits for none');
select is(t.take('none', t.at('2 seconds'), 'o'), '{}', 'nothing more while they run');
select t.line(t.at('2 seconds'), 'o', 'a', 1, 50, '{"args": {"k": "a", "i": 5}}');
select is(t.take('none2', t.at('2 seconds'), 'o'), '{}', 'nor a new one of the key');
select t.line(t.at('2 seconds'), 'o', 'c', 1) as c
\gset
select is(t.take('c', t.at('2 seconds'), 'o'), '{1}', 'another key goes ahead');
select is(t.complete('first', t.at('3 seconds')), 2, 'both complete');
select is(t.take('second', t.at('3 seconds'), 'o'), '{2,2}', 'then the second of each');
select t.complete('second', t.at('4 seconds'));
select is(t.take('third', t.at('4 seconds'), 'o'), '{3}', 'the third');
select t.complete('third', t.at('5 seconds'));
select t.take('fourth', t.at('5 seconds'), 'o');
select t.complete('fourth', t.at('6 seconds'));
select is(t.take('fifth', t.at('6 seconds'), 'o'), '{5}', 'the one that came later is the last');
select t.complete('fifth', t.at('6 seconds')), t.complete('c', t.at('6 seconds'));
select is(t.turns('o'), 0::bigint, 'no turn is left');
select is(millrace.depth('o'), 0::bigint, 'nothing waits');
select t.duty(t.at('10 minutes'), 'clean');
select is((select count(*) from millrace.turn), 0::bigint, 'idle keys are forgotten');

-- ---- jobs without a key ----
select t.put(t.at('0'), 'o', 3) as plain
\gset
select is(array(select unnest(t.claim_all('plain', t.at('1 second'), 'o')) order by 1), :'plain'::bigint[], 'jobs without a key run side by side');
select t.complete('plain', t.at('2 seconds'));

-- ---- failure: the key is held ----
select millrace.set_queue('f', '{"ordered": true, "max_attempts": 3}');
select t.line(t.at('0'), 'f', 'x', 3) as x, t.line(t.at('0'), 'f', 'y', 2) as y
\gset
select t.take('f1', t.at('1 second'), 'f');
select is(millrace.fail_at(t.at('2 seconds'), (select g.lease from t.got g where g.tag = 'f1' and g.id = (:'x'::bigint[])[1]), (:'x'::bigint[])[1], 'no', '1 minute', true, null),
          'scheduled', 'the first of x fails');
select millrace.complete_at(t.at('2 seconds'), (select g.lease from t.got g where g.tag = 'f1' and g.id = (:'y'::bigint[])[1]), array[(:'y'::bigint[])[1]], null);
select is(t.take('f2', t.at('3 seconds'), 'f'), '{2}', 'its key is held, the other goes on');
select is((select g.args ->> 'k' from t.got g where g.tag = 'f2'), 'y', 'with y');
select is((millrace.job((:'x'::bigint[])[2]) ->> 'waits_for')::bigint, (:'x'::bigint[])[1], 'x waits for the one that failed');
select t.complete('f2', t.at('3 seconds'));
select t.duty(t.at('2 minutes'), 'promote');
select is(t.take('f3', t.at('2 minutes'), 'f'), '{1}', 'it is retried before the next');
select is(t.duty(t.at('5 minutes'), 'rescue'), 1::bigint, 'its worker is lost');
select is(t.take('f4', t.at('5 minutes'), 'f'), '{1}', 'rescued it comes again before the next');
select is(millrace.fail_at(t.at('5 minutes'), t.lease('f4'), (:'x'::bigint[])[1], 'no', null, false, null), 'dead', 'it dies');
select is(t.take('f5', t.at('5 minutes'), 'f'), '{2}', 'then comes the next');
select is(millrace.release_at(t.at('5 minutes'), t.lease('f5'), null), 1, 'given back');
select is(t.take('f6', t.at('5 minutes'), 'f'), '{2}', 'it keeps its turn');
select is(millrace.requeue_at(t.at('5 minutes'), t.lease('f6'), (:'x'::bigint[])[2], '{"delay": "1 minute"}', null, null, '{}'), (:'x'::bigint[])[2], 'put off');
select is(t.take('f7', t.at('5 minutes'), 'f'), '{}', 'it keeps its turn, too');
select t.duty(t.at('10 minutes'), 'promote');
select is(t.take('f8', t.at('10 minutes'), 'f'), '{2}', 'and comes back');
select is(millrace.replay((:'x'::bigint[])[1]), (:'x'::bigint[])[1], 'the dead one is replayed');
select t.complete('f8', t.at('10 minutes'));
select is(t.take('f9', t.at('10 minutes'), 'f'), '{3}', 'behind the others');
select t.complete('f9', t.at('10 minutes'));
select is(t.take('f10', t.at('10 minutes'), 'f'), '{1}', 'of its key');
select t.complete('f10', t.at('10 minutes'));
select is(millrace.depth('f') + t.turns('f'), 0::bigint, 'all is done');

-- ---- skip ----
select millrace.set_queue('s', '{"ordered": true, "on_failure": "skip"}');
select t.line(t.at('0'), 's', 'x', 3) as x
\gset
select t.take('s1', t.at('1 second'), 's');
select millrace.fail_at(t.at('2 seconds'), t.lease('s1'), (:'x'::bigint[])[1], 'no', '4 seconds', true, null);
select is(t.take('s2', t.at('3 seconds'), 's'), '{2}', 'with skip the next one goes first');
select t.duty(t.at('8 seconds'), 'promote');
select is(t.take('s3', t.at('8 seconds'), 's'), '{}', 'still one at a time when the failed one is back');
select is(t.duty(t.at('5 minutes'), 'rescue'), 1::bigint, 'a lost one');
select is(t.take('s4', t.at('5 minutes'), 's'), '{3}', 'is skipped, too');
select t.complete('s4', t.at('5 minutes'));
select is(t.take('s5', t.at('5 minutes'), 's'), '{1}', 'then the failed one');
select t.complete('s5', t.at('5 minutes'));
select is(t.take('s6', t.at('5 minutes'), 's'), '{2}', 'and the lost one');
select t.complete('s6', t.at('5 minutes'));

-- ---- cancel, expiry, pause, change ----
select millrace.set_queue('c', '{"ordered": true}');
select t.line(t.at('0'), 'c', 'x', 7) as x
\gset
select t.take('c1', t.at('1 second'), 'c');
select is(millrace.cancel_at(t.at('2 seconds'), (:'x'::bigint[])[2], 'why'), 'cancelled', 'one that is set aside is cancelled');
select is(millrace.cancel_at(t.at('2 seconds'), (:'x'::bigint[])[1], null), 'running', 'the running one is asked to stop');
select is(millrace.fail_at(t.at('3 seconds'), t.lease('c1'), (:'x'::bigint[])[1], 'stopped', null, true, null), 'cancelled', 'it stops');
select is(t.take('c2', t.at('3 seconds'), 'c'), '{3}', 'the third comes');
select t.refused(format('select millrace.run_now(%s)', (:'x'::bigint[])[4]), '22023', 'set aside', 'run_now of one that is set aside');
select t.refused(format('select millrace.resume_job(%s)', (:'x'::bigint[])[4]), '22023', 'is available', 'resume_job of one that is set aside');
select millrace.pause_job_at(t.at('3 seconds'), (:'x'::bigint[])[4]);
select millrace.change_job_at(t.at('3 seconds'), (:'x'::bigint[])[5], '{"args": {"k": "x", "i": 55}}');
select t.complete('c2', t.at('4 seconds'));
select is(t.take('c3', t.at('4 seconds'), 'c'), '{6}', 'a paused one and a changed one are passed');
select millrace.release_at(t.at('5 seconds'), t.lease('c3'), null);
select millrace.pause_job_at(t.at('5 seconds'), (:'x'::bigint[])[6]);
select is(t.take('c4', t.at('5 seconds'), 'c'), '{}', 'paused the one whose turn it is holds its key');
select millrace.resume_job_at(t.at('6 seconds'), (:'x'::bigint[])[6]);
select is(t.take('c5', t.at('6 seconds'), 'c'), '{6}', 'until it goes on');
select millrace.resume_job_at(t.at('6 seconds'), (:'x'::bigint[])[4]);
select t.complete('c5', t.at('7 seconds'));
select is(t.take('c6', t.at('7 seconds'), 'c'), '{7}', 'what kept its place');
select t.complete('c6', t.at('8 seconds'));
select is(t.take('c7', t.at('8 seconds'), 'c'), '{55}', 'the changed one has joined behind');
select t.complete('c7', t.at('9 seconds'));
select is(t.take('c8', t.at('9 seconds'), 'c'), '{4}', 'and the paused one behind that');
select t.complete('c8', t.at('9 seconds'));
select t.line(t.at('20 seconds'), 'c', 'e', 1) as e1, t.line(t.at('20 seconds'), 'c', 'e', 3, 50, '{"expires_in": "1 minute"}') as e2, t.line(t.at('20 seconds'), 'c', 'e', 1) as e3
\gset
select t.take('e1', t.at('21 seconds'), 'c');
select is(t.aside('c'), 4::bigint, 'four behind one');
select millrace.complete_at(t.at('25 seconds'), t.lease('e1'), null, null);
select t.take('e2', t.at('2 minutes'), 'c');
select t.take('e3', t.at('2 minutes'), 'c');
select is(t.ids('e2') || t.ids('e3'), :'e3'::bigint[], 'those that expired are passed over');
select is((select count(*) from millrace.jobs j where j.ordering_key = 'e' and j.status = 'expired'), 3::bigint, 'three expired');
select t.complete('e3', t.at('2 minutes')), t.complete('e2', t.at('2 minutes'));
select is(t.turns('c'), 0::bigint, 'and took nothing along');
select t.line(t.at('3 minutes'), 'c', 'h', 2) as h
\gset
select t.take('h1', t.at('3 minutes'), 'c');
select millrace.fail_at(t.at('3 minutes'), t.lease('h1'), (:'h'::bigint[])[1], 'no', '1 hour', true, null);
select is(millrace.cancel_at(t.at('4 minutes'), (:'h'::bigint[])[1], null), 'cancelled', 'one that waits for its retry is cancelled');
select is(t.take('h2', t.at('4 minutes'), 'c'), '{2}', 'its key is free');
select is(millrace.requeue_at(t.at('4 minutes'), t.lease('h2'), (:'h'::bigint[])[2], '{"queue": "elsewhere"}', null, null, '{}'), (:'h'::bigint[])[2], 'moved to a queue without order');
select is(t.turns('c'), 0::bigint, 'it leaves its turn');
select is((select array_agg(j.ordering_key) from millrace.jobs j where j.queue = 'elsewhere'), array[null::text], 'and its key');
select is(t.take('h3', t.at('4 minutes'), 'elsewhere'), '{2}', 'and runs there');

-- ---- purge, drop ----
select millrace.set_queue('p', '{"ordered": true}');
select t.line(t.at('0'), 'p', 'x', 5), t.line(t.at('0'), 'p', 'y', 5), t.line(t.at('0'), 'p', 'z', 5, 50, '{"delay": "1 hour"}');
select t.take('p1', t.at('1 second'), 'p');
select t.line(t.at('2 seconds'), 'p', 'x', 5);
select millrace.fail_at(t.at('2 seconds'), g.lease, g.id, 'no', '1 hour', true, null) from t.got g where g.tag = 'p1' and g.args ->> 'k' = 'y';
select is(millrace.purge('p'), 19::bigint, 'purge takes what is set aside along');
select is(t.turns('p') || ' ' || t.aside('p') || ' ' || millrace.depth('p'), '1 0 0', 'the running one keeps its turn');
select t.line(t.at('3 seconds'), 'p', 'x', 1);
select is(t.take('p2', t.at('3 seconds'), 'p'), '{}', 'and holds its key');
select millrace.complete_at(t.at('4 seconds'), g.lease, array[g.id], null) from t.got g where g.tag = 'p1' and g.args ->> 'k' = 'x';
select is(t.take('p3', t.at('4 seconds'), 'p'), '{1}', 'until it ends');
select t.complete('p3', t.at('4 seconds'));
select t.line(t.at('5 seconds'), 'p', 'x', 1);
select t.qid('p') as p
\gset
select millrace.drop_queue('p');
select is((select count(*) from millrace.turn t where t.queue_id = :p), 0::bigint, 'drop_queue takes turns along');

-- ---- priorities, parts ----
select millrace.set_queue('r', '{"ordered": true, "parts": 2}');
select t.line(t.at('0'), 'r', 'x', 2, 50), t.line(t.at('0'), 'r', 'x', 1, 10, '{"args": {"k": "x", "i": 10}}');
select is(t.take('r1', t.at('1 second'), 'r'), '{10}', 'the higher priority first, and one at a time');
select millrace.set_queue('r', '{"parts": 32}');
select t.line(t.at('1 second'), 'r', 'x', 1, 50, '{"args": {"k": "x", "i": 3}}');
select millrace.set_queue('r', '{"parts": 1}');
select t.line(t.at('1 second'), 'r', 'x', 1, 50, '{"args": {"k": "x", "i": 4}}');
select t.complete('r1', t.at('2 seconds'));
call t.work(t.at('3 seconds'), 'r');
select is(array(select r.i from t.run r where r.queue = 'r' order by r.ord), '{1,2,3,4}', 'parts may change at any time');

-- ---- switched off and on again ----
select millrace.set_queue('w', '{"ordered": true}');
select t.line(t.at('0'), 'w', 'x', 5);
select t.take('w1', t.at('1 second'), 'w');
select is(t.aside('w'), 4::bigint, 'four are set aside');
select millrace.set_queue('w', '{"ordered": false}');
select is(t.aside('w') || ' ' || t.turns('w'), '0 0', 'without order nothing is');
select t.refused($$ select millrace.enqueue('k', queue => 'w', ordering_key => 'x') $$, '22023', 'queue ''w'' is not ordered');
select millrace.set_queue('w', '{"ordered": true}');
select is(t.take('w2', t.at('2 seconds'), 'w'), '{2}', 'and again one at a time');
select millrace.set_queue('w', '{"ordered": null}');
select is(t.take('w3', t.at('3 seconds'), 'w'), '{3,4,5}', 'or all, in order');
select t.complete('w1', t.at('4 seconds')) + t.complete('w2', t.at('4 seconds')) + t.complete('w3', t.at('4 seconds'));
select is(t.turns('w'), 0::bigint, 'nothing is left behind');

-- ---- with a unique key, with a time, in bulk ----
select millrace.set_queue('u', '{"ordered": true}');
select t.line(t.at('0'), 'u', 'x', 1, 50, '{"unique_key": "1"}'), t.line(t.at('0'), 'u', 'x', 1, 50, '{"unique_key": "2", "args": {"k": "x", "i": 2}}') as second
\gset
select t.take('u1', t.at('1 second'), 'u');
select is(millrace.enqueue_at(t.at('2 seconds'), 'k', '{"k": "x", "i": 22}', 'u', 50, null, null, '2', 'x', null, null, null, null, null, null, null, null, null, 'replace'),
          (:'second'::bigint[])[1], 'one that is set aside holds its unique key');
select t.complete('u1', t.at('3 seconds'));
select is(t.take('u2', t.at('3 seconds'), 'u'), '{22}', 'and is replaced');
select t.complete('u2', t.at('3 seconds'));
select is((select count(*) from millrace.unique_key u where u.free_at is null), 0::bigint, 'both keys come back');
select t.line(t.at('10 seconds'), 'u', 'l', 1, 50, '{"delay": "5 seconds"}'), t.line(t.at('10 seconds'), 'u', 'l', 1, 50, '{"args": {"k": "l", "i": 2}}');
select is(t.take('u3', t.at('11 seconds'), 'u'), '{2}', 'a job for later does not hold its key');
select t.duty(t.at('20 seconds'), 'promote');
select is(t.take('u4', t.at('20 seconds'), 'u'), '{}', 'its place is that of its time');
select t.complete('u3', t.at('20 seconds'));
select is(t.take('u5', t.at('20 seconds'), 'u'), '{1}', 'behind the other');
select t.complete('u5', t.at('20 seconds'));
select is(millrace.replay_completed('u', '-infinity', 'infinity'), 4::bigint, 'completed ones again');
select is((select count(*) from millrace.jobs j where j.queue = 'u' and j.status = 'available' and j.ordering_key is not null), 4::bigint, 'with their keys');

-- ---- an end in a transaction that cannot see what was set aside ----
select millrace.set_queue('i', '{"ordered": true}');
select t.line(t.at('0'), 'i', 'x', 2);
select t.take('i1', t.at('1 second'), 'i');
begin isolation level repeatable read;
select t.complete('i1', t.at('2 seconds'));
commit;
select t.duty(t.at('3 seconds'), 'turns');
select is(t.take('i3', t.at('3 seconds'), 'i'), '{2}', 'upkeep passes the turn on');
select t.complete('i3', t.at('4 seconds'));

-- ---- many: rotation in between, failures ----
select millrace.set_queue('m', '{"ordered": true, "parts": 8}');
select count(*)
  from millrace.enqueue_jobs_at(t.at('0'), (select jsonb_agg(jsonb_build_object('kind', 'k', 'queue', 'm', 'ordering_key', 'key ' || k, 'args', jsonb_build_object('k', k, 'i', i)) order by i, k)
                                              from generate_series(1, 8) i, generate_series(1, 40) k));
call t.work(t.at('1 second'), 'm', 20, 7);
select is((select count(*) from t.run r where r.queue = 'm'), 320::bigint, 'eight jobs of each of forty keys');
select is(t.disorder('m'), 0::bigint, 'each key in its order, with failures in between');
select ok((select count(*) > 20 from t.run r where r.queue = 'm' and r.attempt > 1), 'of which there were many');
select is(millrace.depth('m') + t.turns('m') + t.aside('m'), 0::bigint, 'nothing is left');

-- ---- one key with a large backlog does not keep the others ----
select millrace.set_queue('l', '{"ordered": true}');
select count(*)
  from millrace.enqueue_jobs_at(t.at('0'), (select jsonb_agg(jsonb_build_object('kind', 'k', 'queue', 'l', 'ordering_key', 'large', 'args', jsonb_build_object('k', 'large', 'i', i)) order by i)
                                              from generate_series(1, 3000) i));
-- a key of the same part
select 'k' || g as near from generate_series(1, 1000) g where hashtext('k' || g) & 31 = hashtext('large') & 31 limit 1
\gset
select t.line(t.at('1 second'), 'l', :'near', 1, 50, '{"args": {"k": "near", "i": 1}}');
select is((select array_agg(s.args ->> 'k') from millrace.claim_at(t.at('2 seconds'), 'l', 'w', 2, null, true) s), '{large}',
          'a claim that has something does not wait until a long line is set aside');
select is((select array_agg(s.args ->> 'k') from millrace.claim_at(t.at('2 seconds'), 'l', 'w', 2, null, true) s), '{near}',
          'one that has nothing passes over thousands of one key to the next key');
select is(t.aside('l'), 2999::bigint, 'and they are set aside');
select is(millrace.depth('l'), 2999::bigint, 'depth counts them');
select is((select s.available from millrace.stats_at(t.at('2 seconds'), 'l') s), 2999::bigint, 'so does stats');

-- ---- bad input ----
create table t.before as select t.all_rows() as rows;
select t.refused(s, '22023', m)
  from (values
    ($$ select millrace.enqueue('k', queue => 'o', ordering_key => '') $$, 'ordering_key must not be empty'),
    ($$ select millrace.enqueue('k', queue => 'o', ordering_key => repeat('x', 1001)) $$, 'ordering_key'),
    ($$ select millrace.enqueue('k', queue => 'elsewhere', ordering_key => 'x') $$, 'queue ''elsewhere'' is not ordered'),
    ($$ select count(*) from millrace.enqueue_jobs('[{"kind": "k", "queue": "o"}, {"kind": "k", "queue": "o", "ordering_key": ""}]') $$, 'job 2: ordering_key must not be empty'),
    ($$ select count(*) from millrace.enqueue_jobs('[{"kind": "k", "queue": "o", "ordering_key": ["x"]}]') $$, 'job 1: ordering_key must not be an array'),
    ($$ select count(*) from millrace.enqueue_jobs('[{"kind": "k", "queue": "o", "ordering_key": "x"}, {"kind": "k", "queue": "elsewhere", "ordering_key": "x"}]') $$, 'job 2: queue ''elsewhere'' is not ordered'),
    ($$ select millrace.set_queue('o', '{"ordered": "perhaps"}') $$, 'setting ordered does not accept ''perhaps'''),
    ($$ select millrace.set_queue('o', '{"on_failure": "panic"}') $$, 'setting on_failure does not accept ''panic''')) v(s, m);
select is(t.all_rows(), (select b.rows from t.before b), 'what is refused changes nothing');
select ok(millrace.enqueue('k', queue => 'o', ordering_key => null) > 0, 'null is none');
select ok(millrace.enqueue('k', queue => 'o', ordering_key => repeat('ä', 500)) > 0, 'a key of a thousand bytes');
select is((select count(*) from millrace.jobs j where j.ordering_key = repeat('ä', 500)), 1::bigint, 'to its last byte');

select * from finish();
