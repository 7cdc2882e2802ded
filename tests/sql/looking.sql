-- SPDX-License-Identifier: PostgreSQL
-- Looking and steering: job, job_by_ref, the views, stats, depth, health, purge, drop_queue, replay, parts. What holds a segment may be
-- a transaction in whatever database of the server:
-- server: own
\ir lib/helpers.psql
select no_plan();

create function t.stat(p_now timestamptz, p_queue text)
returns millrace.queue_stats
language sql
as $$
  select s from millrace.stats_at(p_now, p_queue) s
$$;

-- ---- job(): the story ----
select millrace.enqueue_at(t.at('0'), 'mail', '{"to": null, "n": {"x": null}}', 'story', 20, null, null, null, null, 'acme', 'inv-1', 3, null, null, '{"m": null}', null, null, null) as id
\gset
select is(millrace.job(:id), jsonb_build_object('id', :id, 'queue', 'story', 'kind', 'mail', 'status', 'available', 'priority', 20, 'attempt', 1, 'max_attempts', 3,
          'args', '{"to": null, "n": {"x": null}}'::jsonb, 'meta', '{"m": null}'::jsonb, 'tenant', 'acme', 'ref', 'inv-1', 'source', 'sql', 'created_at', t.at('0'), 'run_at', t.at('0'),
          'attempts', jsonb_build_array(jsonb_build_object('attempt', 1, 'outcome', 'waiting')), 'history', '[]'::jsonb), 'the story of a job that waits; its args as they are, nulls too');
select t.claim('s1', t.at('10 s'), 'story', 1, '1 minute', 'alice')
\gset
select is(millrace.job(:id) - 'args' - 'meta' - 'history', jsonb_build_object('id', :id, 'queue', 'story', 'kind', 'mail', 'status', 'running', 'priority', 20, 'attempt', 1, 'max_attempts', 3,
          'tenant', 'acme', 'ref', 'inv-1', 'source', 'sql', 'created_at', t.at('0'), 'run_at', t.at('0'), 'worker', 'alice', 'claimed_at', t.at('10 s'),
          'attempts', jsonb_build_array(jsonb_build_object('attempt', 1, 'outcome', 'running', 'worker', 'alice', 'claimed_at', t.at('10 s')))), 'of one that runs');
select millrace.fail_at(t.at('12 s'), t.lease('s1'), :id, 'smtp: no route', '8 s', true, null)
\gset
select is(millrace.job(:id) - array['args', 'meta', 'id', 'queue', 'kind', 'priority', 'tenant', 'ref', 'source', 'max_attempts', 'created_at'],
          jsonb_build_object('status', 'scheduled', 'attempt', 2, 'run_at', t.at('20 s'), 'error', 'smtp: no route',
          'attempts', jsonb_build_array(jsonb_build_object('attempt', 1, 'outcome', 'failed', 'worker', 'alice', 'claimed_at', t.at('10 s'), 'finished_at', t.at('12 s'), 'error', 'smtp: no route')),
          'history', jsonb_build_array(jsonb_build_object('attempt', 1, 'outcome', 'failed', 'error', 'smtp: no route', 'worker', 'alice', 'at', t.at('12 s')))), 'of one that failed');
select t.duty(t.at('20 s'), 'promote')
\gset
select t.claim('s2', t.at('21 s'), 'story', 1, '1 minute', 'bob')
\gset
select millrace.complete_at(t.at('23 s'), t.lease('s2'), null, '{"sent": true}')
\gset
select is(millrace.job(:id) - array['args', 'meta', 'id', 'queue', 'kind', 'priority', 'tenant', 'ref', 'source', 'max_attempts', 'created_at', 'history', 'error'],
          jsonb_build_object('status', 'completed', 'attempt', 2, 'run_at', t.at('20 s'), 'worker', 'bob', 'claimed_at', t.at('21 s'), 'finished_at', t.at('23 s'), 'result', '{"sent": true}'::jsonb,
          'attempts', jsonb_build_array(
            jsonb_build_object('attempt', 1, 'outcome', 'failed', 'worker', 'alice', 'claimed_at', t.at('10 s'), 'finished_at', t.at('12 s'), 'error', 'smtp: no route'),
            jsonb_build_object('attempt', 2, 'outcome', 'completed', 'worker', 'bob', 'claimed_at', t.at('21 s'), 'finished_at', t.at('23 s')))), 'of one that came through');
-- By ref: the newest, in its queue.
select millrace.enqueue('k', queue => 'story', ref => 'inv-1') as newer, millrace.enqueue('k', queue => 'elsewhere', ref => 'inv-1') as other, millrace.enqueue('k', queue => 'story', ref => 'later', delay => '1 hour') as later
\gset
select is((millrace.job_by_ref('story', 'inv-1') ->> 'id')::bigint, :newer::bigint, 'job_by_ref finds the newest');
select is((millrace.job_by_ref('elsewhere', 'inv-1') ->> 'id')::bigint, :other::bigint, 'in the queue asked for');
select is(millrace.job_by_ref('story', 'later') ->> 'status', 'scheduled', 'one that waits for its time too');
select is((select (j.id, j.status)::text from millrace.jobs j where j.ref = 'inv-1' and j.kind = 'mail'), (:id, 'completed')::text, 'the view finds by ref');

-- ---- every status ----
select t.put(t.at('100 s'), 'st', 8) as st
\gset
select t.claim('st', t.at('101 s'), 'st', 6, '1 hour')
\gset
select millrace.finish_at(t.at('102 s'), t.lease('st'), jsonb_build_array(
  jsonb_build_object('id', (t.ids('st'))[1], 'outcome', 'completed'), jsonb_build_object('id', (t.ids('st'))[2], 'outcome', 'failed', 'error', 'e', 'retry_in', '1 hour'),
  jsonb_build_object('id', (t.ids('st'))[3], 'outcome', 'failed', 'error', 'gone', 'retry', false), jsonb_build_object('id', (t.ids('st'))[4], 'outcome', 'released'),
  jsonb_build_object('id', (t.ids('st'))[5], 'outcome', 'requeued', 'changes', jsonb_build_object('run_at', t.at('2 hours')))))
\gset
select millrace.enqueue_at(t.at('100 s'), 'stale', '{}', 'st2', 50, null, null, null, null, null, null, null, null, '1 s', null, null, null, null) as stale
\gset
select t.claim('st2', t.at('103 s'), 'st2')
\gset
select t.put(t.at('100 s'), 'st3', 1) as purged
\gset
select millrace.purge('st3')
\gset
select is(array(select string_agg(j.status, ',') from unnest(:'st'::bigint[]) with ordinality u(id, ord) left join millrace.jobs j on j.id = u.id group by u.ord order by u.ord),
          array['completed', 'scheduled', 'dead', 'available', 'scheduled', 'running', 'available', 'available'], 'each status, each job once');
select is((select j.status from millrace.jobs j where j.id = :stale), 'expired', 'expired');
select is((select j.status from millrace.jobs j where j.id = (:'purged'::bigint[])[1]), 'cancelled', 'a purged job is cancelled');
select is((select (j.error, j.finished_at)::text from millrace.jobs j where j.id = (:'st'::bigint[])[3]), ('gone', t.at('102 s'))::text, 'a dead job shows its error');
select is((select count(*) from millrace.jobs j where j.queue = 'st'), 8::bigint, 'a queue''s jobs');

-- ---- stats, depth, workers, health ----
select is((select (s.queue, s.available, s.running, s.scheduled, s.retrying, s.dead, s.completed_1h, s.failed_1h)::text from t.stat(t.at('110 s'), 'st') s),
          ('st', 3, 1, 1, 1, 1, 0, 0)::text, 'figures of a queue; what a claim has finished counts when the claim ends');
select millrace.complete_at(t.at('111 s'), t.lease('st'), null, null)
\gset
select is((select (s.available, s.running, s.completed_1h, s.failed_1h, s.oldest_seconds, round(s.avg_wait_seconds_1h::numeric, 3), round(s.avg_run_seconds_1h::numeric, 3))::text from t.stat(t.at('120 s'), 'st') s),
          (3, 0, 2, 2, 20, 1.500, 3.750)::text, 'and after it: six jobs waited 1 s each, five ran 1 s and one 10 s, over four that ended');
select is((select s.oldest_seconds from t.stat(t.at('99 s'), 'st') s), 0::float8, 'a job that came after the clock was read has no age, not less than none');
select is((select count(*) from millrace.stats()), (select count(*) from millrace.queue), 'stats without a queue: a row for each');
select is((select array_agg(s.queue) from millrace.stats() s), (select array_agg(q.queue_name order by q.queue_name) from millrace.queue q), 'in order');
select is((select (s.available, s.oldest_seconds, s.avg_wait_seconds_1h, s.completed_1h)::text from t.stat(t.at('120 s'), 'st2') s), (0, null::float8, null::float8, 0)::text, 'an idle queue has no oldest');
-- The last hour only.
select t.duty(t.at('130 s'), 'pulse')
\gset
select is((t.stat(t.at('131 s') + interval '1 hour', 'st')).completed_1h, 0::bigint, 'what ended more than an hour ago is not counted');
select is((t.stat(t.at('129 s') + interval '1 hour', 'st')).completed_1h, 2::bigint, 'what ended within it is');
-- Depth: exact before, between and after claims, over priorities.
select is(millrace.depth('deep'), 0::bigint, 'a queue that is not there');
select t.put(t.at('200 s'), 'deep', 1000, 50), t.put(t.at('200 s'), 'deep', 300, 10), t.put(t.at('200 s'), 'deep', 20, 99)
\gset
select is(millrace.depth('deep'), 1320::bigint, 'depth before any claim');
select t.claim('d1', t.at('201 s'), 'deep', 250)
\gset
select is(millrace.depth('deep'), 1070::bigint, 'after a claim: what is claimed does not count');
select t.put(t.at('202 s'), 'deep', 7, 50)
\gset
select is(millrace.depth('deep'), 1077::bigint, 'after more came');
select millrace.release_at(t.at('203 s'), t.lease('d1'), (t.ids('d1'))[1:10])
\gset
select is(millrace.depth('deep'), 1087::bigint, 'after some were released');
select millrace.complete_at(t.at('203 s'), t.lease('d1'), null, null)
\gset
select is(millrace.depth('deep'), 1087::bigint, 'completing changes nothing');
begin;
select t.put(t.at('202 s'), 'deep', 5, 50)
\gset
select is(millrace.depth('deep'), 1087::bigint, 'own uncommitted jobs do not count');
rollback;
select is(millrace.depth('deep'), 1087::bigint, 'what was rolled back never counts');
begin read only;
select millrace.depth('deep') as read_only, (select count(*) from millrace.stats()) as read_only_stats, (select count(*) from millrace.health()) > 0 as read_only_health
\gset
commit;
select is(:read_only, 1087, 'depth in a read-only transaction');
begin isolation level repeatable read;
select is(millrace.depth('deep'), 1087::bigint, 'depth at repeatable read');
commit;
select is(cardinality(t.claim_all('d2', t.at('204 s'), 'deep')), 1087, 'all can be claimed');
select is(millrace.depth('deep'), 0::bigint, 'then the depth is 0');
select is((t.stat(t.at('205 s'), 'deep')).running, 1087::bigint, 'and all run');
-- workers
select is((select (w.worker, w.jobs_running, w.lease_until)::text from millrace.workers w where w.queue = 'deep'), ('w', 1087, t.at('204 s') + interval '1 day')::text, 'workers: what they hold');
select is((select (w.claims_open, w.jobs_running)::text from millrace.workers w where w.queue = 'story' and w.worker = 'bob'), '(0,0)', 'and what they took lately');
-- health
select t.put(t.at('300 s'), 'hea', 100)
\gset
select is((select (h.status, h.message)::text from millrace.health_at(t.at('301 s')) h where h.queue = 'hea'), ('OK', '100 pending, oldest 1.0 s')::text, 'health: 100 pending is OK');
select t.put(t.at('300 s'), 'hea', 1)
\gset
select is((select (h.status, h.message)::text from millrace.health_at(t.at('305 s')) h where h.queue = 'hea'), ('WARNING', '101 pending, oldest 5.0 s')::text, 'over 100 is a WARNING');
select millrace.set_queue('hea', '{"critical_depth": 100}')
\gset
select is((select h.status from millrace.health_at(t.at('305 s')) h where h.queue = 'hea'), 'CRITICAL', 'over critical_depth is CRITICAL');
select millrace.set_queue('hea', '{"critical_depth": null, "warn_depth": 101}'), millrace.pause('hea')
\gset
select is((select (h.status, h.message)::text from millrace.health_at(t.at('305 s')) h where h.queue = 'hea'), ('OK', '101 pending, oldest 5.0 s, paused')::text, 'by the queue''s settings; a pause is told');
select is((select h.status from millrace.health_at(t.at('305 s')) h where h.queue is null), 'OK', 'the log is well');
select matches((select h.message from millrace.health_at(t.at('305 s')) h where h.queue is null), '^\d+ of 16 segments in use$', 'and says how much of the ring it uses');
select is((select h.message from millrace.health_at(t.at('305 s')) h where h.queue = 'st2'), '0 pending', 'an empty queue');
-- A segment long past its retention that a deep paused queue holds.
select t.put(t.at('310 s'), 'pin', 1500)
\gset
select millrace.pause('pin')
\gset
select t.duty(t.at('3 hours'), 'rotate')
\gset
select t.wait_sealed()
\gset
select millrace.maintain_at(t.at('3 days')) \g /dev/null
select is((select h.status from millrace.health_at(t.at('3 days')) h where h.queue is null), 'WARNING', 'a pinned segment is a WARNING');
select matches((select h.message from millrace.health_at(t.at('3 days')) h where h.queue is null), 'pinned by queues.*''pin''', 'that names the queue');
-- queues
select is((select (q.paused, q.settings ->> 'warn_depth', q.settings ->> 'critical_depth', q.settings ->> 'lease')::text from millrace.queues q where q.queue = 'hea'),
          ('t', '101', '1000', '00:00:30')::text, 'queues: settings, null set the default again');
select is((select count(*) from millrace.queue_setting s where s.column_name is not null and not exists (select from millrace.queues q where q.queue = 'hea' and q.settings ? s.setting_name)), 0::bigint,
          'every setting is shown');
select is((select count(*) from millrace.queue_setting s join millrace.queues q on q.queue = 'st2' where s.column_name is not null and q.settings ->> s.setting_name is distinct from
             case s.value_type when 'interval' then to_jsonb(s.default_text::interval) #>> '{}' else s.default_text end), 0::bigint, 'a new queue has the defaults of the list');

-- ---- purge, drop_queue ----
select t.put(t.at('400 s'), 'pur', 12000), millrace.enqueue('k', queue => 'pur', delay => '1 hour'), t.put(t.at('400 s'), 'pur', 5, 3)
\gset
select t.claim('pur', t.at('401 s'), 'pur', 2, '10 days')
\gset
select is(millrace.purge('pur'), 12004::bigint, 'purge returns how many it removed, available and delayed');
select is((select (s.available, s.running, s.scheduled)::text from t.stat(t.at('402 s'), 'pur') s), '(0,2,0)', 'those that run go on');
select is(millrace.purge('pur'), 0::bigint, 'again: nothing');
select t.put(t.at('403 s'), 'pur', 1) as after
\gset
select is(t.claim('pur2', t.at('403 s'), 'pur', 10), :'after'::bigint[], 'a job that comes later is delivered');
select throws_ok('select millrace.drop_queue(''pur'')', '55006', 'queue ''pur'' has 2 open leases', 'a queue with running jobs is not dropped');
select is(millrace.complete_at(t.at('403 s'), t.lease('pur'), null, null) + millrace.complete_at(t.at('403 s'), t.lease('pur2'), null, null), 3, 'they complete');
select t.put(t.at('404 s'), 'pur', 3), millrace.enqueue('k', queue => 'pur', delay => '1 hour') as delayed
\gset
select millrace.drop_queue('pur')
\gset
select is((select count(*) from millrace.queues q where q.queue = 'pur'), 0::bigint, 'then it is dropped');
select is((select count(*) from millrace.delayed d where d.job_id = :delayed), 0::bigint, 'with what waited');
select is((select count(*) from millrace.claim('pur')), 0::bigint, 'and hands out nothing');
select t.put(t.at('405 s'), 'pur', 1) as again
\gset
select is(t.claim('pur3', t.at('406 s'), 'pur', 10), :'again'::bigint[], 'a new queue of the same name starts empty');

-- ---- dead letters: replay, replay_all, purge_dead ----
create function t.kill(p_now timestamptz, p_queue text, p_kind text, p_error text)
returns bigint
language plpgsql
as $$
declare
  v_id bigint := millrace.enqueue_at(p_now, p_kind, '{"a": 1}', p_queue, 40, null, null, null, null, 'acme', null, null, '5 s', null, '{"m": 1}', '\x01', '\x02', 'src');
  v_job millrace.job;
begin
  select j.* into v_job from millrace.job j where j.job_id = v_id;
  v_job.trail := millrace.trail_with(null, 1, 'failed', p_error, 'w', p_now);
  perform millrace.job_bury(p_now, v_job, 'failed', p_error);
  return v_id;
end $$;
select t.kill(t.at('500 s'), 'dl', 'a', 'timeout after 5 s') as dl1
\gset
select t.kill(t.at('501 s'), 'dl', 'b', 'no such file') as dl2
\gset
select t.kill(t.at('502 s'), 'dl', 'a', 'timeout after 9 s') as dl3
\gset
select t.kill(t.at('503 s'), 'dl', 'a', '100% wrong') as dl4
\gset
select t.kill(t.at('504 s'), 'dl2', 'a', 'timeout') as dl5
\gset
select millrace.purge('dl'), millrace.purge('dl2')
\gset
select is((select array_agg(d.id order by d.died_at) from millrace.dead_letters d where d.queue = 'dl'), array[:dl1, :dl2, :dl3, :dl4]::bigint[], 'dead letters of a queue');
select is((select (d.kind, d.cause, d.error, d.attempt, d.args, d.meta, d.tenant, d.source, d.created_at, d.died_at, jsonb_array_length(d.history))::text from millrace.dead_letters d where d.id = :dl1),
          ('a', 'failed', 'timeout after 5 s', 1, '{"a": 1}'::jsonb, '{"m": 1}'::jsonb, 'acme', 'src', t.at('500 s'), t.at('500 s'), 1)::text, 'a dead letter');
select is(millrace.replay(:dl2), :dl2::bigint, 'replay returns the id');
select throws_ok(format('select millrace.replay(%s)', :dl2), 'MR003', null, 'once');
select t.claim('rp', t.at('510 s'), 'dl', 10)
\gset
select is((select (g.id, g.attempt, g.max_attempts, g.kind, g.args, g.meta, g.state, g.blob, g.tenant, g.source, g.priority, g.timeout, g.created_at)::text from t.got g where g.tag = 'rp'),
          (:dl2, 1, 3, 'b', '{"a": 1}'::jsonb, '{"m": 1}'::jsonb, '\x01'::bytea, '\x02'::bytea, 'acme', 'src', 40, interval '5 s', t.at('501 s'))::text, 'it is a fresh job of the same id with all it had');
select is(jsonb_array_length(millrace.job(:dl2) -> 'history'), 1, 'its history is kept');
select millrace.complete_at(t.at('511 s'), t.lease('rp'), null, null)
\gset
select is(millrace.replay_all('dl', 'nothing'), 0::bigint, 'replay_all by kind: none');
select is(millrace.replay_all('dl', 'a', 'timeout%', 1), 1::bigint, 'by kind, error and number');
select is(t.claim('rp2', t.at('512 s'), 'dl', 10), array[:dl1]::bigint[], 'the oldest first');
select is(millrace.replay_all('dl', error_like => '100\%%'), 1::bigint, 'by error alone');
select is(t.claim('rp3', t.at('513 s'), 'dl', 10), array[:dl4]::bigint[], 'that one');
select is(millrace.replay_all('dl'), 1::bigint, 'all that are left');
select is(t.claim('rp4', t.at('514 s'), 'dl', 10), array[:dl3]::bigint[], 'the last');
select is((select count(*) from millrace.dead_letters d where d.queue = 'dl2'), 1::bigint, 'other queues are not touched');
select is(millrace.purge_dead('dl2', '100 years'), 0::bigint, 'purge_dead of old ones: none');
select is(millrace.purge_dead('dl2'), 1::bigint, 'purge_dead of all');
select is((select count(*) from millrace.dead), (select count(*) from millrace.dead_letters), 'nothing is hidden');
-- replay_completed with the real clock.
select millrace.enqueue('again', '{"n": 1}', 'rc') as rc
\gset
insert into t.got select 'rc', 1, c.* from millrace.claim('rc') c;
select millrace.complete(t.lease('rc'))
\gset
select is(millrace.replay_completed('rc', now() - interval '1 minute', now() + interval '1 minute', 'other'), 0::bigint, 'replay_completed of another kind');
select is(millrace.replay_completed('rc', now() - interval '1 minute', now() + interval '1 minute'), 1::bigint, 'replay_completed');
select is((select (c.id > :rc, c.args, c.source)::text from millrace.claim('rc') c), ('t', '{"n": 1}'::jsonb, 'replay')::text, 'gives a new job');

-- ---- parts ----
select millrace.set_queue('par', '{"parts": 4}')
\gset
select t.put(t.at('600 s'), 'par', 40) || t.put(t.at('600 s'), 'par', 3, 5) as par
\gset
select is((select count(distinct j.lane) from millrace.job j where j.job_id = any ((:'par'::bigint[])[1:40])), 4::bigint, 'four lanes a priority');
select is(millrace.depth('par'), 43::bigint, 'depth over all parts');
select is((select count(*) from unnest(t.claim('pa1', t.at('601 s'), 'par', 100)) i where i = any ((:'par'::bigint[])[1:40])), 0::bigint, 'the lower number first, in whatever part');
select t.put(t.at('601 s'), 'par', 1, 0) as urgent
\gset
select is((select array_agg(distinct g.priority) from t.got g where g.tag = 'pa1'), array[5], 'one priority in one claim');
select is(t.claim('pa2', t.at('602 s'), 'par', 100), :'urgent'::bigint[], 'urgent ones first');
select millrace.set_queue('par', '{"parts": 2}')
\gset
select t.put(t.at('603 s'), 'par', 10) as par2
\gset
select is((select count(distinct j.lane) from millrace.job j where j.job_id = any (:'par2'::bigint[])), 2::bigint, 'fewer parts: new jobs go to two');
select is((select array_agg(i order by i) from unnest(t.claim_all('pa3', t.at('604 s'), 'par')) i),
          (select array_agg(i order by i) from unnest(:'par'::bigint[] || :'par2'::bigint[]) i where i <> all (t.ids('pa1'))), 'and all are delivered, each once');
select millrace.set_queue('par', '{"parts": 8}')
\gset
select t.put(t.at('605 s'), 'par', 80) as par3
\gset
select is((select count(distinct j.lane) from millrace.job j where j.job_id = any (:'par3'::bigint[])), 8::bigint, 'more parts');
select is((select array_agg(i order by i) from unnest(t.claim_all('pa4', t.at('606 s'), 'par')) i), :'par3'::bigint[], 'are delivered');
select is((select bool_and(o.sorted) from (select g.lease, array_agg(g.id order by g.ord) = array_agg(g.id order by g.id) as sorted from t.got g where g.tag = 'pa4' group by g.lease) o), true, 'each part in order');
select millrace.release_at(t.at('607 s'), l, null) from (select distinct g.lease as l from t.got g where g.tag = 'pa4') g
\g /dev/null
select is((select array_agg(i order by i) from unnest(t.claim_all('pa5', t.at('608 s'), 'par')) i), :'par3'::bigint[], 'released ones find a part again');
select is(millrace.depth('par'), 0::bigint, 'none is left');

-- ---- retries: what set_retry made, and nothing else ----
select is((select count(*) from millrace.retries), 0::bigint, 'no policy at first');
select millrace.set_retry('letter', 5, '10 seconds', 3, '10 minutes', 0.25)
\g /dev/null
select millrace.set_retry('plain')
\g /dev/null
select is(array(select r::text from millrace.retries r order by r.kind),
          array['(letter,5,00:00:10,3,00:10:00,0.25)', '(plain,3,00:00:02,2,01:00:00,0.5)'], 'retries lists the policies');

select * from finish();
