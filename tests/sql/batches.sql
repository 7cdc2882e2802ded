-- SPDX-License-Identifier: PostgreSQL
-- Batches: members, ends, callbacks.
\ir lib/helpers.psql
select no_plan();

-- n jobs of a queue, as batch_add takes them.
create function t.jobs(p_queue text, p_n int, p_more jsonb = '{}')
returns jsonb
language sql
as $$
  select coalesce(jsonb_agg(jsonb_build_object('kind', 'k', 'queue', p_queue) || p_more), '[]') from generate_series(1, p_n)
$$;

create function t.begin(p_now timestamptz, p_queue text, p_label text = null)
returns bigint
language sql
as $$
  select millrace.batch_begin_at(p_now, jsonb_build_object('kind', 'done', 'queue', p_queue), jsonb_build_object('kind', 'died', 'queue', p_queue),
                                 p_label, jsonb_build_object('kind', 'ended', 'queue', p_queue, 'meta', '{"mine": 1}'::jsonb))
$$;

create function t.add(p_now timestamptz, p_batch bigint, p_queue text, p_n int, p_more jsonb = '{}')
returns bigint[]
language sql
as $$
  select array(select * from millrace.batch_add_at(p_now, p_batch, t.jobs(p_queue, p_n, p_more)))
$$;

-- A batch as text: status, jobs, completed, dead, cancelled, expired.
create function t.facts(p_batch bigint)
returns text
language sql
as $$
  select concat_ws(' ', b ->> 'status', b ->> 'jobs', b ->> 'completed', b ->> 'dead', b ->> 'cancelled', b ->> 'expired') from millrace.batch(p_batch) b
$$;

-- The kinds of the callbacks that wait in a queue.
create function t.called(p_queue text)
returns text
language sql
as $$
  select string_agg(j.kind, ' ' order by j.id) from millrace.jobs j where j.queue = p_queue and j.status = 'available'
$$;

-- ---- all complete ----
select t.begin(t.at('0'), 'cb', 'monthly') as b
\gset
select is(t.facts(:b), 'open 0 0 0 0 0', 'a new batch is open');
select t.add(t.at('1 second'), :b, 'q', 3) as ids
\gset
select is(cardinality(:'ids'::bigint[]), 3, 'three members');
select is(t.duty(t.at('2 seconds'), 'batch'), 0::bigint, 'it has not ended');
select is(t.facts(:b), 'open 3 0 0 0 0', 'its members are counted');
select t.claim('a', t.at('3 seconds'), 'q', 2);
select is(millrace.complete_at(t.at('4 seconds'), t.lease('a'), null, null), 2, 'two complete');
select t.claim('a2', t.at('4 seconds'), 'q', 2);
select is(millrace.complete_at(t.at('5 seconds'), t.lease('a2'), null, null), 1, 'and the third');
select t.duty(t.at('6 seconds'), 'batch');
select is(t.facts(:b), 'open 3 3 0 0 0', 'all have completed, but more may come');
select is(t.called('cb'), null, 'no callback');
select (t.add(t.at('7 seconds'), :b, 'q', 1))[1] as late
\gset
select millrace.batch_seal_at(t.at('8 seconds'), :b);
select t.duty(t.at('9 seconds'), 'batch');
select is(t.facts(:b), 'running 4 3 0 0 0', 'sealed it runs');
select t.refused(format('select count(*) from millrace.batch_add(%s, ''[{"kind": "k"}]'')', :b), '22023', 'batch \d+ is sealed');
select t.refused(format('select count(*) from millrace.batch_add(%s, ''[]'')', :b), '22023', 'batch \d+ is sealed');
select t.refused(format('select millrace.enqueue(''k'', batch => %s)', :b), '22023', '^batch \d+ is sealed');
select t.refused(format('select count(*) from millrace.enqueue_jobs(''[{"kind": "k"}, {"kind": "k", "batch": %s}]'')', :b), '22023', '^job 2: batch \d+ is sealed');
select is(millrace.batch_seal_at(t.at('10 seconds'), :b)::text, '', 'to seal it again changes nothing');
select t.claim('a3', t.at('11 seconds'), 'q', 2);
select is(millrace.job_story(:late) ->> 'batch', :'b', 'job tells the batch');
select is(millrace.complete_at(t.at('12 seconds'), t.lease('a3'), null, null), 1, 'the last one completes');
select is(t.called('cb'), null, 'nothing is done by who completes it');
select is(t.duty(t.at('13 seconds'), 'batch'), 1::bigint, 'upkeep ends the batch');
select is(t.facts(:b), 'completed 4 4 0 0 0', 'it has completed');
select is(t.called('cb'), 'done ended', 'with its callbacks');
select is(t.duty(t.at('14 seconds'), 'batch'), 0::bigint, 'once');
select is(t.called('cb'), 'done ended', 'each of them');
select is(j.meta, jsonb_build_object('mine', 1, 'batch', jsonb_build_object('id', :b, 'label', 'monthly', 'status', 'completed', 'jobs', 4, 'completed', 4, 'dead', 0, 'cancelled', 0, 'expired', 0)),
          'which know the counts, beside a meta of their own')
  from millrace.jobs j where j.kind = 'ended';
select is((select (b.status, b.label, b.jobs, b.on_complete, b.on_death, b.on_end, b.ended_at)::text from millrace.batches b where b.id = :b),
          (select ('completed', 'monthly', 4, min(j.id) filter (where j.kind = 'done'), null::bigint, min(j.id) filter (where j.kind = 'ended'), t.at('13 seconds'))::text from millrace.jobs j where j.queue = 'cb'),
          'the view shows them');
select is(millrace.batch(:b) ->> 'on_end', (select j.id::text from millrace.jobs j where j.kind = 'ended'), 'so does batch()');
select millrace.purge('cb');

-- ---- every way to end, and ways to go on ----
select t.begin(t.at('20 seconds'), 'cb') as b
\gset
select millrace.set_queue('e', '{}');
select (t.add(t.at('20 seconds'), :b, 'e', 1))[1] as dies, (t.add(t.at('20 seconds'), :b, 'e', 1))[1] as stopped, (t.add(t.at('20 seconds'), :b, 'e', 1))[1] as retried,
       (t.add(t.at('20 seconds'), :b, 'e', 1, '{"expires_in": "1 minute"}'))[1] as stale, (t.add(t.at('20 seconds'), :b, 'e', 1, '{"delay": "1 hour"}'))[1] as later,
       (t.add(t.at('20 seconds'), :b, 'e', 1))[1] as cancelled, (t.add(t.at('20 seconds'), :b, 'e', 1))[1] as released
\gset
select millrace.batch_seal_at(t.at('20 seconds'), :b);
select t.claim('e', t.at('21 seconds'), 'e', 3);
select is(t.ids('e'), array[:dies, :stopped, :retried]::bigint[], 'three are held');
select is(millrace.finish_at(t.at('22 seconds'), t.lease('e'), jsonb_build_array(jsonb_build_object('id', :dies, 'outcome', 'failed', 'error', 'e', 'retry', false),
                                                                                 jsonb_build_object('id', :retried, 'outcome', 'failed', 'error', 'e', 'retry_in', '1 minute'))), 2, 'one dies, one is to be retried');
select is(millrace.cancel_at(t.at('22 seconds'), :stopped, 'no'), 'running', 'one is told to stop');
select is(millrace.cancel_at(t.at('22 seconds'), :cancelled, 'no'), 'cancelled', 'one is cancelled');
select is(millrace.cancel_at(t.at('22 seconds'), :cancelled, 'no'), 'cancelled', 'twice, but it ends once');
select is(t.duty(t.at('23 seconds'), 'batch'), 0::bigint, 'it has not ended');
select is(t.facts(:b), 'running 7 0 1 1 0', 'a dead one and a cancelled one');
select is(t.called('cb'), 'died', 'on_death is called with the first');
select is(millrace.release_at(t.at('24 seconds'), t.lease('e'), null), 1, 'the one that was told stops');
select t.duty(t.at('25 seconds'), 'batch');
select is(t.facts(:b), 'running 7 0 1 2 0', 'then it is cancelled');
select t.claim('e2', t.at('2 minutes'), 'e', 10);
select is(t.ids('e2') @> array[:released]::bigint[] and not t.ids('e2') @> array[:stale]::bigint[], true, 'a claim passes over the one that has expired');
select t.duty(t.at('2 minutes'), 'promote'), t.duty(t.at('2 minutes'), 'batch');
select is(t.facts(:b), 'running 7 0 1 2 1', 'which counts then');
select is(millrace.release_at(t.at('2 minutes'), t.lease('e2'), null) > 0, true, 'the others are given back');
select t.claim('e3', t.at('2 minutes'), 'e', 10, '1 second');
select is(t.duty(t.at('3 minutes'), 'rescue') > 0, true, 'and lost');
select t.duty(t.at('3 minutes'), 'batch');
select is(t.facts(:b), 'running 7 0 1 2 1', 'none of that is an end');
select millrace.pause_job_at(t.at('4 minutes'), :later);
select millrace.resume_job_at(t.at('4 minutes'), :later);
select millrace.change_job_at(t.at('4 minutes'), :later, '{"queue": "e9"}');
select millrace.run_now_at(t.at('4 minutes'), :later);
select t.claim_all('e4', t.at('10 minutes'), 'e');
select t.claim_all('e5', t.at('10 minutes'), 'e9');
select is((select array_agg(g.id order by g.id) from t.got g where g.tag in ('e4', 'e5')), (select array_agg(x order by x) from unnest(array[:retried, :released, :later]::bigint[]) x), 'three are left');
select is(millrace.fail_at(t.at('10 minutes'), g.lease, :retried, 'again', null, false, null), 'dead', 'one more dies') from t.got g where g.tag = 'e4' and g.id = :retried;
select is(millrace.complete_at(t.at('11 minutes'), g.lease, array[g.id], null), 1, 'one completes') from t.got g where g.tag in ('e4', 'e5') and g.id <> :retried;
select is(t.duty(t.at('12 minutes'), 'batch'), 1::bigint, 'the batch ends');
select is(t.facts(:b), 'failed 7 2 2 2 1', 'with failures');
select is(t.called('cb'), 'died ended', 'on_end is called, on_complete is not, and on_death is not again');
select is(j.meta #>> '{batch,status}', 'failed', 'its meta says so') from millrace.jobs j where j.queue = 'cb' and j.kind = 'ended' and j.status = 'available';
select is(millrace.replay(:dies), :dies::bigint, 'a dead member is replayed');
select is(millrace.job(:dies) ->> 'batch', null, 'and is no member any more');
select t.claim_all('e6', t.at('13 minutes'), 'e');
select millrace.complete_at(t.at('13 minutes'), t.lease('e6'), null, null);
select t.duty(t.at('14 minutes'), 'batch');
select is(t.facts(:b), 'failed 7 2 2 2 1', 'it changes nothing');
select millrace.purge('cb');

-- ---- purge, drop_queue, nothing at all ----
select t.begin(t.at('20 minutes'), 'cb') as b, t.begin(t.at('20 minutes'), 'cb') as c, t.begin(t.at('20 minutes'), 'cb') as d
\gset
select t.add(t.at('20 minutes'), :b, 'p', 5), t.add(t.at('20 minutes'), :b, 'p', 2, '{"delay": "1 hour"}'), t.add(t.at('20 minutes'), :c, 'p2', 3);
select millrace.batch_seal_at(t.at('20 minutes'), x) from unnest(array[:b, :c, :d]) x;
select is(millrace.purge('p'), 7::bigint, 'purge');
select millrace.drop_queue('p2');
select is(t.duty(t.at('21 minutes'), 'batch'), 3::bigint, 'ends batches');
select is(t.facts(:b), 'failed 7 0 0 7 0', 'purged members count as cancelled');
select is(t.facts(:c), 'failed 3 0 0 3 0', 'so do those of a queue that is dropped');
select is(t.facts(:d), 'completed 0 0 0 0 0', 'an empty batch has completed');
select is(t.called('cb'), 'ended ended done ended', 'their callbacks');
select millrace.purge('cb');

-- ---- enqueue, enqueue_jobs, unique keys, packs, large jobs ----
select t.begin(t.at('30 minutes'), 'cb') as b, t.begin(t.at('30 minutes'), 'cb') as c
\gset
select millrace.enqueue('k', queue => 'm', batch => :b), millrace.enqueue('k', queue => 'm', batch => :b, unique_key => 'u'),
       millrace.enqueue('k', queue => 'm', batch => :c, unique_key => 'u'), millrace.enqueue('k', queue => 'm', batch => :b, delay => '1 hour');
select is((select count(*) from millrace.enqueue_jobs(jsonb_build_array(jsonb_build_object('kind', 'k', 'queue', 'm', 'batch', :b), jsonb_build_object('kind', 'k', 'queue', 'm', 'batch', :c),
  jsonb_build_object('kind', 'k', 'queue', 'm'), jsonb_build_object('kind', 'k', 'queue', 'm', 'batch', :c, 'unique_key', 'u'), jsonb_build_object('kind', 'k', 'queue', 'm', 'batch', :c, 'blob', encode(decode(repeat('00', 3000), 'hex'), 'base64'))))), 5::bigint, 'each with a batch of its own, or none');
select t.duty(clock_timestamp(), 'batch');
select is(t.facts(:b), 'open 4 0 0 0 0', 'members of the one');
select is(t.facts(:c), 'open 2 0 0 0 0', 'and the other; a job whose key is held is a member of its own batch');
select t.put(clock_timestamp(), 'm', 40);
select t.claim_all('m', clock_timestamp() + interval '1 second', 'm');
select is(cardinality(t.ids('m')), 46, 'they are delivered with others');
select is((select sum(millrace.complete_at(clock_timestamp(), l.lease, null, null)) from (select distinct g.lease from t.got g where g.tag = 'm') l), 46::bigint, 'and completed');
select t.duty(clock_timestamp(), 'batch');
select is(t.facts(:b), 'open 4 3 0 0 0', 'three of them');
select is(t.facts(:c), 'open 2 2 0 0 0', 'and two');
begin;
select millrace.enqueue('k', queue => 'm', batch => :b);
rollback;
select t.duty(clock_timestamp(), 'batch');
select is(t.facts(:b), 'open 4 3 0 0 0', 'a rollback takes a member along');
begin;
select millrace.cancel(millrace.enqueue('k', queue => 'm', batch => :c)), millrace.batch_seal(:c);
commit;
select is(t.duty(clock_timestamp(), 'batch'), 1::bigint, 'added, cancelled and sealed in one transaction');
select is(t.facts(:c), 'failed 3 2 0 1 0', 'is counted');
select millrace.purge('cb'), millrace.purge('m');

-- ---- many notes: cut into passes, and looked at when all were taken ----
select t.begin(t.at('50 minutes'), 'cb') as b
\gset
create procedure t.add_apart(p_batch bigint, p_n int) language plpgsql as $$
begin
  for i in 1 .. p_n loop
    perform t.add(t.at('50 minutes'), p_batch, 'cut', 1);
    commit;
  end loop;
end $$;
call t.add_apart(:b, 30);
select millrace.batch_seal_at(t.at('50 minutes'), :b);
select is(millrace.batches_fold(t.at('51 minutes'), 10), 0::bigint, 'a pass of ten');
select is((millrace.batch(:b) ->> 'jobs')::int between 1 and 20, true, 'takes some');
select millrace.purge('cut');
select is(millrace.batches_fold(t.at('51 minutes'), 10) + millrace.batches_fold(t.at('51 minutes'), 10), 0::bigint, 'nothing has ended while some are left');
select is(millrace.batches_fold(t.at('51 minutes'), 10) + millrace.batches_fold(t.at('51 minutes'), 10), 1::bigint, 'and once when they are through');
select is(t.facts(:b), 'failed 30 0 0 30 0', 'with all of them');
select is(millrace.batches_fold(t.at('51 minutes'), 10), 0::bigint, 'nothing more');
select is((select count(*) from millrace.batch_note), 0::bigint, 'no note is left');
select millrace.purge('cb');

-- ---- a callback that cannot be enqueued ----
select millrace.batch_begin_at(t.at('1 hour'), null, null, null, '{"kind": "ended", "queue": "small", "args": {"a": "0123456789012345678901234567890123456789"}}') as b,
       t.begin(t.at('1 hour'), 'cb') as c
\gset
select millrace.set_queue('small', '{"max_args": 20}');
select millrace.batch_seal_at(t.at('1 hour'), x) from unnest(array[:b, :c]) x;
select is(t.duty(t.at('1 hour'), 'batch'), 1::bigint, 'another batch ends');
select is(millrace.batch(:b) ->> 'status', 'running', 'this one not yet');
select matches(millrace.batch(:b) ->> 'error', 'bytes long', 'and says why');
select is(t.duty(t.at('1 hour'), 'batch'), 0::bigint, 'it is tried again');
select millrace.set_queue('small', '{"max_args": 1000}');
select is(t.duty(t.at('1 hour'), 'batch'), 1::bigint, 'until it can be');
select is(millrace.batch(:b) ->> 'error', null, 'the error is gone');
select is(t.called('small'), 'ended', 'one callback');
select is(t.duty(t.at('1 hour'), 'batch'), 0::bigint, 'not again');
select millrace.purge('cb');

-- ---- without a daemon, and what it costs when there is none ----
select millrace.batch_begin_at(t.at('2 hours'), '{"kind": "done", "queue": "slice"}', null, null, null) as b
\gset
select millrace.batch_seal_at(t.at('2 hours'), :b);
select setval('millrace.upkeep_clock', 0);
select t.claim('slice', t.at('2 hours'), 'slice', 1);
select t.claim('slice', t.at('2 hours'), 'slice', 1);
select is((select g.kind from t.got g where g.tag = 'slice'), 'done', 'a claim does what is due');
select is(millrace.hint('millrace.batch_hint'), 1::bigint, 'some batches are open');
select millrace.batch_seal_at(t.at('3 hours'), b.id) from millrace.batches b where b.status = 'open';
select millrace.purge('m');
select t.duty(t.at('3 hours'), 'batch');
select is(array(select b.id from millrace.batches b where b.ended_at is null), '{}', 'all have ended');
select setval('millrace.clean_clock', 0);
select t.duty(t.at('3 hours'), 'clean');
select is(millrace.hint('millrace.batch_hint'), 1::bigint, 'a moment ago');
select setval('millrace.clean_clock', 0);
select t.duty(t.at('3 hours 2 minutes'), 'clean');
select is(millrace.hint('millrace.batch_hint'), 0::bigint, 'nobody looks any more');
select is((select count(*) from millrace.batches) > 5, true, 'they are remembered');
select setval('millrace.clean_clock', 0);
select t.duty(t.at('8 days'), 'clean');
select is((select count(*) from millrace.batches b where b.ended_at < t.at('1 day')), 0::bigint, 'for seven days');

-- ---- bad input ----
select millrace.batch_begin() as b
\gset
select t.all_rows() as before
\gset
select t.refused(r.sql, r.state, r.message)
  from (values ('select millrace.batch_begin(''[]'')', '22023', '^on_complete must be an object$'),
               ('select millrace.batch_begin(''null'')', '22023', '^on_complete must be an object$'),
               ('select millrace.batch_begin(''{}'')', '22023', '^on_complete: kind must not be null$'),
               ('select millrace.batch_begin(on_death => ''{"kind": ""}'')', '22023', '^on_death: kind must not be empty$'),
               ('select millrace.batch_begin(on_end => ''{"kind": "k", "colour": 1}'')', '22023', '^on_end: has the unknown option ''colour'''),
               ('select millrace.batch_begin(on_end => ''{"kind": "k", "priority": "x"}'')', '22023', '^on_end: .*wrong type'),
               ('select millrace.batch_begin(on_end => ''{"kind": "k", "meta": 1}'')', '22023', '^on_end must be an object, and its meta too$'),
               ('select millrace.batch_begin(on_end => ''{"kind": "k", "unique_key": "a"}'')', '22023', '^on_end must not have unique_key'),
               ('select millrace.batch_begin(on_end => ''{"kind": "k", "batch": 1}'')', '22023', '^on_end must not have unique_key'),
               ('select millrace.batch_begin(on_end => ''{"kind": "k", "depends_on": [1]}'')', '22023', '^on_end must not have unique_key'),
               ('select millrace.batch_begin(label => repeat(''x'', 1001))', '22023', '^label is 1001 bytes long'),
               ('select count(*) from millrace.batch_add(null, ''[]'')', 'MR003', '^there is no batch null$'),
               ('select count(*) from millrace.batch_add(0, ''[]'')', 'MR003', '^there is no batch 0$'),
               ('select count(*) from millrace.batch_add(' || :b || ', null)', '22023', '^jobs must be an array'),
               ('select count(*) from millrace.batch_add(' || :b || ', ''{}'')', '22023', '^jobs must be an array'),
               ('select count(*) from millrace.batch_add(' || :b || ', ''[{}]'')', '22023', '^job 1: kind must not be null'),
               ('select count(*) from millrace.batch_add(' || :b || ', ''[1]'')', '22023', '^job 1 must be an object'),
               ('select count(*) from millrace.batch_add(' || :b || ', ''[{"kind": "k", "batch": 1}]'')', '22023', '^jobs has a job with a batch of its own'),
               ('select millrace.batch_seal(null)', 'MR003', '^there is no batch null$'),
               ('select millrace.batch_seal(9223372036854775807)', 'MR003', '^there is no batch 9'),
               ('select millrace.batch(null)', 'MR003', '^there is no batch null$'),
               ('select millrace.batch(-1)', 'MR003', '^there is no batch -1$'),
               ('select millrace.enqueue(''k'', batch => 0)', 'MR003', '^there is no batch 0$'),
               ('select count(*) from millrace.enqueue_jobs(''[{"kind": "k", "batch": 0}]'')', 'MR003', '^job 1: there is no batch 0$'),
               ('select count(*) from millrace.enqueue_jobs(''[{"kind": "k", "batch": "x"}]'')', '22023', 'wrong type'),
               ('select count(*) from millrace.enqueue_jobs(''[{"kind": "k", "batch": 1.5}]'')', '22023', 'wrong type'),
               ('select count(*) from millrace.enqueue_jobs(''[{"kind": "k", "batch": []}]'')', '22023', 'batch must not be an array')) r(sql, state, message);
select is(t.all_rows(), :'before', 'what is refused changes nothing');
select * from finish();
