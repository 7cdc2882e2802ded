-- SPDX-License-Identifier: PostgreSQL
-- Producing: what enqueue, enqueue_many and enqueue_jobs store, when a job is delivered, in which order.
\ir lib/helpers.psql
select no_plan();

-- Every option of enqueue is stored and comes back from claim.
select millrace.enqueue_at(t.at('0'), 'mail', '{"to": [1, null]}', 'all', 7, null, null, null, null, 'acme', 'inv-1', 9, '00:01:30', '1 hour',
                           '{"trace": "x"}', '\x00ff', '\xdeadbeef', null) as id
\gset
select is(t.claim('all', t.at('1 second'), 'all', 10), array[:id]::bigint[], 'the id that enqueue returned is claimed');
select is((g.attempt, g.max_attempts, g.kind, g.args, g.meta, g.state, g.blob, g.tenant, g.ref, g.priority, g.source, g.created_at, g.lease_until, g.timeout)::text,
          (1, 9, 'mail', '{"to": [1, null]}'::jsonb, '{"trace": "x"}'::jsonb, '\x00ff'::bytea, '\xdeadbeef'::bytea, 'acme', 'inv-1', 7,
           null::text, t.at('0'), t.at('31 seconds'), interval '00:01:30')::text, 'every option of enqueue is returned by claim')
  from t.got g
 where g.tag = 'all';
select is(g.lease ~ '^\d+\.\d+\.1\.[0-9a-f-]{36}$', true, 'a lease names leaf, lane, number and token') from t.got g where g.tag = 'all';
select is(j.stale_at, t.at('1 hour'), 'expires_in counts from now') from millrace.job j where j.job_id = :id;

-- Defaults.
select millrace.enqueue('plain') as id
\gset
insert into t.got select 'plain', 1, c.* from millrace.claim() c;
select is((g.id, g.attempt, g.max_attempts, g.kind, g.args, g.meta, g.state, g.blob, g.tenant, g.ref, g.priority, g.source, g.timeout)::text,
          (:id, 1, 3, 'plain', '{}'::jsonb, null::jsonb, null::bytea, null::bytea, null::text, null::text, 50, null::text, null::interval)::text,
          'defaults: queue default, priority 50, three attempts, nothing else')
  from t.got g
 where g.tag = 'plain';
select ok(g.lease_until - clock_timestamp() between interval '20 seconds' and interval '30 seconds', 'a lease lasts 30 seconds by default')
  from t.got g
 where g.tag = 'plain';
select is(millrace.complete(t.lease('plain')), 1, 'it is completed');
select ok(count(*) = 1, 'enqueue made the queue with defaults')
  from millrace.queues q
 where q.queue = 'default'
   and not q.paused
   and q.settings ->> 'max_attempts' = '3';

-- Args of any JSON type are the caller's.
select is((select count(*) from millrace.enqueue_many('k', array['1', '"x"', 'null', '[1]', '{"a": null}']::jsonb[], 'json')), 5::bigint,
          'five jobs are enqueued');
select is(array(select c.args from millrace.claim('json', max_jobs => 10) c), array['1', '"x"', 'null', '[1]', '{"a": null}']::jsonb[],
          'args of any JSON type come back as they were, in order');

-- enqueue_many.
select array(select * from millrace.enqueue_many('bulk', array(select jsonb_build_object('i', i) from generate_series(1, 2500) i), 'many', 3)) as ids
\gset
select is(cardinality(:'ids'::bigint[]), 2500, 'enqueue_many returns an id for each');
select is(:'ids'::bigint[], array(select u from unnest(:'ids'::bigint[]) u order by u), 'ids of enqueue_many rise');
insert into t.got select 'many', row_number() over (), c.* from millrace.claim('many', 'w', 2500) c;
select is(t.ids('many'), :'ids'::bigint[], 'enqueue_many is delivered whole and in order');
select is(array(select (g.args ->> 'i')::int from t.got g where g.tag = 'many' order by g.ord), array(select generate_series(1, 2500)),
          'each id has its own args');
select is(array(select distinct g.priority from t.got g where g.tag = 'many'), array[3], 'enqueue_many keeps the priority');
select is((select count(*) from millrace.enqueue_many('bulk', '{}', 'nobody')), 0::bigint, 'an empty batch is fine');
select is((select count(*) from millrace.queue q where q.queue_name = 'nobody'), 0::bigint, 'an empty batch makes no queue');
select is((select count(*) from millrace.enqueue_many('bulk', array['{}', '{}']::jsonb[], 'later', 50, now() + interval '1 hour')), 2::bigint,
          'enqueue_many takes run_at');
select is((select count(*) from millrace.delayed d where d.why = 's' and d.lane >> 12 = (select q.queue_id from millrace.queue q where q.queue_name = 'later')),
          2::bigint, 'jobs of the future wait in delayed');
select is((select count(*) from millrace.claim('later', max_jobs => 10)), 0::bigint, 'and are not delivered');
select is((select count(*) from millrace.enqueue_many('bulk', array['{}', '{}']::jsonb[], 'past', 50, now() - interval '1 hour')), 2::bigint,
          'run_at in the past is fine');
select is((select count(*) from millrace.claim('past', max_jobs => 10)), 2::bigint, 'and means at once');
select is((select count(*) from millrace.enqueue_many('bulk', array['1', '2', '3']::jsonb[], 'heavy', state => array['\x01', null, '\x'::bytea],
                                                      blob => array[null, convert_to(repeat('b', 5000), 'UTF8'), null])), 3::bigint,
          'enqueue_many takes state and blob');
select is(array(select (c.args, c.state, length(c.blob))::text from millrace.claim('heavy', max_jobs => 10) c), array['(1,"\\x01",)', '(2,,5000)', '(3,"\\x",)'],
          'each job has its own, or none');
select is((select count(*) from millrace.enqueue_many('bulk', array['1', '2']::jsonb[], 'heavy', 50, null, null, array['\x02', null]::bytea[])), 2::bigint, 'one of them alone');
select is(array(select (c.args, c.state, c.blob)::text from millrace.claim('heavy', max_jobs => 10) c), array['(1,,"\\x02")', '(2,,)'], 'is fine');
select is((select count(*) from millrace.enqueue_many('bulk', array['1', '2']::jsonb[], 'heavy later', 50, now() + interval '1 hour', array['\x03', null]::bytea[])), 2::bigint,
          'also for jobs of the future');
select is((select array_agg((d.payload_args, d.payload_state, d.payload_blob)::text order by d.job_id) from millrace.delayed d
            where d.lane >> 12 = (select q.queue_id from millrace.queue q where q.queue_name = 'heavy later')), array['(1,"\\x03",)', '(2,,)'], 'which keep them');
select is((select count(*) from millrace.enqueue_many('bulk', '{}', 'nobody', state => '{}', blob => '{}')), 0::bigint, 'none of anything is fine');

-- enqueue_jobs: every option, mixed queues, order, one transaction.
select array(select * from millrace.enqueue_jobs_at(t.at('0'), jsonb_build_array(
  '{"kind": "a", "args": {"x": 1}, "queue": "mix", "priority": 60, "tenant": "acme", "ref": "r1", "max_attempts": 8, "timeout": "5 minutes",
    "expires_in": "1 day", "meta": {"m": null}, "state": "AP8=", "blob": "3q2+7w=="}'::jsonb,
  '{"kind": "b", "queue": "mix", "priority": 60}'::jsonb,
  '{"kind": "c"}'::jsonb,
  '{"kind": "d", "queue": "mix", "delay": "1 hour", "expires_in": "1 minute", "state": "AQ=="}'::jsonb,
  '{"kind": "e", "queue": "mix", "priority": 60, "run_at": "2029-12-31T00:00:00Z", "args": null, "meta": null, "state": null, "tenant": null,
    "delay": null, "unique_key": null, "ordering_key": null, "max_attempts": null}'::jsonb))) as ids
\gset
select is(cardinality(:'ids'::bigint[]), 5, 'enqueue_jobs returns an id for each');
select is(:'ids'::bigint[], array(select u from unnest(:'ids'::bigint[]) u order by u), 'in the order of the array');
select is(t.claim('mix', t.at('1 second'), 'mix', 10), array[(:'ids'::bigint[])[1], (:'ids'::bigint[])[2], (:'ids'::bigint[])[5]],
          'the due ones of a queue are delivered in order');
select is((g.attempt, g.max_attempts, g.kind, g.args, g.meta, g.state, g.blob, g.tenant, g.ref, g.priority, g.source, g.created_at, g.timeout)::text,
          (1, 8, 'a', '{"x": 1}'::jsonb, '{"m": null}'::jsonb, '\x00ff'::bytea, '\xdeadbeef'::bytea, 'acme', 'r1', 60, null::text, t.at('0'),
           interval '5 minutes')::text, 'every option of enqueue_jobs is returned by claim')
  from t.got g
 where g.tag = 'mix' and g.kind = 'a';
select is((g.max_attempts, g.args, g.meta, g.state, g.blob, g.tenant, g.ref, g.timeout)::text,
          (3, '{}'::jsonb, null::jsonb, null::bytea, null::bytea, null::text, null::text, null::interval)::text, 'null in enqueue_jobs means the default')
  from t.got g
 where g.tag = 'mix' and g.kind = 'e';
select is((d.due_at, d.stale_at, d.why, d.attempt, d.payload_state)::text, (t.at('1 hour'), t.at('1 hour 1 minute'), 's', 1, '\x01'::bytea)::text,
          'delay and expires_in of enqueue_jobs: expiry counts from the due time')
  from millrace.delayed d
 where d.job_kind = 'd';
select is(t.claim('mix default', t.at('1 second'), 'default', 10), array[(:'ids'::bigint[])[3]], 'a job without queue goes to default');
select is((select count(*) from millrace.enqueue_jobs('[]')), 0::bigint, 'an empty array is fine');

-- delay and run_at.
select millrace.enqueue_at(t.at('0'), 'k', '{}', 'due', 50, null, '90 seconds', null, null, 'ten', 'ref', 4, '1 minute', '10 seconds', '{"m": 1}', '\x01',
                           '\x02', 'src') as delayed
\gset
select millrace.enqueue_at(t.at('0'), 'k', '{}', 'due', 50, t.at('80 seconds'), null, null, null, null, null, null, null, null, null, null, null, null) as sooner
\gset
select millrace.enqueue_at(t.at('0'), 'k', '{}', 'due', 50, t.at('-1 year'), null, null, null, null, null, null, null, null, null, null, null, null) as past
\gset
select is(t.claim('due now', t.at('0'), 'due', 10, '1 hour'), array[:past]::bigint[], 'only what is due is delivered');
select is(t.duty(t.at('89 seconds'), 'promote'), 1::bigint, 'run_at has come');
select is(t.claim('due sooner', t.at('89 seconds'), 'due', 10, '1 hour'), array[:sooner]::bigint[], 'the job with run_at is delivered');
select is(t.duty(t.at('90 seconds'), 'promote'), 1::bigint, 'delay has passed');
select is(t.claim('due delayed', t.at('91 seconds'), 'due', 10), array[:delayed]::bigint[], 'the job with delay is delivered');
select is((g.attempt, g.max_attempts, g.meta, g.state, g.blob, g.tenant, g.ref, g.source, g.created_at, g.timeout)::text,
          (1, 4, '{"m": 1}'::jsonb, '\x01'::bytea, '\x02'::bytea, 'ten', 'ref', 'src', t.at('0'), interval '1 minute')::text,
          'every option survives the wait')
  from t.got g
 where g.tag = 'due delayed';
select is(array(select j.stale_at from millrace.job j where j.job_id in (:delayed, :sooner) order by 1), array[t.at('100 seconds'), null],
          'expiry counts from the due time');

-- A claim promotes what is due by itself: no daemon is needed.
select millrace.enqueue_at(t.at('2 minutes'), 'k', '{}', 'slice', 50, null, '10 seconds', null, null, null, null, null, null, null, null, null, null, null) as id
\gset
select is(t.claim('slice 1', t.at('131 seconds'), 'slice'), '{}', 'a claim sees what it promoted only after its commit');
select is(t.claim('slice 2', t.at('131 seconds'), 'slice'), array[:id]::bigint[], 'the next claim gets it');

-- Transactions.
begin;
select millrace.enqueue('k', queue => 'undone') as undone
\gset
select count(*) from millrace.enqueue_many('k', array['{}']::jsonb[], 'undone')
\gset
select count(*) from millrace.enqueue_jobs('[{"kind": "k", "queue": "undone"}, {"kind": "k", "queue": "undone", "delay": "1 s"}]')
\gset
rollback;
select is((select count(*) from millrace.queue q where q.queue_name = 'undone'), 0::bigint, 'a rolled-back enqueue leaves no queue');
select throws_ok(format('select millrace.job(%s)', :undone), 'MR003', null, 'nor a job');
select millrace.enqueue('k', queue => 'undone') as kept
\gset
begin;
savepoint s;
select millrace.enqueue('k', queue => 'undone') as gone
\gset
rollback to savepoint s;
select millrace.enqueue('k', queue => 'undone') as kept_too
\gset
commit;
insert into t.got select 'undone', row_number() over (), c.* from millrace.claim('undone', max_jobs => 10) c;
select is(t.ids('undone'), array[:kept, :kept_too]::bigint[], 'what was rolled back, to a savepoint too, is never delivered');
select is((select count(*) from millrace.claim('undone', max_jobs => 10)), 0::bigint, 'and what was committed is delivered once');

-- Precedence of max_attempts: the call, the kind's policy, the queue, 3.
select millrace.set_queue('prec', '{"max_attempts": 5}');
select millrace.set_retry('careful', 7);
select is(array(select j.attempts_limit::int
                  from unnest(array[millrace.enqueue('any', queue => 'prec'), millrace.enqueue('careful', queue => 'prec'),
                                    millrace.enqueue('careful', queue => 'prec', max_attempts => 2), millrace.enqueue('any', queue => 'fresh'),
                                    millrace.enqueue('careful', queue => 'prec', delay => '1 hour')]) with ordinality u(id, ord)
                  join (select j.job_id, j.attempts_limit from millrace.job j union all select d.job_id, d.attempts_limit from millrace.delayed d) j
                    on j.job_id = u.id
                 order by u.ord), '{}', 'a job is not visible to the statement that enqueues it');
select is(array(select j.attempts_limit::int from millrace.job j join millrace.queue q on q.queue_id = j.lane >> 12 where q.queue_name = 'prec' order by j.job_id),
          array[5, 7, 2], 'max_attempts: the queue, the kind before the queue, the call before both');
select is(array(select j.attempts_limit::int from millrace.job j join millrace.queue q on q.queue_id = j.lane >> 12 where q.queue_name = 'fresh'), array[3],
          'max_attempts: 3 without any of them');
select is((select d.attempts_limit::int from millrace.delayed d where d.job_kind = 'careful'), 7, 'max_attempts of a delayed job');
select count(*) from millrace.enqueue_many('careful', array['{}']::jsonb[], 'prec2')
\gset
select count(*) from millrace.enqueue_many('any', array['{}']::jsonb[], 'prec2')
\gset
select count(*) from millrace.enqueue_jobs('[{"kind": "careful", "queue": "prec2"}, {"kind": "any", "queue": "prec"}, {"kind": "careful", "queue": "prec2", "max_attempts": 1}]')
\gset
select is(array(select c.max_attempts from millrace.claim('prec2', max_jobs => 10) c), array[7, 3, 7, 1], 'the same for enqueue_many and enqueue_jobs');

-- Names and sizes at their limits are accepted.
select ok(millrace.enqueue(repeat('k', 200), queue => repeat('q', 200)) > 0, 'names of 200 bytes');
select is((select c.kind from millrace.claim(repeat('q', 200)) c), repeat('k', 200), 'names of 200 bytes come back');
select ok(millrace.enqueue('k', queue => 'edge', priority => 0) > 0 and millrace.enqueue('k', queue => 'edge', priority => 99) > 0, 'priorities 0 and 99');
select millrace.set_queue('snug', jsonb_build_object('max_args', pg_column_size(jsonb '{"a": "xxxxxxxxxx"}')));
select ok(millrace.enqueue('k', '{"a": "xxxxxxxxxx"}', 'snug') > 0, 'args of exactly max_args');
select ok(millrace.enqueue('k', to_jsonb(repeat('x', 1000000))) > 0, 'args just under a megabyte');

-- Jobs of one session come in the order of its commits, whatever the way they were enqueued.
select millrace.enqueue('1', queue => 'seq');
select count(*) from millrace.enqueue_many('2', array['{}', '{}']::jsonb[], 'seq')
\gset
select count(*) from millrace.enqueue_jobs('[{"kind": "3", "queue": "seq"}]')
\gset
select millrace.enqueue('4', queue => 'seq');
select is(array(select c.kind from millrace.claim('seq', max_jobs => 10) c), array['1', '2', '2', '3', '4'], 'commits of a session keep their order');

select * from finish();
