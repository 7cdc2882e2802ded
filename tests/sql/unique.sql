-- SPDX-License-Identifier: PostgreSQL
-- Unique jobs: a key is held by a job until it ends.
\ir lib/helpers.psql
select no_plan();

create function t.once(p_now timestamptz, p_key text, p_queue text = 'u', p_args jsonb = '{}', p_run_at timestamptz = null, p_mode text = 'ignore',
                       p_for interval = null, p_expires interval = null)
returns bigint
language sql
as $$
  select millrace.enqueue_at(p_now, 'k', p_args, p_queue, 50, p_run_at, null, p_key, null, null, null, null, null, p_expires, null, null, null, null,
                             p_mode, p_for)
$$;

create function t.keys()
returns bigint
language sql
as $$
  select count(*) from millrace.unique_key u where u.free_at is null
$$;

-- Available, running, completed.
select t.once(t.at('0'), 'a') as a
\gset
select is(t.once(t.at('1 second'), 'a'), :a::bigint, 'the second enqueue returns the first one''s id');
select isnt(t.once(t.at('1 second'), 'b'), :a::bigint, 'another key is another job');
select isnt(t.once(t.at('1 second'), 'a', 'v'), :a::bigint, 'so is another queue');
select is(t.claim('u', t.at('2 seconds'), 'u', 1), array[:a]::bigint[], 'it is delivered');
select is(t.once(t.at('3 seconds'), 'a'), :a::bigint, 'while it runs the key is held');
select is(millrace.complete_at(t.at('4 seconds'), t.lease('u'), null, null), 1, 'it completes');
select isnt(t.once(t.at('5 seconds'), 'a'), :a::bigint, 'then the key is free');
select is(t.keys(), 3::bigint, 'three keys are held');
select is(cardinality(t.claim_all('u2', t.at('6 seconds'), 'u')) + cardinality(t.claim_all('v', t.at('6 seconds'), 'v')), 3, 'three jobs');
select is(millrace.complete_many(array(select distinct g.lease from t.got g where g.tag in ('u2', 'v'))), 3, 'complete_many');
select is(t.keys(), 0::bigint, 'gives all keys back');

-- Failure: held while it is retried, free when it is dead. Release, rescue.
select t.once(t.at('10 seconds'), 'f') as f
\gset
select t.claim('f', t.at('11 seconds'), 'u');
select millrace.fail_at(t.at('12 seconds'), t.lease('f'), :f, 'oh', '1 minute', true, null);
select is(t.once(t.at('13 seconds'), 'f'), :f::bigint, 'a job that is to be retried holds its key');
select t.duty(t.at('2 minutes'), 'promote');
select is(t.claim('f2', t.at('2 minutes'), 'u'), array[:f]::bigint[], 'it is retried');
select millrace.release_at(t.at('2 minutes'), t.lease('f2'), null);
select is(t.once(t.at('2 minutes'), 'f'), :f::bigint, 'given back it holds its key');
select t.claim('f3', t.at('2 minutes'), 'u');
select is(t.duty(t.at('10 minutes'), 'rescue'), 1::bigint, 'its worker is lost');
select is(t.once(t.at('10 minutes'), 'f'), :f::bigint, 'rescued it holds its key');
select t.claim('f4', t.at('11 minutes'), 'u');
select is(millrace.fail_at(t.at('11 minutes'), t.lease('f4'), :f, 'oh', null, false, null), 'dead', 'dead');
select isnt(t.once(t.at('11 minutes'), 'f'), :f::bigint, 'then the key is free');
select millrace.purge('u');
select is(t.keys(), 0::bigint, 'purge gives keys back');

-- Scheduled, cancelled, expired.
select t.once(t.at('0'), 's', 's', '{}', t.at('1 hour')) as s
\gset
select is(t.once(t.at('1 second'), 's', 's'), :s::bigint, 'a scheduled job holds its key');
select millrace.cancel_at(t.at('2 seconds'), :s, null);
select t.once(t.at('3 seconds'), 's', 's') as s2
\gset
select isnt(:s2::bigint, :s::bigint, 'cancelled it gives it back at once');
select millrace.cancel_at(t.at('4 seconds'), :s2, null);
select t.once(t.at('5 seconds'), 's', 's') as s3
\gset
select isnt(:s3::bigint, :s2::bigint, 'so does one that was available');
select is(t.claim('s', t.at('6 seconds'), 's', 10), array[:s3]::bigint[], 'only the last one is delivered');
select is(t.once(t.at('7 seconds'), 's', 's'), :s3::bigint, 'whose key no passed one has taken along');
select millrace.complete_at(t.at('8 seconds'), t.lease('s'), null, null);
select t.once(t.at('10 seconds'), 'x', 'x', '{}', null, 'ignore', null, '1 minute') as x
\gset
select is(t.once(t.at('11 seconds'), 'x', 'x'), :x::bigint, 'a job that may expire holds its key');
select t.once(t.at('2 minutes'), 'x', 'x') as x2
\gset
select isnt(:x2::bigint, :x::bigint, 'expired it does not, before any claim has seen it');
select is(t.claim('x', t.at('3 minutes'), 'x', 10), array[:x2]::bigint[], 'a claim passes over it');
select is(t.once(t.at('3 minutes'), 'x', 'x'), :x2::bigint, 'and leaves the other one''s key alone');
select t.once(t.at('10 minutes'), 'y', 'y', '{}', null, 'ignore', null, '1 minute') as y
\gset
select t.claim('y', t.at('10 minutes'), 'y', 1, '1 hour');
select is(t.once(t.at('20 minutes'), 'y', 'y'), :y::bigint, 'one that runs beyond that time holds its key');
select t.once(t.at('0'), 'z', 'z', '{}', null, 'ignore', null, '1 minute');
select is(t.claim('z', t.at('5 minutes'), 'z', 10), '{}', 'an expired one is passed over');
select is((select count(*) from millrace.unique_key u where u.unique_name = 'z' and u.free_at is null), 0::bigint, 'and its key is given back');

-- Replace: args, and the time.
select t.once(t.at('0'), 'd', 'd', '{"n": 1}', t.at('10 seconds')) as d
\gset
select is(t.once(t.at('5 seconds'), 'd', 'd', '{"n": 2}', t.at('15 seconds'), 'replace'), :d::bigint, 'replace returns the id of the job that is there');
select is((j.status, j.args, j.run_at)::text, ('scheduled', '{"n": 2}'::jsonb, t.at('15 seconds'))::text, 'which has the new args and time') from millrace.jobs j where j.id = :d;
select t.once(t.at('6 seconds'), 'd', 'd', '{"n": 3}', null, 'replace');
select is((j.status, j.args, j.run_at)::text, ('scheduled', '{"n": 3}'::jsonb, t.at('15 seconds'))::text, 'without a time it keeps its own') from millrace.jobs j where j.id = :d;
select t.duty(t.at('16 seconds'), 'promote');
select t.once(t.at('17 seconds'), 'd', 'd', '{"n": 4}', null, 'replace');
select is(t.claim('d', t.at('18 seconds'), 'd', 10), array[:d]::bigint[], 'one that is available is replaced, too, and delivered once');
select is(g.args, '{"n": 4}'::jsonb, 'with the new args') from t.got g where g.tag = 'd';
select is(t.once(t.at('19 seconds'), 'd', 'd', '{"n": 5}', null, 'replace'), :d::bigint, 'one that runs is left alone');
select is(millrace.complete_at(t.at('20 seconds'), t.lease('d'), null, null), 1, 'and completes');
select is((select count(*) from millrace.unique_key u where u.unique_name = 'd' and u.free_at is null), 0::bigint, 'its key is free');

-- A while after completion.
select t.once(t.at('0'), 'q', 'q', '{}', null, 'ignore', '1 minute') as q
\gset
select t.claim('q', t.at('1 second'), 'q');
select millrace.complete_at(t.at('10 seconds'), t.lease('q'), null, null);
select is(t.once(t.at('60 seconds'), 'q', 'q'), :q::bigint, 'the key is held for a minute after completion');
select isnt(t.once(t.at('70 seconds'), 'q', 'q', '{}', null, 'ignore', '1 minute'), :q::bigint, 'not longer');
select t.claim('q2', t.at('71 seconds'), 'q');
select millrace.fail_at(t.at('72 seconds'), t.lease('q2'), (t.ids('q2'))[1], 'oh', null, false, null);
select is((select count(*) from millrace.unique_key u where u.unique_name = 'q' and u.free_at is null), 0::bigint, 'a dead job gives it back at once');
select t.once(t.at('80 seconds'), 'q', 'q', '{}', null, 'ignore', '1 minute');
select t.claim('q3', t.at('81 seconds'), 'q');
select millrace.complete_at(t.at('82 seconds'), t.lease('q3'), null, null);
select isnt(t.once(t.at('10 minutes'), 'once', 'o'), null, 'a key that is used once');
select t.claim('o', t.at('10 minutes'), 'o');
select millrace.complete_at(t.at('10 minutes'), t.lease('o'), null, null);
create function t.remembered(p_at timestamptz)
returns text[]
language sql
as $$
  select setval('millrace.clean_clock', 0), t.duty(p_at, 'clean');
  select array_agg(u.unique_name order by u.unique_name) from millrace.unique_key u where u.unique_name in ('q', 'once');
$$;
select is(t.remembered(t.at('11 minutes')), array['once', 'q'], 'upkeep remembers keys for two minutes');
select is(t.remembered(t.at('12 minutes 1 second')), array['q'], 'and those that were used more often for longer');
select is(t.remembered(t.at('13 minutes')), null, 'but not for good');
select isnt(t.once(t.at('14 minutes'), 'q', 'q'), null, 'a key that was forgotten is taken');
select is(t.once(t.at('15 minutes'), 'q', 'q'), (select u.job_id from millrace.unique_key u where u.unique_name = 'q' and u.use_no = 1), 'and held as on the first day');

-- Many at once.
select array(select * from millrace.enqueue_jobs_at(t.at('0'), '[{"kind": "k", "queue": "m", "unique_key": "2"}, {"kind": "k", "queue": "m"},
  {"kind": "k", "queue": "m", "unique_key": "1"}, {"kind": "k", "queue": "m", "unique_key": "2"}, {"kind": "k", "queue": "m2", "unique_key": "2"}]')) as ids
\gset
select is((:'ids'::bigint[])[4], (:'ids'::bigint[])[1], 'of two in one call the first is made');
select is((select count(distinct u) from unnest(:'ids'::bigint[]) u), 4::bigint, 'the others are jobs of their own');
select is(array(select * from millrace.enqueue_jobs_at(t.at('1 second'), '[{"kind": "k", "queue": "m", "unique_key": "1"}, {"kind": "k", "queue": "m", "unique_key": "2"}]')),
          array[(:'ids'::bigint[])[3], (:'ids'::bigint[])[1]], 'a second call returns the ids of the first, in its own order');
select is(t.claim('m', t.at('2 seconds'), 'm', 10), (:'ids'::bigint[])[1:3], 'they are delivered once, in the order of the call');
select is(millrace.complete_at(t.at('3 seconds'), t.lease('m'), (:'ids'::bigint[])[3:3], null), 1, 'one completes');
select is((select array_agg(u.unique_name order by u.unique_name) from millrace.unique_key u where u.queue_id = t.qid('m') and u.free_at is null), array['2'], 'its key alone is free');
select is(millrace.finish_at(t.at('4 seconds'), t.lease('m'), jsonb_build_array(jsonb_build_object('id', (:'ids'::bigint[])[1], 'outcome', 'completed'),
                                                                                jsonb_build_object('id', (:'ids'::bigint[])[2], 'outcome', 'completed'))), 2, 'finish');
select is((select count(*) from millrace.unique_key u where u.queue_id = t.qid('m') and u.free_at is null), 0::bigint, 'gives the other one back');
select is((select count(*) from millrace.enqueue_jobs_at(t.at('5 seconds'), (select jsonb_agg(jsonb_build_object('kind', 'k', 'queue', 'big', 'unique_key', (i % 1000)::text)) from generate_series(1, 3000) i))),
          3000::bigint, 'three thousand');
select is((select count(*) from millrace.job j where j.lane >> 12 = t.qid('big')), 1000::bigint, 'are a thousand jobs');
select is(cardinality(t.claim_all('big', t.at('6 seconds'), 'big')), 1000, 'which are delivered');
select is((select sum(millrace.complete_at(t.at('7 seconds'), l.lease, null, null)) from (select distinct g.lease from t.got g where g.tag = 'big') l), 1000::bigint, 'and completed');
select is((select count(*) from millrace.unique_key u where u.queue_id = t.qid('big') and u.free_at is null), 0::bigint, 'no key is left');
select is((select count(*) from millrace.enqueue_jobs_at(t.at('8 seconds'), '[{"kind": "k", "queue": "r", "unique_key": "a", "args": {"n": 1}, "delay": "1 hour"}]')), 1::bigint, 'one');
select count(*) from millrace.enqueue_jobs_at(t.at('9 seconds'), '[{"kind": "k", "queue": "r", "unique_key": "a", "args": {"n": 2}, "on_conflict": "replace"}]');
select is(j.args, '{"n": 2}'::jsonb, 'replaced by a call of many') from millrace.jobs j where j.queue = 'r';
select count(*) from millrace.enqueue_jobs_at(t.at('10 seconds'), '[{"kind": "k", "queue": "r", "unique_key": "a", "args": {"n": 3}, "on_conflict": "replace"},
  {"kind": "k", "queue": "r", "unique_key": "b", "args": {"n": 4}}, {"kind": "k", "queue": "r", "unique_key": "b", "args": {"n": 5}},
  {"kind": "k", "queue": "r", "unique_key": "b", "args": {"n": 6}, "on_conflict": "replace", "delay": "1 hour"}, {"kind": "k", "queue": "r", "unique_key": "a", "args": {"n": 7}, "on_conflict": "replace"}]');
select is(array_agg((j.status, j.args)::text order by j.id), array[('scheduled', '{"n": 7}'::jsonb)::text, ('scheduled', '{"n": 6}'::jsonb)::text],
          'of several in one call the last that replaces counts, for a job that is there and for one that is made') from millrace.jobs j where j.queue = 'r';

-- A key outlives its job in no case: nobody gives these back.
select t.once(t.at('0'), 'left', 'l') as l
\gset
select t.claim('l', t.at('1 second'), 'l');
update millrace.claim set hooks = null where token::text = split_part(t.lease('l'), '.', 4);
select millrace.complete_at(t.at('2 seconds'), t.lease('l'), null, null);
select is((select count(*) from millrace.unique_key u where u.unique_name = 'left' and u.free_at is null), 1::bigint, 'a key that was left behind');
select isnt(t.once(t.at('3 seconds'), 'left', 'l'), :l::bigint, 'is free all the same');

-- Purged, moved and purged, damaged.
select t.once(t.at('0'), i::text, 'p', '{}', case when i % 2 = 0 then t.at('1 hour') end) from generate_series(1, 4) i;
select t.claim('p', t.at('1 second'), 'p', 1);
select is(millrace.purge('p'), 3::bigint, 'three wait');
select is((select array_agg(u.unique_name) from millrace.unique_key u where u.queue_id = t.qid('p') and u.free_at is null), array['1'], 'purge leaves the key of the running one');
select millrace.finish_at(t.at('2 seconds'), t.lease('p'), jsonb_build_array(jsonb_build_object('id', (t.ids('p'))[1], 'outcome', 'requeued', 'changes', '{"queue": "p2"}'::jsonb)));
select is((select array_agg(u.unique_name) from millrace.unique_key u where u.queue_id = t.qid('p') and u.free_at is null), array['1'], 'moved to another queue a job holds its key where it was');
select millrace.purge('p2');
select is((select count(*) from millrace.unique_key u where u.queue_id = t.qid('p') and u.free_at is null), 0::bigint, 'and gives it back from there');

-- A rollback gives back what it took.
begin;
select t.once(t.at('0'), 'gone', 'g');
rollback;
select is((select count(*) from millrace.unique_key u where u.unique_name = 'gone' and u.free_at is null), 0::bigint, 'a rollback takes the key along');

-- Long keys, other alphabets, drop_queue.
select is(t.once(t.at('1 second'), repeat('x', 1000), 'long'), t.once(t.at('2 seconds'), repeat('x', 1000), 'long'), 'a key of a thousand bytes');
select isnt(t.once(t.at('1 second'), repeat('x', 999) || 'y', 'long'), t.once(t.at('2 seconds'), repeat('x', 1000), 'long'), 'to its last byte');
select is(t.once(t.at('1 second'), 'ключ', 'long'), t.once(t.at('2 seconds'), 'ключ', 'long'), 'any alphabet');
select millrace.drop_queue('long');
select is((select count(*) from millrace.unique_key u where u.queue_id not in (select q.queue_id from millrace.queue q)), 0::bigint, 'drop_queue takes keys along');

-- Bad input.
select t.all_rows() as before
\gset
select t.refused(r.sql, '22023', r.message)
  from (values ('select millrace.enqueue(''k'', unique_key => '''')', 'unique_key must not be empty'),
               ('select millrace.enqueue(''k'', unique_key => repeat(''x'', 1001))', 'unique_key is 1001 bytes long'),
               ('select millrace.enqueue(''k'', unique_key => ''a'', on_conflict => ''fail'')', 'on_conflict must be ignore or replace, not ''fail'''),
               ('select millrace.enqueue(''k'', unique_key => ''a'', on_conflict => null)', 'on_conflict must be ignore or replace, not null'),
               ('select millrace.enqueue(''k'', unique_key => ''a'', unique_for => ''-1 second'')', 'unique_for must be longer than zero'),
               ('select millrace.enqueue(''k'', unique_for => ''1 second'')', 'need a unique_key'),
               ('select millrace.enqueue(''k'', on_conflict => ''replace'')', 'need a unique_key'),
               ('select count(*) from millrace.enqueue_jobs(''[{"kind": "k"}, {"kind": "k", "unique_key": ""}]'')', 'job 2: unique_key must not be empty'),
               ('select count(*) from millrace.enqueue_jobs(''[{"kind": "k", "unique_key": "a", "on_conflict": "x"}]'')', 'job 1: on_conflict must be ignore or replace'),
               ('select count(*) from millrace.enqueue_jobs(''[{"kind": "k", "unique_for": "1 s"}]'')', 'job 1: on_conflict and unique_for need a unique_key')) r(sql, message);
select is(t.all_rows(), :'before', 'what is refused changes nothing');
select * from finish();
