-- SPDX-License-Identifier: PostgreSQL
-- Steering one job from outside: cancel, pause_job, resume_job, run_now, change_job.
\ir lib/helpers.psql
select no_plan();

create function t.status(p_id bigint)
returns text
language sql
as $$
  select millrace.job_story(p_id) ->> 'status'
$$;

create function t.reason(p_id bigint)
returns text
language sql
as $$
  select millrace.job_story(p_id) ->> 'reason'
$$;

create function t.depth(p_now timestamptz, p_queue text)
returns bigint
language sql
as $$
  select sum(millrace.lane_depth(p_now, l))::bigint from unnest(millrace.lanes_of((select q from millrace.queue q where q.queue_name = p_queue), 0)) l
$$;

-- Jobs that wait in the log: ten in a pack, of which some are cancelled.
select t.put(t.at('0'), 'waits', 10) as ids
\gset
select is(millrace.cancel_at(t.at('1 second'), (:'ids'::bigint[])[1], 'first'), 'cancelled', 'a job that waits is cancelled');
select is(millrace.cancel_at(t.at('1 second'), (:'ids'::bigint[])[5], null), 'cancelled', 'without a reason, too');
select is(millrace.cancel_at(t.at('1 second'), (:'ids'::bigint[])[10], 'last'), 'cancelled', 'and the last of a pack');
select is(millrace.cancel_at(t.at('2 seconds'), (:'ids'::bigint[])[1], 'again'), 'cancelled', 'twice is once');
select is((t.status(u.id), t.reason(u.id))::text, case when u.ord in (1, 5, 10) then ('cancelled', case u.ord when 1 then 'first' when 10 then 'last' end)::text
                                                       else ('available', null::text)::text end, 'the story of ' || u.ord)
  from unnest(:'ids'::bigint[]) with ordinality u(id, ord);
select is(t.depth(t.at('2 seconds'), 'waits'), 7::bigint, 'cancelled jobs are not counted as depth');
select is((select count(*) from millrace.jobs j where j.queue = 'waits' and j.status = 'cancelled'), 3::bigint, 'the view shows them');
select is(t.claim('waits', t.at('3 seconds'), 'waits', 3), (:'ids'::bigint[])[2:4], 'a claim passes over them');
select is(t.claim('waits2', t.at('3 seconds'), 'waits', 100), (:'ids'::bigint[])[6:9], 'and the next one');
select is((select count(*) from millrace.mark), 0::bigint, 'the marks of those it passed are gone');
select is(t.claim('waits3', t.at('3 seconds'), 'waits', 100), '{}', 'nothing is left');
select is((t.status(u.id), t.reason(u.id))::text, ('cancelled', case u.ord when 1 then 'first' when 10 then 'last' end)::text, 'their story stays: ' || u.ord)
  from unnest(:'ids'::bigint[]) with ordinality u(id, ord)
 where u.ord in (1, 5, 10);
select is(t.depth(t.at('4 seconds'), 'waits'), 0::bigint, 'depth is 0');
select is(millrace.complete_at(t.at('5 seconds'), t.lease('waits'), null, null), 3, 'the others complete');
select is(millrace.complete_at(t.at('5 seconds'), t.lease('waits2'), null, null), 4, 'all of them');
select is((select array_agg(distinct j.status || ' ' || n order by j.status || ' ' || n) from (select j.status, count(*) over (partition by j.status) as n from millrace.jobs j where j.queue = 'waits') j),
          array['cancelled 3', 'completed 7'], 'seven completed, three cancelled');
select is(millrace.cancel_at(t.at('6 seconds'), (:'ids'::bigint[])[2], 'late'), 'completed', 'a job that has completed stays so');
select is(millrace.cancel_at(t.at('6 seconds'), (:'ids'::bigint[])[1], 'late'), 'cancelled', 'a cancelled one, too');
select is(t.reason((:'ids'::bigint[])[1]), 'first', 'with its reason');

-- All that waits is cancelled: a claim finds what comes behind, and one of a single job, too.
select t.put(t.at('10 seconds'), 'all', 3) as ids
\gset
select millrace.cancel_at(t.at('11 seconds'), u, 'x') from unnest(:'ids'::bigint[]) u;
select t.put(t.at('12 seconds'), 'all', 2, 60) as more
\gset
select is(t.claim('all', t.at('13 seconds'), 'all', 1), (:'more'::bigint[])[1:1], 'a claim goes on behind cancelled jobs, in the next priority');
select is(t.claim('all2', t.at('13 seconds'), 'all', 1), (:'more'::bigint[])[2:2], 'one by one');
select is((select count(*) from millrace.mark), 0::bigint, 'no mark is left');
select is(t.duty(t.at('1 minute'), 'clean') >= 0, true, 'upkeep takes the hint back') from (select setval('millrace.clean_clock', 0)) s;
select is(millrace.hint('millrace.mark_hint'), 0::bigint, 'so that nobody looks for marks any more');

-- Many: more than are passed over at a time.
select array(select * from millrace.enqueue_many_at(t.at('20 seconds'), 'k', array_fill('{}'::jsonb, array[5000]), 'many', 50, null)) as ids
\gset
select count(millrace.cancel_at(t.at('21 seconds'), u.id, null)) from unnest(:'ids'::bigint[]) with ordinality u(id, ord) where u.ord between 10 and 4990;
select is(t.claim_all('many', t.at('22 seconds'), 'many'), (:'ids'::bigint[])[1:9] || (:'ids'::bigint[])[4991:5000], 'thousands are passed over');
select is((select count(*) from millrace.mark), 0::bigint, 'without a trace');

-- Scheduled jobs, retries.
select millrace.enqueue_at(t.at('0'), 'k', '{}', 'later', 50, t.at('1 hour'), null, null, null, null, null, null, null, null, null, null, null, null) as id
\gset
select is(millrace.cancel_at(t.at('1 second'), :id, 'never'), 'cancelled', 'a scheduled job is cancelled');
select is((t.status(:id), t.reason(:id))::text, ('cancelled', 'never')::text, 'it says so');
select is((select count(*) from millrace.delayed d where d.job_id = :id), 0::bigint, 'it does not wait any more');
select is(t.claim('later', t.at('2 hours'), 'later', 10), '{}', 'it is never delivered');
select is((t.status(:id), t.reason(:id))::text, ('cancelled', 'never')::text, 'it still says so');
select (t.put(t.at('0'), 'retry', 1))[1] as id
\gset
select t.claim('retry', t.at('1 second'), 'retry');
select is(millrace.fail_at(t.at('2 seconds'), t.lease('retry'), :id, 'oh', '1 minute', true, null), 'scheduled', 'a job fails and is to be retried');
select is(millrace.cancel_at(t.at('3 seconds'), :id, 'enough'), 'cancelled', 'a retry is cancelled');
select is(t.claim('retry2', t.at('10 minutes'), 'retry'), '{}', 'and does not come');
select is(millrace.job_story(:id) -> 'history' -> 0 ->> 'error', 'oh', 'its history stays');

-- Running jobs: told by the heartbeat; what becomes of them.
select t.put(t.at('0'), 'runs', 6) as ids
\gset
select t.claim('runs', t.at('1 second'), 'runs', 6);
select is((millrace.heartbeat_at(t.at('2 seconds'), t.lease('runs'), null)).cancelled, '{}', 'a heartbeat names nobody');
select is(millrace.cancel_at(t.at('3 seconds'), u, 'stop'), 'running', 'a running job goes on until its worker is told') from unnest((:'ids'::bigint[])[1:5]) u;
select is((millrace.heartbeat_at(t.at('4 seconds'), t.lease('runs'), null)).cancelled, (:'ids'::bigint[])[1:5], 'the heartbeat tells');
select is(millrace.job_story((:'ids'::bigint[])[1]) - array['args', 'attempts'] @> '{"status": "running", "cancel_requested": true, "reason": "stop"}', true, 'so does its story');
select is(millrace.complete_at(t.at('5 seconds'), t.lease('runs'), (:'ids'::bigint[])[1:1], null), 1, 'one completes all the same');
select is(t.status((:'ids'::bigint[])[1]), 'completed', 'then it is completed');
select is(millrace.fail_at(t.at('6 seconds'), t.lease('runs'), (:'ids'::bigint[])[2], 'stopped', null, true, null), 'cancelled', 'one fails: cancelled');
select is((t.status((:'ids'::bigint[])[2]), t.reason((:'ids'::bigint[])[2]))::text, ('cancelled', 'stop')::text, 'with the reason');
select is(millrace.release_at(t.at('7 seconds'), t.lease('runs'), (:'ids'::bigint[])[3:3]), 1, 'one is given back');
select is(t.status((:'ids'::bigint[])[3]), 'cancelled', 'cancelled');
select is(millrace.requeue_at(t.at('7 seconds'), t.lease('runs'), (:'ids'::bigint[])[4], '{"delay": "1 hour"}', null, null, '{}'), (:'ids'::bigint[])[4], 'one is put off');
select is(t.status((:'ids'::bigint[])[4]), 'cancelled', 'cancelled');
select is((millrace.heartbeat_at(t.at('8 seconds'), t.lease('runs'), null)).cancelled, (:'ids'::bigint[])[5:5], 'the heartbeat names the one that is left');
select is(millrace.finish_at(t.at('9 seconds'), t.lease('runs'), jsonb_build_array(
            jsonb_build_object('id', (:'ids'::bigint[])[5], 'outcome', 'failed', 'error', 'stopped'),
            jsonb_build_object('id', (:'ids'::bigint[])[6], 'outcome', 'failed', 'error', 'oh'))), 2, 'finish tells of both sorts');
select is(array[t.status((:'ids'::bigint[])[5]), t.status((:'ids'::bigint[])[6])], array['cancelled', 'scheduled'], 'only the one that was asked to is cancelled');
select setval('millrace.clean_clock', 0);
select is(t.duty(t.at('1 minute'), 'clean') >= 1, true, 'upkeep forgets the mark of the one that completed');
select is((select count(*) from millrace.mark), 0::bigint, 'no mark is left');
-- Lost.
select (t.put(t.at('0'), 'lost', 1))[1] as id
\gset
select t.claim('lost', t.at('1 second'), 'lost');
select is(millrace.cancel_at(t.at('2 seconds'), :id, 'stop'), 'running', 'a job whose worker is gone');
select setval('millrace.rescue_hint', 0);      -- the clock of these tests goes back
select is(t.duty(t.at('1 minute'), 'rescue'), 1::bigint, 'its lease ends');
select is((t.status(:id), t.reason(:id))::text, ('cancelled', 'stop')::text, 'it is cancelled, not delivered again');
select is(t.claim('lost2', t.at('2 minutes'), 'lost'), '{}', 'indeed');
-- Dead.
select (t.put(t.at('0'), 'dies', 1))[1] as id
\gset
select t.claim('dies', t.at('1 second'), 'dies');
select millrace.fail_at(t.at('2 seconds'), t.lease('dies'), :id, 'oh', null, false, null);
select is(millrace.cancel_at(t.at('3 seconds'), :id, null), 'dead', 'a dead job stays dead');

-- Pause and resume.
select t.put(t.at('0'), 'pause', 3) as ids
\gset
select millrace.pause_job_at(t.at('1 second'), (:'ids'::bigint[])[2]);
select is(t.status((:'ids'::bigint[])[2]), 'paused', 'a job that waits is paused');
select is(t.depth(t.at('1 second'), 'pause'), 2::bigint, 'and not counted as depth');
select millrace.pause_job_at(t.at('1 second'), (:'ids'::bigint[])[2]);
select is(t.claim('pause', t.at('2 seconds'), 'pause', 10), array[(:'ids'::bigint[])[1], (:'ids'::bigint[])[3]], 'the others are delivered');
select is((select count(*) from millrace.jobs j where j.id = (:'ids'::bigint[])[2]), 1::bigint, 'it is there once');
select millrace.complete_at(t.at('2 seconds'), t.lease('pause'), null, null);
select is(t.duty(t.at('40 days'), 'promote'), 0::bigint, 'it waits for ever');
select millrace.resume_job_at(t.at('3 seconds'), (:'ids'::bigint[])[2]);
select is(t.claim('pause2', t.at('4 seconds'), 'pause', 10), (:'ids'::bigint[])[2:2], 'resumed it is delivered');
select is((g.attempt, g.args)::text, (1, '{"i": 2}'::jsonb)::text, 'as it was') from t.got g where g.tag = 'pause2';
select millrace.enqueue_at(t.at('0'), 'k', '{}', 'pause', 50, t.at('1 hour'), null, null, null, null, null, null, null, null, null, null, null, null) as id
\gset
select millrace.pause_job_at(t.at('1 second'), :id);
select is(t.status(:id), 'paused', 'a scheduled job is paused');
select millrace.resume_job_at(t.at('2 seconds'), :id);
select is((j.status, j.run_at)::text, ('scheduled', t.at('1 hour'))::text, 'resumed before its time it is scheduled again') from millrace.jobs j where j.id = :id;
select millrace.pause_job_at(t.at('1 second'), :id);
select millrace.resume_job_at(t.at('2 hours'), :id);
select is(t.status(:id), 'available', 'resumed after its time it is available');
select millrace.pause_job_at(t.at('2 hours'), :id);
select is(millrace.cancel_at(t.at('2 hours'), :id, null), 'cancelled', 'a paused job is cancelled');

-- Now.
select millrace.enqueue_at(t.at('0'), 'k', '{}', 'now', 50, t.at('1 hour'), null, null, null, null, null, null, null, null, null, null, null, null) as id
\gset
select millrace.run_now_at(t.at('1 second'), :id);
select is(t.status(:id), 'available', 'a scheduled job is made available');
select millrace.run_now_at(t.at('1 second'), :id);
select is(t.claim('now', t.at('2 seconds'), 'now', 10), array[:id]::bigint[], 'and delivered, once');

-- Changes.
select t.put(t.at('0'), 'change', 3) as ids
\gset
select millrace.change_job_at(t.at('1 second'), (:'ids'::bigint[])[3], '{"priority": 10, "args": {"new": true}}');
select is(t.claim('change', t.at('2 seconds'), 'change', 10), (:'ids'::bigint[])[3:3], 'a job with a better priority comes first');
select is((g.priority, g.args, g.attempt)::text, (10, '{"new": true}'::jsonb, 1)::text, 'with what was changed') from t.got g where g.tag = 'change';
select millrace.change_job_at(t.at('3 seconds'), (:'ids'::bigint[])[1], '{"delay": "1 hour"}');
select is(t.claim('change2', t.at('4 seconds'), 'change', 10), (:'ids'::bigint[])[2:2], 'one that was put off does not come');
select is((j.status, j.run_at)::text, ('scheduled', t.at('1 hour 3 seconds'))::text, 'but later') from millrace.jobs j where j.id = (:'ids'::bigint[])[1];
select millrace.change_job_at(t.at('3 seconds'), (:'ids'::bigint[])[1], '{"delay": "2 hours", "args": {"a": null}}');
select is((j.args, j.run_at)::text, ('{"a": null}'::jsonb, t.at('2 hours 3 seconds'))::text, 'and can be put off again, its args as they were given') from millrace.jobs j where j.id = (:'ids'::bigint[])[1];
select millrace.change_job_at(t.at('3 seconds'), (:'ids'::bigint[])[1], '{"delay": "1 hour"}');
select millrace.change_job_at(t.at('4 seconds'), (:'ids'::bigint[])[1], '{"priority": 5, "run_at": null}');
select is((j.status, j.run_at, j.priority)::text, ('scheduled', t.at('1 hour 3 seconds'), 5)::text, 'its priority changes, its time stays') from millrace.jobs j where j.id = (:'ids'::bigint[])[1];
select millrace.change_job_at(t.at('5 seconds'), (:'ids'::bigint[])[1], jsonb_build_object('run_at', t.at('6 seconds'), 'queue', 'elsewhere'));
select t.duty(t.at('7 seconds'), 'promote');
select is(t.claim('change3', t.at('8 seconds'), 'elsewhere', 10), (:'ids'::bigint[])[1:1], 'its time and its queue change');

-- Purge and drop take marks along.
select t.put(t.at('0'), 'purged', 5) as ids
\gset
select millrace.cancel_at(t.at('1 second'), (:'ids'::bigint[])[2], null);
select is(millrace.purge('purged'), 4::bigint, 'purge counts what was left');
select is((select count(*) from millrace.mark m where m.lane >> 12 = t.qid('purged')), 0::bigint, 'and takes the marks');
select is(t.claim('purged', t.at('2 seconds'), 'purged', 10), '{}', 'nothing is left');

-- Expired jobs say so before a claim passes them.
select millrace.enqueue('k', '{}', 'stale', expires_in => '1 millisecond') as id
\gset
select is(t.status(:id), 'expired', 'a job whose time is over is expired') from pg_sleep(0.01);

-- A queue of one part after another, with a held lock nowhere: single claims go on after marks.
select is(millrace.hint('millrace.mark_hint'), 1::bigint, 'the hint is set');
select t.put(t.at('0'), 'single', 4) as ids
\gset
select millrace.cancel_at(t.at('1 second'), (:'ids'::bigint[])[1], null);
select is(t.claim('single', t.at('2 seconds'), 'single', 1), (:'ids'::bigint[])[2:2], 'a single claim passes over a cancelled job');

-- Bad input.
select t.all_rows() as before
\gset
select t.refused(r.sql, r.state, r.message)
  from (values ('select millrace.cancel(null)', 'MR003', 'there is no job null'), ('select millrace.cancel(-5)', 'MR003', 'there is no job -5'),
               ('select millrace.cancel(9223372036854775807)', 'MR003', 'there is no job 9223372036854775807'),
               ('select millrace.cancel(1, repeat(''x'', 1001))', '22023', 'reason is 1001 bytes long'),
               ('select millrace.pause_job(null)', 'MR003', 'there is no job null'), ('select millrace.pause_job(0)', 'MR003', 'there is no job 0'),
               ('select millrace.resume_job(null)', 'MR003', 'there is no job'), ('select millrace.resume_job(0)', 'MR003', 'there is no job'),
               ('select millrace.run_now(null)', 'MR003', 'there is no job'), ('select millrace.run_now(0)', 'MR003', 'there is no job'),
               ('select millrace.change_job(null, ''{}'')', 'MR003', 'there is no job'), ('select millrace.change_job(0, ''{}'')', 'MR003', 'there is no job')) r(sql, state, message);
select t.refused(format(r.sql, (t.ids('single'))[1]), '22023', r.message)
  from (values ('select millrace.pause_job(%s)', 'job \d+ is running'), ('select millrace.resume_job(%s)', 'job \d+ is running'),
               ('select millrace.run_now(%s)', 'job \d+ is running'), ('select millrace.change_job(%s, ''{}'')', 'job \d+ is running'),
               ('select millrace.change_job(%s, null)', 'changes must be an object'), ('select millrace.change_job(%s, ''{"color": 1}'')', 'unknown key ''color''')) r(sql, message);
select t.refused(format('select millrace.resume_job(%s)', (:'ids'::bigint[])[3]), '22023', 'job \d+ is available');
select t.refused(format('select millrace.change_job(%s, ''{"priority": 100}'')', (:'ids'::bigint[])[3]), '22023', 'priority must be from 0 to 99');
select is(t.all_rows(), :'before', 'what is refused changes nothing');
begin isolation level repeatable read;
select t.refused(format('select millrace.cancel(%s)', (:'ids'::bigint[])[3]), '25000', 'cancel needs isolation level read committed');
commit;
-- A claim that passes over expired jobs reads on behind those that it asked for: marks there count, too.
select count(millrace.enqueue_at(t.at('0'), 'k', '{}', 'behind', 50, null, null, null, null, null, null, null, null, '1 s', null, null, null, null))
  from generate_series(1, 5)
\gset
select t.put(t.at('0'), 'behind', 3) as ids
\gset
select millrace.pause_job_at(t.at('1 second'), (:'ids'::bigint[])[1]), millrace.cancel_at(t.at('1 second'), (:'ids'::bigint[])[2], 'no')
\gset
select is(t.claim('behind', t.at('10 seconds'), 'behind', 1), (:'ids'::bigint[])[3:3], 'paused and cancelled jobs behind expired ones are not delivered');
select * from finish();
