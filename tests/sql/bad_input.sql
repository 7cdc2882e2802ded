-- SPDX-License-Identifier: PostgreSQL
-- Bad input: each is refused with its SQLSTATE and a hint, and nothing is written.
\ir lib/helpers.psql
select no_plan();

-- A job to hold, one to wait, one to be dead, so that "nothing written" has something to compare.
select t.put(t.at('0'), 'work', 4) as ids
\gset
select t.claim('w', t.at('0'), 'work', 3, '1000 hours') as held
\gset
select millrace.fail_at(t.at('0'), t.lease('w'), (:'held'::bigint[])[3], 'x', null, false, null)
\gset
select millrace.enqueue('k', queue => 'work', delay => '1 year')
\gset
select t.lease('w') as lease, (:'held'::bigint[])[1] as id
\gset
select millrace.set_queue('tiny', '{"max_args": 100, "max_state": 10, "max_blob": 20}')
\gset
select t.put(t.at('0'), 'tiny', 2)
\gset
select t.claim('small', t.at('0'), 'tiny', 2, '1000 hours')
\gset
select t.all_rows() as before
\gset

-- Names.
select t.refused($$ select millrace.enqueue('') $$, '22023', 'kind must not be empty');
select t.refused($$ select millrace.enqueue(null) $$, '22023', 'kind must not be null');
select t.refused($$ select millrace.enqueue(repeat('k', 201)) $$, '22023', 'kind is 201 bytes long, the limit is 200');
select t.refused($$ select millrace.enqueue(repeat('ü', 101)) $$, '22023', 'kind is 202 bytes long', 'bytes are counted, not letters');
select t.refused($$ select millrace.enqueue('k', queue => '') $$, '22023', 'queue must not be empty');
select t.refused($$ select millrace.enqueue('k', queue => null) $$, '22023', 'queue must not be null');
select t.refused($$ select millrace.enqueue('k', queue => repeat('q', 201)) $$, '22023', 'queue is 201 bytes long, the limit is 200');
select t.refused($$ select millrace.enqueue('k', tenant => repeat('x', 1001)) $$, '22023', 'tenant is 1001 bytes long');
select t.refused($$ select millrace.enqueue('k', ref => repeat('x', 1001)) $$, '22023', 'ref is 1001 bytes long');

-- Sizes: the message names the limit, the hint names S3.
select t.refused($$ select millrace.enqueue('k', to_jsonb(repeat('x', 1048577))) $$, '22023', 'args is \d+ bytes long, the limit is 1048576');
select t.refused($$ select millrace.enqueue('k', meta => to_jsonb(repeat('x', 1048577))) $$, '22023', 'meta is \d+ bytes long, the limit is 1048576');
select t.refused($$ select count(*) from millrace.enqueue_many('k', array['{}', to_jsonb(repeat('x', 1048577))]) $$, '22023', 'args is 1048\d+ bytes long, the limit is 1048576');
select t.refused($$ select count(*) from millrace.enqueue_jobs(jsonb_build_array('{"kind": "k"}'::jsonb, jsonb_build_object('kind', 'k', 'args', repeat('x', 1048577)))) $$,
                 '22023', 'args is 1048\d+ bytes long, the limit is 1048576');
-- Numbers that are short only as long as they are not written out: a job that nobody could be sent, and that would stop its lane.
create function t.bomb(p_number text, p_n int)
returns jsonb
language sql
as $$
  select jsonb_build_object('list', ('[' || array_to_string(array_fill(p_number, array[p_n]), ',') || ']')::jsonb)
$$;
select t.refused(format(s, n), '22023', w || ' is \d+ bytes long, the limit is 1048576', w || ' with ' || n)
  from unnest(array['t.bomb(''1e131071'', 1000)', 't.bomb(''-1e131071'', 1000)', 't.bomb(''1e-16383'', 5000)', 't.bomb(''0e-16383'', 5000)']) n
 cross join (values ('args', $$ select millrace.enqueue('k', %s) $$), ('meta', $$ select millrace.enqueue('k', meta => %s) $$),
                    ('args', $$ select count(*) from millrace.enqueue_many('k', array['{}', %s]) $$),
                    ('args', $$ select count(*) from millrace.enqueue_jobs(jsonb_build_array('{"kind": "k"}'::jsonb, jsonb_build_object('kind', 'k', 'args', %s))) $$),
                    ('meta', $$ select count(*) from millrace.enqueue_jobs(jsonb_build_array(jsonb_build_object('kind', 'k', 'meta', %s))) $$),
                    ('args', $$ select millrace.schedule('s', '* * * * *', 'k', %s) $$)) v(w, s);
select t.refused(format($$ select millrace.requeue(%L, %s, jsonb_build_object('args', t.bomb('1e131071', 1000))) $$, :'lease', :'id'), '22023', 'args is \d+ bytes long, the limit is 1048576');
select is(millrace.json_written(jsonb_agg(i * 1e90), 1048576), pg_column_size(jsonb_agg(i * 1e90))::bigint, 'numbers of a hundred digits are as long as they are') from generate_series(1, 2000) i;
select t.refused(format(c, :'lease', :'id'), '22023', 'result is \d+ bytes long, the limit is 67108864')
  from unnest(array[$$ select millrace.complete(%L, array[%s], to_jsonb(repeat('x', 67108864))) $$,
                    $$ select millrace.finish(%L, jsonb_build_array(jsonb_build_object('id', %s, 'outcome', 'completed', 'result', repeat('x', 67108864)))) $$]) c;
select t.refused($$ select millrace.enqueue('k', to_jsonb(repeat('x', 100)), 'tiny') $$, '22023', 'args is 1\d\d bytes long, the limit is 100');
select t.refused($$ select millrace.enqueue('k', queue => 'tiny', state => decode(repeat('00', 11), 'hex')) $$, '22023', 'state is 11 bytes long, the limit is 10');
select t.refused($$ select millrace.enqueue('k', queue => 'tiny', blob => decode(repeat('00', 21), 'hex')) $$, '22023', 'blob is 21 bytes long, the limit is 20');
select t.refused($$ select count(*) from millrace.enqueue_jobs('[{"kind": "k", "queue": "tiny", "state": "AAAAAAAAAAAAAAAAAAAAAAAA"}]') $$, '22023', 'state is \d+ bytes long, the limit is 10');
select t.refused($$ select count(*) from millrace.enqueue_jobs('[{"kind": "k", "queue": "tiny", "blob": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}]') $$, '22023', 'blob is \d+ bytes long, the limit is 20');
select t.refused($$ select count(*) from millrace.enqueue_jobs(jsonb_build_array('{"kind": "k", "args": {}}'::jsonb, jsonb_build_object('kind', 'k', 'queue', 'tiny', 'args', repeat('x', 100)),
                                                                jsonb_build_object('kind', 'k', 'args', repeat('x', 1000)))) $$, '22023', 'args is 1\d\d bytes long, the limit is 100',
                 'each job of enqueue_jobs has the limit of its own queue');
create function pg_temp.hint_of(p_sql text) returns text language plpgsql as $$
declare v_hint text;
begin
  execute p_sql;
  return null;
exception when others then
  get stacked diagnostics v_hint = pg_exception_hint;
  return v_hint;
end $$;
select matches(pg_temp.hint_of($$ select millrace.enqueue('k', to_jsonb(repeat('x', 1048577))) $$), 'S3', 'the hint names S3');
select matches(pg_temp.hint_of($$ select millrace.enqueue('k', to_jsonb(repeat('x', 1048577))) $$), 'max_args', 'and the setting');
-- A value that lies compressed in a table counts with its real size.
create table t.big as select to_jsonb(repeat('x', 3000000)) as doc;
select t.refused($$ select millrace.enqueue('k', b.doc) from t.big b $$, '22023', 'args is 30\d+ bytes long', 'args from a table count with their real size');
select t.refused($$ select count(*) from t.big b cross join lateral millrace.enqueue_many('k', array[b.doc]) $$, '22023', 'args is 30\d+ bytes long', 'also in enqueue_many');

-- NULL where it is not allowed.
select t.refused($$ select millrace.enqueue('k', null) $$, '22023', 'args must not be null');
select t.refused($$ select millrace.enqueue('k', priority => null) $$, '22023', 'priority must be from 0 to 99, not null');
select t.refused($$ select count(*) from millrace.enqueue_many('k', null) $$, '22023', 'args must not be null');
select t.refused($$ select count(*) from millrace.enqueue_many('k', array['{}']::jsonb[], state => array['\x01', '\x02']::bytea[]) $$, '22023', 'state has 2 elements and args 1');
select t.refused($$ select count(*) from millrace.enqueue_many('k', array['{}']::jsonb[], blob => '{}') $$, '22023', 'blob has 0 elements and args 1');
select t.refused($$ select count(*) from millrace.enqueue_many('k', '{}', state => array['\x01']::bytea[]) $$, '22023', 'state has 1 elements and args 0');
select t.refused($$ select count(*) from millrace.enqueue_many('k', array['{}']::jsonb[], state => array[decode(repeat('00', 70000000), 'hex')]) $$, '22023', 'the largest of state is 70000000 bytes long, the limit is');
select t.refused($$ select count(*) from millrace.enqueue_many('k', array['{}']::jsonb[], blob => array[decode(repeat('00', 70000000), 'hex')]) $$, '22023', 'the largest of blob is 70000000 bytes long, the limit is');
select t.refused($$ select count(*) from millrace.enqueue_many('k', array['{}', null]::jsonb[]) $$, '22023', 'args\[2\] must not be null');
select t.refused($$ select count(*) from millrace.enqueue_many(null, array['{}']::jsonb[]) $$, '22023', 'kind must not be null');
select t.refused($$ select count(*) from millrace.enqueue_many('', array['{}']::jsonb[]) $$, '22023', 'kind must not be empty');
select t.refused($$ select count(*) from millrace.enqueue_many('k', array['{}']::jsonb[], null) $$, '22023', 'queue must not be null');
select t.refused($$ select count(*) from millrace.enqueue_many('k', array['{}']::jsonb[], priority => null) $$, '22023', 'priority');
select t.refused($$ select count(*) from millrace.enqueue_jobs(null) $$, '22023', 'jobs must be an array of objects, not null');
select t.refused($$ select count(*) from millrace.claim('work', max_jobs => null) $$, '22023', 'max_jobs');
select t.refused($$ select millrace.complete_many(null) $$, '22023', 'leases must not be null');
select t.refused($$ select millrace.wait_channel('work', null) $$, '22023', 'worker must not be null');
select t.refused($$ select millrace.wait_channel(null, 'w') $$, '22023', 'queue must not be null');
select t.refused($$ select millrace.set_queue(null, '{}') $$, '22023', 'queue must not be null');
select t.refused($$ select millrace.set_queue('q', null) $$, '22023', 'settings must be an object');
select t.refused($$ select millrace.set_retry(null) $$, '22023', 'kind must not be null');
select t.refused($$ select millrace.pause(null) $$, 'MR003', 'queue null does not exist');
select t.refused($$ select millrace.resume(null) $$, 'MR003', 'queue null does not exist');
select t.refused($$ select millrace.purge(null) $$, 'MR003', 'queue null does not exist');
select t.refused($$ select millrace.drop_queue(null) $$, 'MR003', 'queue null does not exist');
select t.refused($$ select millrace.job(null) $$, 'MR003', 'no job null');
select t.refused($$ select millrace.replay(null) $$, 'MR003', 'no dead letter null');
select t.refused($$ select millrace.job_by_ref('work', null) $$, 'MR003', 'ref null');

-- Counts, intervals, priorities, times.
select t.refused($$ select millrace.enqueue('k', priority => -1) $$, '22023', 'priority must be from 0 to 99, not -1');
select t.refused($$ select millrace.enqueue('k', priority => 100) $$, '22023', 'priority must be from 0 to 99, not 100');
select t.refused($$ select count(*) from millrace.enqueue_many('k', array['{}']::jsonb[], priority => 100) $$, '22023', 'priority');
select t.refused(format($$ select millrace.enqueue('k', %s => interval '%s') $$, o, v), '22023', o || ' must be longer than zero')
  from unnest(array['delay', 'timeout', 'expires_in']) o
 cross join unnest(array['0', '-1 second', '1 month -30 days', '2000 years']) v;
select t.refused($$ select millrace.enqueue('k', max_attempts => 0) $$, '22023', 'max_attempts must be from 1 to 32000, not 0');
select t.refused($$ select millrace.enqueue('k', max_attempts => -1) $$, '22023', 'max_attempts');
select t.refused($$ select millrace.enqueue('k', max_attempts => 32001) $$, '22023', 'max_attempts');
select t.refused($$ select millrace.enqueue('k', run_at => 'infinity') $$, '22023', 'run_at must be a finite time.*, not infinity');
select t.refused($$ select millrace.enqueue('k', run_at => '-infinity') $$, '22023', 'run_at must be a finite time.*, not -infinity');
select t.refused($$ select count(*) from millrace.enqueue_many('k', array['{}']::jsonb[], run_at => 'infinity') $$, '22023', 'run_at');
select t.refused($$ select count(*) from millrace.enqueue_many('k', array['{}']::jsonb[], run_at => '-infinity') $$, '22023', 'run_at');
select t.refused($$ select millrace.enqueue('k', run_at => now(), delay => '1 s') $$, '22023', 'run_at and delay exclude each other');
select t.refused($$ select millrace.enqueue('k', run_at => '294276-12-31', expires_in => '2 years') $$, '22023', 'run_at must be a finite time before the year 100000', 'a time that leaves the calendar');
select t.refused(format($$ select count(*) from millrace.claim('work', max_jobs => %s) $$, n), '22023', 'max_jobs must be from 1 to 10000, not ' || n)
  from unnest(array[0, -1, 10001]) n;
select is((select count(*) from millrace.claim('nowhere', max_jobs => 10000)), 0::bigint, 'max_jobs 10000 is fine, an unknown queue has no rows');
select is((select count(*) from millrace.queue q where q.queue_name = 'nowhere'), 0::bigint, 'a claim makes no queue');
select t.refused(format($$ select count(*) from millrace.claim('work', lease_for => interval '%s') $$, v), '22023', 'lease_for must be longer than zero')
  from unnest(array['0', '-1 second', '2000 years']) v;
select t.refused($$ select count(*) from millrace.claim('work', repeat('w', 201)) $$, '22023', 'worker is 201 bytes long');
select t.refused(format($$ select * from millrace.heartbeat(%L, interval '%s') $$, :'lease', v), '22023', 'extend must be longer than zero')
  from unnest(array['0', '-1 second', '2000 years']) v;
select t.refused(format($$ select millrace.fail(%L, %s, 'e', interval '%s') $$, :'lease', :id, v), '22023', 'retry_in must be longer than zero')
  from unnest(array['0', '-1 second', '2000 years']) v;
select t.refused($$ select millrace.purge_dead('work', '-1 second') $$, '22023', 'older_than');
select t.refused($$ select millrace.purge_dead('work', '0') $$, '22023', 'older_than');
select t.refused($$ select millrace.replay_all('work', max_jobs => 0) $$, '22023', 'max_jobs');
select t.refused($$ select millrace.replay_all('work', max_jobs => -1) $$, '22023', 'max_jobs');
select t.refused($$ select millrace.replay_completed('work', now(), now()) $$, '22023', 'since must be before until');
select t.refused($$ select millrace.replay_completed('work', null, now()) $$, '22023', 'since must be before until');
select t.refused($$ select millrace.replay_completed('work', now(), null) $$, '22023', 'since must be before until');

-- enqueue_jobs.
select t.refused(format('select count(*) from millrace.enqueue_jobs(%L)', j), '22023', 'jobs must be an array of objects, not ' || jsonb_typeof(j::jsonb))
  from unnest(array['{}', '5', 'null', '"x"', 'true']) j;
select t.refused(format('select count(*) from millrace.enqueue_jobs(%L)', '[{"kind": "k", "queue": "new"}, ' || j || ']'), '22023', m)
  from (values ('5', 'job 2 must be an object, not number'), ('null', 'job 2 must be an object, not null'), ('[]', 'job 2 must be an object, not array'),
               ('"x"', 'job 2 must be an object, not string'),
               ('{}', 'job 2: kind must not be null'), ('{"kind": null}', 'job 2: kind must not be null'), ('{"kind": ""}', 'job 2: kind must not be empty'),
               ('{"kind": "k", "colour": 1}', 'job 2 has the unknown option ''colour'''), ('{"kind": "k", "source": "x"}', 'unknown option ''source'''),
               ('{"kind": "k", "queue": ""}', 'job 2: queue must not be empty'),
               ('{"kind": "k", "priority": 100}', 'job 2: priority must be from 0 to 99, not 100'),
               ('{"kind": "k", "priority": -1}', 'job 2: priority'),
               ('{"kind": "k", "priority": "high"}', 'wrong type.*"high"'),
               ('{"kind": "k", "priority": 1.5}', 'wrong type'),
               ('{"kind": "k", "priority": true}', 'wrong type'),
               ('{"kind": "k", "priority": [1]}', 'job 2: priority must not be an array'),
               ('{"kind": "k", "priority": {"a": 1}}', 'job 2: priority must not be an object'),
               ('{"kind": ["k"]}', 'job 2: kind must not be an array'),
               ('{"kind": "k", "queue": {"a": 1}}', 'job 2: queue must not be an object'),
               ('{"kind": "k", "delay": [1]}', 'job 2: delay must not be an array'),
               ('{"kind": "k", "state": ["AA=="]}', 'job 2: state must not be an array'),
               ('{"kind": "k", "priority": 99999999999}', 'wrong type'),
               ('{"kind": "k", "max_attempts": "many"}', 'wrong type'),
               ('{"kind": "k", "max_attempts": 0}', 'job 2: max_attempts must be from 1'),
               ('{"kind": "k", "run_at": "soon"}', 'wrong type'),
               ('{"kind": "k", "run_at": "2030-02-31"}', 'wrong type'),
               ('{"kind": "k", "run_at": "infinity"}', 'job 2: run_at must be a finite time'),
               ('{"kind": "k", "run_at": "-infinity"}', 'job 2: run_at must be a finite time'),
               ('{"kind": "k", "run_at": "2030-01-01Z", "delay": "1 s"}', 'job 2: run_at and delay exclude each other'),
               ('{"kind": "k", "delay": "a while"}', 'wrong type'),
               ('{"kind": "k", "delay": "0"}', 'job 2: delay must be longer than zero'),
               ('{"kind": "k", "delay": "-1 s"}', 'job 2: delay must be longer than zero'),
               ('{"kind": "k", "delay": "99999999999999999 years"}', 'wrong type'),
               ('{"kind": "k", "timeout": "0"}', 'job 2: timeout'),
               ('{"kind": "k", "expires_in": "-1 s"}', 'job 2: expires_in'),
               ('{"kind": "k", "state": "***"}', 'job 2: state is not base64'),
               ('{"kind": "k", "blob": "AAA"}', 'job 2: blob is not base64')) v(j, m);
select t.refused(format('select count(*) from millrace.enqueue_jobs(%L)', jsonb_build_array(jsonb_build_object('kind', repeat('k', 201)))), '22023', 'job 1: kind is 201 bytes long');
select t.refused(format('select count(*) from millrace.enqueue_jobs(%L)', jsonb_build_array(jsonb_build_object('kind', 'k', 'queue', repeat('q', 201)))), '22023', 'job 1: queue is 201 bytes long');
select t.refused(format('select count(*) from millrace.enqueue_jobs(%L)', jsonb_build_array(jsonb_build_object('kind', 'k', 'tenant', repeat('q', 1001)))), '22023', 'job 1: tenant');

-- Settings.
select t.refused(format('select millrace.set_queue(%L, %L)', 'work', v), '22023', m)
  from (values ('[]', 'settings must be an object'), ('5', 'settings must be an object'), ('null', 'settings must be an object'),
               ('{"colour": 1}', 'there is no setting ''colour'''),
               ('{"lease": "0"}', 'setting lease must be from'), ('{"lease": "-1 s"}', 'setting lease must be from'),
               ('{"lease": "soon"}', 'setting lease does not accept ''soon'''), ('{"lease": "2 years"}', 'setting lease must be from'),
               ('{"lease": "999999999999999 years"}', 'setting lease'), ('{"lease": [1]}', 'setting lease does not accept'),
               ('{"parts": 0}', 'setting parts must be from 1 to 32'), ('{"parts": 33}', 'setting parts must be from 1 to 32'),
               ('{"parts": 1.5}', 'setting parts does not accept'), ('{"parts": "x"}', 'setting parts does not accept'), ('{"parts": true}', 'setting parts does not accept'),
               ('{"parts": 99999999999999999999}', 'setting parts does not accept'),
               ('{"max_attempts": 0}', 'setting max_attempts'), ('{"max_attempts": 32001}', 'setting max_attempts'),
               ('{"poison_limit": 0}', 'setting poison_limit'), ('{"retention": "0"}', 'setting retention'), ('{"retention": "-1 h"}', 'setting retention'),
               ('{"dead_retention": "0"}', 'setting dead_retention'), ('{"dead_max": 0}', 'setting dead_max'), ('{"dead_max_bytes": 0}', 'setting dead_max_bytes'),
               ('{"max_args": 0}', 'setting max_args'), ('{"max_args": 1e12}', 'setting max_args'), ('{"max_state": -1}', 'setting max_state'), ('{"max_blob": 0}', 'setting max_blob'),
               ('{"warn_depth": 0}', 'setting warn_depth'), ('{"critical_depth": -5}', 'setting critical_depth'),
               ('{"durability": "maybe"}', 'setting durability does not accept ''maybe'''), ('{"durability": 5}', 'setting durability does not accept'),
               ('{"max_attempts": 5, "parts": 0}', 'setting parts')) v(v, m);
select t.refused($$ select millrace.set_queue('', '{}') $$, '22023', 'queue must not be empty');
select t.refused($$ select millrace.set_queue(repeat('q', 201), '{}') $$, '22023', 'queue is 201 bytes long');
select t.refused(format($$ select millrace.set_retry('k', %s) $$, o), '22023', m)
  from (values ('max_attempts => 0', 'max_attempts'), ('max_attempts => null', 'max_attempts'), ('max_attempts => 32001', 'max_attempts'),
               ('base => ''0''', 'base'), ('base => ''-1 s''', 'base'), ('base => null', 'base and cap must not be null'), ('cap => ''0''', 'cap'), ('cap => null', 'base and cap'),
               ('factor => 0.5', 'factor'), ('factor => -1', 'factor'), ('factor => ''nan''', 'factor'), ('factor => ''infinity''', 'factor'), ('factor => null', 'factor'),
               ('jitter => -0.1', 'jitter'), ('jitter => 1.1', 'jitter'), ('jitter => ''nan''', 'jitter'), ('jitter => null', 'jitter')) v(o, m);
select t.refused($$ select millrace.set_retry('') $$, '22023', 'kind must not be empty');
select t.refused($$ select millrace.set_retry(repeat('k', 201)) $$, '22023', 'kind is 201');

-- Unknown queues and jobs.
select t.refused(s, 'MR003', 'does not exist|there is no|has no job')
  from unnest(array[
    $$ select millrace.pause('nowhere') $$, $$ select millrace.resume('nowhere') $$, $$ select millrace.purge('nowhere') $$, $$ select millrace.drop_queue('nowhere') $$,
    $$ select millrace.purge_dead('nowhere') $$, $$ select millrace.replay_all('nowhere') $$, $$ select millrace.replay_completed('nowhere', now() - interval '1 h', now()) $$,
    $$ select millrace.job_by_ref('nowhere', 'x') $$, $$ select millrace.job_by_ref('work', 'x') $$, $$ select millrace.job(123456789) $$, $$ select millrace.replay(123456789) $$]) s;
select is(millrace.depth('nowhere'), 0::bigint, 'an unknown queue has no depth');
select is(millrace.depth(null), 0::bigint, 'nor has null');
select is((select count(*) from millrace.stats('nowhere')), 0::bigint, 'and no figures');
select is((select count(*) from millrace.claim(null)), 0::bigint, 'a claim from null gets no rows');

-- finish and requeue.
select t.refused(format('select millrace.finish(%L, %L)', :'lease', v), '22023', m)
  from (values ('{}', 'outcomes must be an array'), ('5', 'outcomes must be an array'), ('null', 'outcomes must be an array'),
               ('[5]', 'wrong entry'), ('[null]', 'wrong entry'), ('[[]]', 'wrong entry'), ('[{}]', 'wrong entry'),
               (format('[{"id": %s}]', :id), 'wrong entry'), ('[{"outcome": "completed"}]', 'wrong entry'), ('[{"id": null, "outcome": "completed"}]', 'wrong entry'),
               (format('[{"id": %s, "outcome": "eaten"}]', :id), 'wrong entry.*eaten'),
               (format('[{"id": %s, "outcome": "completed", "colour": 1}]', :id), 'wrong entry.*colour'),
               (format('[{"id": %s, "outcome": "requeued", "clear": "args"}]', :id), 'wrong entry'),
               (format('[{"id": %s, "outcome": "requeued", "clear": ["hat"]}]', :id), 'clear has the unknown part ''hat'''),
               (format('[{"id": %s, "outcome": "requeued", "changes": 5}]', :id), 'changes must be an object'),
               (format('[{"id": %s, "outcome": "requeued", "changes": {"hat": 1}}]', :id), 'changes has the unknown key ''hat'''),
               (format('[{"id": %s, "outcome": "requeued", "changes": {"priority": 100}}]', :id), 'priority must be from 0 to 99'),
               (format('[{"id": %s, "outcome": "requeued", "blob": "***"}]', :id), 'is not base64'),
               (format('[{"id": %s, "outcome": "snoozed"}]', :id), 'wrong entry'), (format('[{"id": %s, "outcome": "completed", "delay": "1 s"}]', :id), 'wrong entry'),
               (format('[{"id": %s, "outcome": "snoozed", "delay": {}}]', :id), 'wrong entry'), (format('[{"id": %s, "outcome": "snoozed", "delay": "later"}]', :id), 'wrong type'),
               (format('[{"id": %s, "outcome": "snoozed", "delay": "-1 s"}]', :id), 'delay must be longer than zero'),
               (format('[{"id": %s, "outcome": "snoozed", "delay": "1 s", "changes": {"run_at": "2030-01-01"}}]', :id), 'both run_at and delay'),
               ('[{"id": "one", "outcome": "completed"}]', 'wrong type'), ('[{"id": 1.5, "outcome": "completed"}]', 'wrong type'),
               ('[{"id": 99999999999999999999, "outcome": "completed"}]', 'wrong type'),
               (format('[{"id": %s, "outcome": "failed", "retry_in": "soon"}]', :id), 'wrong type'), (format('[{"id": %s, "outcome": "failed", "retry_in": [1]}]', :id), 'wrong entry'),
               (format('[{"id": %s, "outcome": "failed", "retry_in": "-1 s"}]', :id), 'retry_in must be longer than zero'),
               (format('[{"id": %s, "outcome": "failed", "retry": "perhaps"}]', :id), 'wrong type'),
               (format('[{"id": %s, "outcome": "failed", "state": "***"}]', :id), 'is not base64'),
               -- a good one before the bad one is undone
               (format('[{"id": %s, "outcome": "failed"}, {"id": %s, "outcome": "eaten"}]', :id, (:'held'::bigint[])[2]), 'wrong entry'),
               (format('[{"id": %s, "outcome": "failed"}, {"id": %s, "outcome": "requeued", "changes": {"hat": 1}}]', :id, (:'held'::bigint[])[2]), 'unknown key')) v(v, m);
select t.refused(format('select millrace.finish(%L, null)', :'lease'), '22023', 'outcomes must be an array');
select t.refused(format('select millrace.requeue(%L, %s, %s)', :'lease', :id, v), '22023', m)
  from (values ('null', 'changes must be an object'), ('''[]''', 'changes must be an object'), ('''5''', 'changes must be an object'), ('''{"hat": 1}''', 'unknown key ''hat'''),
               ('''{"state": "AA=="}''', 'unknown key ''state'''),
               ('''{"priority": 100}''', 'priority must be from 0 to 99'), ('''{"priority": -1}''', 'priority'), ('''{"priority": "high"}''', 'wrong type'),
               ('''{"priority": 1.5}''', 'wrong type'), ('''{"priority": 99999999999}''', 'wrong type'), ('''{"priority": [1]}''', 'priority must not be an array'), ('''{"queue": {"a": 1}}''', 'queue must not be an object'), ('''{"run_at": ["now"]}''', 'run_at must not be an array'),
               ('''{"run_at": "soon"}''', 'wrong type'), ('''{"run_at": "infinity"}''', 'run_at must be a finite time'), ('''{"run_at": "-infinity"}''', 'run_at must be a finite time'),
               ('''{"queue": ""}''', 'queue must not be empty'), (quote_literal(jsonb_build_object('queue', repeat('q', 201))), 'queue is 201 bytes long'),
               (quote_literal(jsonb_build_object('args', repeat('q', 1048577))), 'args is \d+ bytes long'),
               (quote_literal(jsonb_build_object('queue', 'tiny', 'args', repeat('q', 101))), 'args is \d+ bytes long, the limit is 100'),
               ('''{"queue": "tiny"}'', state => ''\x0000000000000000000000''', 'state is 11 bytes long'),
               ('clear => null', 'clear'), ('clear => array[''hat'']', 'clear has the unknown part ''hat'''), ('clear => array[null]', 'clear has the unknown part null')) v(v, m);

-- A state for the next attempt is no larger than that of a new job, however the job fails.
select t.refused(format($$ select millrace.%s $$, replace(replace(v, 'LEASE', quote_literal(t.lease('small'))), 'ID', (t.ids('small'))[1]::text)), '22023', 'state is 11 bytes long, the limit is 10')
  from unnest(array[$$fail(LEASE, ID, 'x', state => '\x0000000000000000000000')$$, $$fail(LEASE, ID, 'x', retry => false, state => '\x0000000000000000000000')$$,
                    $$finish(LEASE, '[{"id": ID, "outcome": "failed", "error": "x", "state": "AAAAAAAAAAAAAAA="}]')$$,
                    $$finish(LEASE, '[{"id": ID, "outcome": "failed", "error": "x", "retry": false, "state": "AAAAAAAAAAAAAAA="}]')$$,
                    $$finish(LEASE, '[{"id": ID, "outcome": "requeued", "state": "AAAAAAAAAAAAAAA="}]')$$,
                    $$finish(LEASE, '[{"id": ID, "outcome": "snoozed", "delay": "1 s", "state": "AAAAAAAAAAAAAAA="}]')$$,
                    $$requeue(LEASE, ID, state => '\x0000000000000000000000')$$]) v;
select is(t.all_rows(), :'before', 'all this has written nothing');
select is(millrace.complete_at(t.at('1 second'), :'lease', null, null), 2, 'after all this the lease is as good as before');
select is(millrace.finish_at(t.at('1 second'), t.lease('small'), jsonb_build_array(
            jsonb_build_object('id', (t.ids('small'))[1], 'outcome', 'failed', 'error', 'x', 'state', 'AAAAAAAAAAAAAA=='),
            jsonb_build_object('id', (t.ids('small'))[2], 'outcome', 'failed', 'error', 'x', 'retry', false, 'state', 'AAAAAAAAAAAAAA=='))), 2,
          'a state of just max_state is taken');

-- Leases: the largest parts there can be, and what only looks like one.
select is(millrace.lease_parts('15.2147483647.999999999999999999.0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0')::text,
          '(15,2147483647,999999999999999999,0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0)', 'the largest lease');
select t.refused(format('select millrace.complete(%L)', v), 'MR001', 'lease')
  from unnest(array['', '.', '...', '1.2.3', '1.2147483648.1.0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0', '1.99999999999.1.0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0',
                    '1.1.99999999999999999999.0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0', '99999.1.1.0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0',
                    '-1.1.1.0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0', '1.1e3.1.0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0', '01.1.1.0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0',
                    ' 1.1.1.0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0', '1.1.1.0F1E2D3C-4B5A-6978-8796-A5B4C3D2E1F0', '1.1.1.0f1e2d3c4b5a69788796a5b4c3d2e1f0',
                    '1.1.1.{0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0}', '1.1.1.0f1e2d3-c4b5a-6978-8796-a5b4c3d2e1f0', '1.1.1.zf1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0',
                    '1.1.1.0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0.', '١.1.1.0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0', repeat('1', 100000)]) v;

select * from finish();
