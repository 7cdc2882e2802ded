-- SPDX-License-Identifier: PostgreSQL
-- Packs: the jobs of one enqueue_many in few rows of the log. Nobody but the log may know: every job is claimed, finished, counted and shown as if
-- it had a row of its own. (The other files use packs all the time; they run a second time without, see lib/alone.psql.)
\ir lib/helpers.psql
select no_plan();

-- The rows of a queue: jobs in each, in order.
create function t.rows(p_queue text) returns int[] language sql as $$
  select array(select coalesce(j.pack_n, 1)::int from millrace.job j join millrace.queue q on q.queue_id = j.lane >> 12 where q.queue_name = p_queue order by j.pos)
$$;
create function t.numbers(p_tag text) returns int[] language sql as $$
  select array(select (g.args ->> 'i')::int from t.got g where g.tag = p_tag order by g.ord)
$$;
create function t.args(p_n int, p_bytes int) returns jsonb[] language sql as $$
  select array(select jsonb_build_object('i', i, 'x', repeat('x', p_bytes)) from generate_series(1, p_n) i)
$$;

-- ---- which jobs share a row ----
select is(t.put(t.at('0'), 'few', 1), array[1]::bigint[], 'the first job is job 1');
select is(t.put(t.at('0'), 'few', 3), array[33, 34, 35]::bigint[], 'the ids of a pack are in a row');
select is(t.put(t.at('0'), 'few', 1), array[65]::bigint[], 'and a block of positions is for one row alone');
select is(t.rows('few'), array[1, 3, 1], 'one job is never a pack');
select t.put(t.at('0'), 'full', 70) as full
\gset
select is(t.rows('full'), array[31, 31, 8], 'no more than a block of positions has');
select is(cardinality(:'full'::bigint[]), 70, 'an id for each');
select is(array(select f.id from unnest(:'full'::bigint[]) with ordinality f(id, ord) order by f.id), :'full'::bigint[], 'in order');
select count(*) from millrace.enqueue_many_at(t.at('0'), 'k', t.args(40, 180), 'medium', 50, null)
\gset
select is(t.rows('medium'), array[17, 17, 6], 'jobs of 200 bytes: two rows a page');
select ok((select max(pg_column_size(j.*)) < 4060 and min(pg_column_size(j.*)) filter (where j.pack_n = 17) > 3500 from millrace.job j where j.pack_n in (17, 31)), 'by their size');
select count(*) from millrace.enqueue_many_at(t.at('0'), 'k', t.args(3, 700), 'large', 50, null)
\gset
select is(t.rows('large'), array[1, 1, 1], 'large ones have a row each');
select count(*) from millrace.enqueue_many_at(t.at('0'), 'k', t.args(50, 10) || t.args(1, 3000), 'mixed', 50, null)
\gset
select is(cardinality(t.rows('mixed')), 51, 'and so has the whole call with a large one in it');
select millrace.set_queue('eight', '{"parts": 8}')
\gset
select t.put(t.at('0'), 'eight', 8), t.put(t.at('0'), 'eight', 25)
\gset
select is((select (count(*), count(distinct j.lane))::text from millrace.job j where j.pack_n is null and j.lane >> 12 = t.qid('eight')), '(8,8)', 'eight jobs on eight parts: one each');
select is((select (count(*), max(j.pack_n), sum(j.pack_n))::text from millrace.job j where j.pack_n is not null and j.lane >> 12 = t.qid('eight')), '(9,3,25)', 'twenty-five: a pack for each part');
select count(*) from millrace.enqueue_many_at(t.at('0'), 'k', array[array['{"i": 1}', '{"i": 2}'], array['{"i": 3}', '{"i": 4}']]::jsonb[], 'square', 50, null)
\gset
select is(t.numbers('square'), '{}', 'nothing yet');
select is(cardinality(t.claim('square', t.at('1 s'), 'square', 10, '1 day')), 4, 'an array of two dimensions');
select is(t.numbers('square'), array[1, 2, 3, 4], 'in its order');
select count(*) from millrace.enqueue_many_at(t.at('0'), 'k', '[5:7]={"{\"i\": 1}","{\"i\": 2}","{\"i\": 3}"}'::jsonb[], 'shifted', 50, null)
\gset
select t.claim('shifted', t.at('1 s'), 'shifted', 10, '1 day')
\gset
select is(t.numbers('shifted'), array[1, 2, 3], 'an array that begins with 5');
select count(*) from millrace.enqueue_many_at(t.at('0'), 'k', t.args(30000, 3), 'thousands', 50, null)
\gset
select is(array(select distinct n from unnest(t.rows('thousands')) n order by 1), array[23, 31], 'thirty thousand');
select t.claim_all('thousands', t.at('1 s'), 'thousands')
\gset
select is(t.numbers('thousands'), array(select generate_series(1, 30000)), 'each once, in order, with its args');
select is((select count(*) from t.got g where g.tag = 'thousands' and g.id <> all (array(select j.at from millrace.job m cross join lateral generate_series(m.pos - m.pack_n + 1, m.pos) j(at)
                                                                                          where m.lane >> 12 = t.qid('thousands')))), 0::bigint, 'with its id');
select throws_like($$ select millrace.enqueue_many('k', array['{}', null]::jsonb[]) $$, '%args[2] must not be null%', 'a null among them is refused');

-- ---- a cursor in the midst of a pack ----
select t.put(t.at('0'), 'midst', 40) as midst
\gset
select is(t.claim('m1', t.at('1 s'), 'midst', 1, '1 hour'), (:'midst'::bigint[])[1:1], 'the first of a pack');
select is(millrace.depth('midst'), 39::bigint, 'the others wait');
select is((select (s.available, s.running)::text from millrace.stats_at(t.at('3 s'), 'midst') s), '(39,1)', 'one runs');
select is(t.claim('m2', t.at('2 s'), 'midst', 5, '1 hour'), (:'midst'::bigint[])[2:6], 'five more');
select is(t.claim('m3', t.at('3 s'), 'midst', 20, '1 hour'), (:'midst'::bigint[])[7:26], 'twenty more');
select is(t.claim('m4', t.at('4 s'), 'midst', 12, '1 hour'), (:'midst'::bigint[])[27:38], 'over the border');
select is((select extract(epoch from s.oldest_seconds * interval '1 s')::int from millrace.stats_at(t.at('9 s'), 'midst') s), 9, 'the age of those in the rest of a pack');
select is(t.claim('m5', t.at('5 s'), 'midst', 100, '1 hour'), (:'midst'::bigint[])[39:40], 'the rest');
select is(t.claim('m6', t.at('5 s'), 'midst', 100, '1 hour'), '{}', 'and no more');
select is(t.numbers('m1') || t.numbers('m2') || t.numbers('m3') || t.numbers('m4') || t.numbers('m5'), array(select generate_series(1, 40)), 'with the args of each');
select is((select count(distinct g.args) from t.got g where g.tag ~ '^m[1-5]$'), 40::bigint, 'and no other''s');

-- ---- what becomes of single jobs of a pack ----
select is(millrace.fail_at(t.at('6 s'), t.lease('m2'), (t.ids('m2'))[2], 'no', '1 s', true, null), 'scheduled', 'one fails');
select is(millrace.fail_at(t.at('6 s'), t.lease('m2'), (t.ids('m2'))[3], 'never', null, false, null), 'dead', 'one dies');
select is(millrace.release_at(t.at('6 s'), t.lease('m2'), (t.ids('m2'))[4:4]), 1, 'one is released');
select is(millrace.requeue_at(t.at('6 s'), t.lease('m2'), (t.ids('m2'))[5], '{"args": {"i": 600}}', null, null, '{}'), (t.ids('m2'))[5], 'one is changed');
select is(millrace.complete_at(t.at('6 s'), t.lease('m2'), (t.ids('m2'))[1:1], '{"r": 2}'), 1, 'one is completed');
select is(millrace.finish_at(t.at('6 s'), t.lease('m3'), jsonb_build_array(jsonb_build_object('id', (t.ids('m3'))[1], 'outcome', 'failed', 'error', 'e', 'retry_in', '1 s'),
                                                                           jsonb_build_object('id', (t.ids('m3'))[2], 'outcome', 'completed', 'result', 7),
                                                                           jsonb_build_object('id', (t.ids('m3'))[3], 'outcome', 'released'))), 3, 'finish of three');
select t.ids('m2') || (t.ids('m3'))[1:4] as nine
\gset
select is(array(select j.status || ' ' || (j.args ->> 'i') from millrace.jobs j where j.id = any (:'nine'::bigint[]) order by j.id),
          array['completed 2', 'scheduled 3', 'dead 4', 'available 5', 'available 600', 'scheduled 7', 'completed 8', 'available 9', 'running 10'], 'the view shows each once');
select is(array(select millrace.job(i) ->> 'status' from unnest(:'nine'::bigint[]) i), array['completed', 'scheduled', 'dead', 'available', 'available', 'scheduled', 'completed', 'available', 'running'], 'and so do their stories');
select is((select j.args ->> 'i' from millrace.dead_letters j where j.id = (t.ids('m2'))[3]), '4', 'the dead letter has its own args');
select is((millrace.job((t.ids('m2'))[1]) -> 'result')::text, '{"r": 2}', 'a result');
select is(jsonb_array_length(millrace.job((t.ids('m2'))[4]) -> 'attempts'), 2, 'two rows of the log are this job');
select millrace.promote(t.at('8 s'), 100)
\gset
select t.claim_all('again', t.at('8 s'), 'midst')
\gset
select is((select array_agg((g.id, g.attempt, (g.args ->> 'i')::int)::text order by g.id) from t.got g where g.tag = 'again'),
          array[((t.ids('m2'))[2], 2, 3)::text, ((t.ids('m2'))[4], 1, 5)::text, ((t.ids('m2'))[5], 1, 600)::text, ((t.ids('m3'))[1], 2, 7)::text, ((t.ids('m3'))[3], 1, 9)::text],
          'those that come back have their id and args');
select is(millrace.complete_at(t.at('9 s'), g.lease, null, null), count(*)::int, 'they complete') from t.got g where g.tag = 'again' group by g.lease;
select is(millrace.rescue(t.at('2 hours'), 1000), 32::bigint, 'all that is left is taken back when the leases are over');
select t.claim_all('back', t.at('2 hours 1 s'), 'midst')
\gset
select is((select array_agg((g.id, (g.args ->> 'i')::int)::text order by g.id) from t.got g where g.tag = 'back'),
          (select array_agg((g.id, (g.args ->> 'i')::int)::text order by g.id) from t.got g where g.tag = any ('{m1,m3,m4,m5}') and g.id <> all ((t.ids('m3'))[1:3])), 'with its id and args');
select millrace.complete_many(array(select distinct g.lease from t.got g where g.tag = 'back'))
\gset
select is(millrace.depth('midst'), 0::bigint, 'nothing is left');

-- ---- packs, single jobs, expired and large ones in one range ----
select t.put(t.at('3 hours'), 'mix', 5),
       millrace.enqueue_at(t.at('3 hours'), 'k', '{"i": 6}', 'mix', 50, null, null, null, null, null, null, null, null, '1 s', null, null, null, null),
       t.put(t.at('3 hours'), 'mix', 4),
       (select count(*) from millrace.enqueue_many_at(t.at('3 hours'), 'k', t.args(2, 5000), 'mix', 50, null)),
       t.put(t.at('3 hours'), 'mix', 3)
\gset
select is(cardinality(t.claim('x1', t.at('3 hours 2 s'), 'mix', 3)), 3, 'three of the first pack');
select is(cardinality(t.claim('x2', t.at('3 hours 2 s'), 'mix', 4)), 4, 'over the one that has expired');
select is(t.numbers('x1') || t.numbers('x2'), array[1, 2, 3, 4, 5, 1, 2], 'in order');
select is(cardinality(t.claim('x3', t.at('3 hours 2 s'), 'mix', 5)), 5, 'and over the large ones');
select is(t.numbers('x3'), array[3, 4, 1, 2, 1], 'in order, too');
select is(cardinality(t.claim('x4', t.at('3 hours 2 s'), 'mix', 100)), 2, 'the rest');
select is((select (s.available, s.running)::text from millrace.stats_at(t.at('3 hours 2 s'), 'mix') s), '(0,14)', 'fourteen run');
select t.put(t.at('3 hours'), 'gone', 50)
\gset
select t.claim('g', t.at('3 hours'), 'gone', 3)
\gset
select is(millrace.purge('gone'), 47::bigint, 'purge with a cursor in the midst of a pack');
select is(t.claim('g2', t.at('3 hours'), 'gone', 100), '{}', 'leaves none');
select is((select count(*) from millrace.jobs j where j.queue = 'gone' and j.status = 'cancelled'), 47::bigint, 'each is shown as cancelled');

-- ---- any id may be asked for ----
select is(array(select millrace.job((:'midst'::bigint[])[i]) ->> 'id' from generate_series(1, 40) i), (:'midst'::bigint[])::text[], 'every job of a pack has a story');
select throws_ok(format('select millrace.job(%s)', i), 'MR003', null, 'job ' || i) from unnest(array[0, -1, 32, 36, 9223372036854775807, -9223372036854775808]) i;

select * from finish();
