-- SPDX-License-Identifier: PostgreSQL
-- Payload parts that clients wrote to a blob store: the ledger of their objects, from the row that first names one to the last.
\ir lib/helpers.psql
select no_plan();

select millrace.set_queue('q', '{"parts": 1}');
select millrace.blob_home() as home \gset

-- A part as a client writes it; p_key without the database's own first part is somebody else's object.
create function t.ref(p_name text, p_home text = null)
returns bytea
language sql
as $$
  select '\x894d52500d0a1a0a6f'::bytea || int8send(3000)
         || convert_to(format('{"key":"%s/20300101/new-%s","size":3000,"sha256":"%s"}', coalesce(p_home, millrace.blob_home()), p_name, repeat('0', 64)), 'UTF8')
$$;
create function t.ledger()
returns text
language sql
as $$
  select coalesce(string_agg(format('%s:%s', substring(o.object_key from 'new-(.*)$'), o.job_id), ' ' order by o.object_key, o.job_id), '') from millrace.blob_object o
$$;
create function t.doomed()
returns text
language sql
as $$
  select coalesce(string_agg(substring(d.object_key from 'new-(.*)$'), ' ' order by d.object_key), '') from millrace.blob_doomed d
$$;
create function t.one(p_at interval, p_state bytea, p_blob bytea = null, p_delay interval = null)
returns bigint
language sql
as $$
  select millrace.enqueue_at(t.at(p_at), 'k', '{}', 'q', 50, null, p_delay, null, null, null, null, null, null, null, null, p_state, p_blob, null)
$$;
create function t.part(p_id bigint)
returns text
language sql
as $$
  select substring(convert_from(substr(c.state, 18), 'UTF8') from 'new-([a-z0-9]*)') from t.got c where c.id = p_id order by c.ctid desc limit 1
$$;

-- ---- the setting ----
select lives_ok($$select millrace.set_queue('q', '{"offload": 1000}')$$, 'a setting of a queue');
select is(millrace.payload_policy('q') ->> 'offload', '1000', 'which clients are told');
select is(millrace.payload_policy('q') ->> 'blobs', :'home', 'with what names begin with');
select ok(not millrace.payload_policy('elsewhere') ?| array['offload', 'blobs'], 'a queue without it says neither');
select t.refused($$select millrace.set_queue('q', '{"offload": 511}')$$, '22023', 'setting offload must be from 512');
select t.refused($$select millrace.set_queue('q', '{"offload": 67108865}')$$, '22023', 'setting offload must be from 512');
select t.refused($$select millrace.set_queue('q', '{"offload": "much"}')$$, '22023', 'setting offload does not accept');
select lives_ok($$select millrace.set_queue('q', '{"offload": null}')$$, 'null turns it off');
select ok(not millrace.payload_policy('q') ? 'offload', 'and nobody is told');

-- ---- who names what ----
select t.one('1 s', t.ref('a'), t.ref('b')) as a \gset
select is(t.ledger(), format('a:%s b:%s', :a, :a), 'enqueue: both parts are in the ledger');
select is((select count(*) from millrace.offload_unknown(array[:'home' || '/20300101/new-a', :'home' || '/20300101/new-zz'])), 1::bigint, 'so the sweep knows them');
select t.one('1 s', t.ref('a', 'elsewhere'));
select t.one('1 s', '\x894d52500d0a1a0a6f0000000000000bb87b7d'::bytea);
select t.one('1 s', '\x894d52500d0a1a0a6f0000000000000bb86e6f'::bytea);
select is(t.ledger(), format('a:%s b:%s', :a, :a), 'objects of another database, and references that are none, are not');
select count(*) from millrace.enqueue_many_at(t.at('1 s'), 'k', array['{}', '{}']::jsonb[], 'q', 50, null, array[t.ref('c'), 'small'], array[null, t.ref('d')]) \gset
select count(*) from millrace.enqueue_many_at(t.at('1 s'), 'k', array['{}']::jsonb[], 'q', 50, t.at('1 hour'), array[t.ref('e')], null) \gset
select count(*) from millrace.enqueue_jobs_at(t.at('1 s'), jsonb_build_array(jsonb_build_object('kind', 'k', 'queue', 'q', 'state', encode(t.ref('f'), 'base64')),
                                                                             jsonb_build_object('kind', 'k', 'queue', 'q', 'delay', '1 hour', 'blob', encode(t.ref('g'), 'base64')))) \gset
select is((select count(*) || ' ' || count(distinct o.job_id) || ' ' || count(o.seg) from millrace.blob_object o where o.object_key ~ 'new-[c-g]$'), '5 5 5', 'enqueue_many and enqueue_jobs: each with its job');
select is(t.doomed(), '', 'nothing is doomed');

-- ---- a job that keeps its part, and one that gets another ----
delete from millrace.blob_object;
select millrace.purge('q');
select t.one('2 s', t.ref('h')) as h \gset
select t.claim('h1', t.at('3 s'), 'q', 1, '1 day');
select is(millrace.fail_at(t.at('4 s'), t.lease('h1'), :h, 'again', '1 s', true, null), 'scheduled', 'a retry keeps the part');
select is(t.ledger(), format('h:%s', :h), 'and its one entry');
select millrace.promote(t.at('10 s'), 100);
select t.claim('h2', t.at('11 s'), 'q', 1, '1 day');
select millrace.finish_at(t.at('12 s'), t.lease('h2'), jsonb_build_array(jsonb_build_object('id', :h, 'outcome', 'failed', 'error', 'x', 'retry_in', '1 s', 'state', encode(t.ref('i'), 'base64'))));
select is(t.ledger(), format('h:%s i:%s', :h, :h), 'a failure with a new one: both, as the log names the first');
select millrace.promote(t.at('20 s'), 100);
select t.claim('h3', t.at('21 s'), 'q', 1, '1 day');
select millrace.requeue_at(t.at('22 s'), t.lease('h3'), :h, '{}', t.ref('j'), null, '{}');
select is(t.ledger(), format('h:%s i:%s j:%s', :h, :h, :h), 'a requeue, too');
select t.claim('h4', t.at('23 s'), 'q', 1, '1 day');
select is(millrace.complete_at(t.at('24 s'), t.lease('h4'), null, null), 1, 'completed');
select is(millrace.objects_look(t.at('30 s'), 100), 0::bigint, 'what the log names stays');

-- ---- replayed: the object is two jobs' ----
select is(millrace.completed_replay(t.at('25 s'), (select q from millrace.queue q where q.queue_name = 'q'), t.at('0 s'), t.at('1 hour'), null), 1::bigint, 'replayed');
select max(o.job_id) as again from millrace.blob_object o \gset
select is(t.ledger(), format('h:%s i:%s j:%s j:%s', :h, :h, :h, :again), 'the new job is in the ledger');
select pg_sequence_last_value('millrace.seg_seq'::regclass) as seg \gset
select millrace.rotate(t.at('10 days'));
call t.retire(t.at('20 days'), :seg);
select is((select count(*) from millrace.blob_object o where o.job_id = :again), 1::bigint, 'a job that waits keeps its object, wherever its row is now');
select t.claim('again', t.at('20 days'), 'q', 1, '1 hour');
select is((select t.part(:again)), 'j', 'it has the same object');
select is(millrace.complete_at(t.at('20 days 1 s'), t.lease('again'), null, null), 1, 'and completes');

-- ---- the segment goes, the objects go with it ----
select t.one('20 days', t.ref('k'), null, '900 days') as k \gset
select t.one('20 days', t.ref('l'), null) as l \gset
select t.claim('l', t.at('20 days 3 s'), 'q', 1, '1 hour');
select is(millrace.fail_at(t.at('20 days 4 s'), t.lease('l'), :l, 'broken', null, false, null), 'dead', 'one is a dead letter');
select pg_sequence_last_value('millrace.seg_seq'::regclass) as seg \gset
select millrace.rotate(t.at('21 days'));
call t.retire(t.at('40 days'), :seg);
select t.duty(t.at('42 days'), 'clean'), t.duty(t.at('44 days'), 'clean'), t.duty(t.at('46 days'), 'clean');
select is(t.ledger(), format('k:%s l:%s', :k, :l), 'what no row names is gone from the ledger; delayed jobs and dead letters keep theirs');
select is(t.doomed(), 'h i j', 'and each object is doomed once');
select is((select o.seg from millrace.blob_object o where o.job_id = :k), null, 'what was needed is looked at by its time from now on');
select is(millrace.purge_dead('q'), 1::bigint, 'purge_dead');
select is(t.doomed(), 'h i j l', 'dooms the letter''s object');
select millrace.purge('q');
select is(t.ledger() || t.doomed(), 'h i j k l', 'purge that of a delayed job');

-- ---- what finish says of a damaged object ----
select t.one('51 days', t.ref('m')) as m \gset
select t.claim('m', t.at('51 days 1 s'), 'q', 1, '1 hour');
select t.refused(format($$select millrace.finish_at(now(), %L, '[{"id": %s, "outcome": "failed", "damaged": "perhaps"}]')$$, t.lease('m'), :m), '22023', 'outcomes has a wrong entry');
select is(millrace.finish_at(t.at('51 days 2 s'), t.lease('m'), jsonb_build_array(jsonb_build_object('id', :m, 'outcome', 'failed', 'retry', false, 'damaged', true, 'error', 'object m: missing'))), 1, 'told as damaged');
select is((select d.cause || ': ' || d.failure from millrace.dead d where d.job_id = :m), 'damaged: object m: missing', 'it is a dead letter with that cause');
select is(millrace.offload_span() >= 0, true, 'how long objects are needed');
select millrace.set_queue('q', '{"offload": 1000, "dead_retention": "100 days"}');
select is(millrace.offload_span() >= 100, true, 'for as long as the queue keeps its dead letters');
select * from finish();
