-- SPDX-License-Identifier: PostgreSQL
-- What pages look at: overview, history, lists, stories of queues, the system, metrics; and enqueue_once and claim_json.
\ir lib/helpers.psql
select 'holder in ' || current_database() as prepared      -- the name is one of the whole server
\gset
select no_plan();

-- The ids of a page, in order; and of all pages, with how many there were.
create function t.page(p_now timestamptz, p_filter jsonb)
returns bigint[]
language sql
as $$
  select array(select (j.job ->> 'id')::bigint from jsonb_array_elements(millrace.list_jobs_page(p_now, p_filter) -> 'jobs') with ordinality j(job, ord) order by j.ord)
$$;
create function t.pages(p_now timestamptz, p_filter jsonb, out ids bigint[], out n int, out looked bigint)
language plpgsql
as $$
declare
  v_page jsonb;
begin
  ids := '{}';
  n := 0;
  looked := 0;
  loop
    v_page := millrace.list_jobs_page(p_now, p_filter);
    n := n + 1;
    looked := looked + (v_page ->> 'looked_at')::int;
    ids := ids || array(select (j.job ->> 'id')::bigint from jsonb_array_elements(v_page -> 'jobs') with ordinality j(job, ord) order by j.ord);
    if (v_page ->> 'next' is null) <> (v_page ->> 'complete')::boolean then
      raise exception 'next and complete do not agree: %', v_page;
    end if;
    exit when v_page ->> 'next' is null;
    if n > 1000 then
      raise exception 'no end of pages';
    end if;
    p_filter := p_filter || jsonb_build_object('after', v_page ->> 'next');
  end loop;
end $$;
-- What the view says, newest position first: the order of lists.
create function t.view_ids(p_where text)
returns bigint[]
language plpgsql
as $$
declare
  v_ids bigint[];
begin
  execute format('select coalesce(array_agg(j.id order by j.id), ''{}'') from millrace.jobs j where %s', p_where) into v_ids;
  return v_ids;
end $$;
create function t.sorted(p_ids bigint[])
returns bigint[]
language sql
as $$
  select array(select i from unnest(p_ids) i order by i)
$$;

-- ---- nothing there ----
select is(millrace.overview_at(t.at('0')) -> 'queues', '[]', 'overview of no queues');
select is(millrace.list_jobs_page(t.at('0'), '{}'), '{"jobs": [], "next": null, "complete": true, "looked_at": 0}', 'a page of no jobs');
select is(millrace.list_dead('{}'), '{"jobs": [], "next": null, "complete": true, "looked_at": 0}', 'a page of no dead letters');
select is(millrace.dead_groups(), '{"groups": [], "complete": true}', 'groups of no dead letters');
select is(millrace.list_batches('{}'), '{"next": null, "batches": [], "complete": true, "looked_at": 0}', 'a page of no batches');
select is(millrace.list_workers(), '{"workers": []}', 'no workers');
select is(millrace.list_schedules(), '{"schedules": []}', 'no schedules');
select is(jsonb_array_length(millrace.history_at(t.at('0'), null, 60) -> 'points'), 180, 'history of nothing has its points');
select is(millrace.claim_json('nowhere'), '{"jobs": [], "lease": null, "lease_until": null}', 'a claim of nothing');

-- ---- jobs of every status ----
select t.put(t.at('0'), 'mail', 70) as mail
\gset
select millrace.set_retry('k', 2, '1 hour', 1, '1 hour', 0);
select t.claim('done', t.at('1 second'), 'mail', 20);
select millrace.complete_at(t.at('3 seconds'), t.lease('done'), null, null);
select t.claim('mixed', t.at('4 seconds'), 'mail', 10, '1 day');
select millrace.fail_at(t.at('6 seconds'), t.lease('mixed'), (t.ids('mixed'))[1], 'no host "a" on port 17', null, false, null),
       millrace.fail_at(t.at('6 seconds'), t.lease('mixed'), (t.ids('mixed'))[2], 'no host "b" on port 18', null, false, null),
       millrace.fail_at(t.at('6 seconds'), t.lease('mixed'), (t.ids('mixed'))[3], 'try again', '1 hour', true, null),
       millrace.complete_at(t.at('6 seconds'), t.lease('mixed'), (t.ids('mixed'))[4:5], null);
select millrace.cancel_at(t.at('7 seconds'), (:'mail'::bigint[])[70], 'no need'), millrace.pause_job_at(t.at('7 seconds'), (:'mail'::bigint[])[69]);
select millrace.enqueue_at(t.at('8 seconds'), 'late', '{"n": 1}', 'mail', 50, t.at('1 day'), null, null, null, 't1', 'r1', null, null, null, null, null, null, null) as late
\gset
select millrace.enqueue_at(t.at('8 seconds'), 'tenant', '{"n": 1}', 'other', 10, null, null, null, null, 't1', 'r2', null, null, null, null, null, null, null) as tenant
\gset
select is(t.sorted((t.pages(t.at('9 seconds'), '{}')).ids), t.view_ids('true'), 'all jobs are listed, each once');
select is(t.sorted((t.pages(t.at('9 seconds'), '{"limit": 7}')).ids), t.view_ids('true'), 'in small pages, too');
select is(t.sorted((t.pages(t.at('9 seconds'), '{"limit": 1}')).ids), t.view_ids('true'), 'and one by one');
select is(t.sorted((t.pages(t.at('9 seconds'), jsonb_build_object('status', s, 'limit', 3))).ids), t.view_ids(format('j.status = %L', s)), format('those that are %s', s))
  from unnest('{scheduled,paused,waiting,available,running,completed,cancelled,expired,dead}'::text[]) s;
select is(t.sorted((t.pages(t.at('9 seconds'), jsonb_build_object('queue', 'mail', 'status', s, 'limit', 3))).ids), t.view_ids(format('j.queue = %L and j.status = %L', 'mail', s)), format('those of a queue that are %s', s))
  from unnest('{scheduled,paused,waiting,available,running,completed,cancelled,expired,dead}'::text[]) s;
select is((t.pages(t.at('9 seconds'), '{"queue": "other"}')).ids, array[:tenant]::bigint[], 'a queue');
select is((t.pages(t.at('9 seconds'), '{"tenant": "t1"}')).ids, array[:tenant, :late]::bigint[], 'a tenant');
select is((t.pages(t.at('9 seconds'), '{"kind": "late"}')).ids, array[:late]::bigint[], 'a kind');
select is((t.pages(t.at('9 seconds'), '{"ref": "r2"}')).ids, array[:tenant]::bigint[], 'a ref in the log');
select is((t.pages(t.at('9 seconds'), '{"ref": "r1"}')).ids, array[:late]::bigint[], 'a ref of a delayed job');
select is(t.sorted((t.pages(t.at('9 seconds'), '{"error": "host"}')).ids), (t.ids('mixed'))[1:2], 'a part of an error');
select is((t.pages(t.at('9 seconds'), '{"error": "again"}')).ids, (t.ids('mixed'))[3:3], 'an error of a job that is tried again');
select is((t.pages(t.at('9 seconds'), '{"id": 1}')).ids, '{1}', 'an id');
select is((t.pages(t.at('9 seconds'), '{"id": "1", "status": "dead"}')).ids, '{}', 'an id that is not dead');
select is(millrace.list_jobs_page(t.at('9 seconds'), jsonb_build_object('id', j.id)) -> 'jobs' -> 0,
          (select f.job from jsonb_array_elements(millrace.list_jobs_page(t.at('9 seconds'), '{"limit": 200}') -> 'jobs') f(job) where (f.job ->> 'id')::bigint = j.id),
          format('job %s (%s) looks the same by id and in the list', j.id, j.status))
  from millrace.jobs j
 where j.status <> 'cancelled';
-- Newest first.
select is((t.page(t.at('9 seconds'), '{"limit": 2}')), array[:tenant, :late]::bigint[], 'the newest come first');
select is((t.page(t.at('9 seconds'), '{"queue": "mail", "status": "completed", "limit": 3}')), array[(t.ids('mixed'))[5], (t.ids('mixed'))[4], (t.ids('done'))[20]], 'of a status, too');

-- ---- what is told of each job ----
select is(millrace.list_jobs_page(t.at('9 seconds'), '{"status": "completed", "queue": "mail", "limit": 1}') -> 'jobs' -> 0,
          jsonb_build_object('id', (t.ids('mixed'))[5], 'queue', 'mail', 'kind', 'k', 'status', 'completed', 'priority', 50, 'attempt', 1, 'max_attempts', 3,
                             'args', '{"i": 25}'::jsonb, 'source', 'sql', 'created_at', t.at('0'), 'run_at', t.at('0'), 'worker', 'w', 'claimed_at', t.at('4 seconds')),
          'a job in a claim that is still open has no finished_at');
select is(millrace.list_jobs_page(t.at('9 seconds'), '{"status": "cancelled"}') -> 'jobs' -> 0 ->> 'finished_at', to_jsonb(t.at('7 seconds')) #>> '{}', 'when a job was cancelled');
select millrace.enqueue_at(t.at('9 seconds'), 'large', jsonb_build_object('pad', repeat('x', 3000), 'n', null), 'large', 50, null, null, null, null, null, null, null, null, null,
                           jsonb_build_object('m', null), null, null, null) as large
\gset
select is((millrace.list_jobs_page(t.at('10 seconds'), '{"queue": "large"}') -> 'jobs' -> 0) - '{id,created_at,run_at}'::text[],
          '{"queue": "large", "kind": "large", "status": "available", "source": "sql", "priority": 50, "attempt": 1, "max_attempts": 3, "args_cut": true, "meta": {"m": null}}',
          'large args are left out, and nulls inside of meta are not');
select is(millrace.list_jobs_page(t.at('10 seconds'), jsonb_build_object('id', :large)) -> 'jobs' -> 0 -> 'args_cut', 'true', 'by id, too');

-- ---- expired, waiting, archived ----
select millrace.enqueue_at(t.at('10 seconds'), 'brief', '{}', 'brief', 50, null, null, null, null, null, null, null, null, '1 second', null, null, null, null) as brief
\gset
select millrace.enqueue_at(t.at('10 seconds'), 'behind', '{}', 'brief', 50, null, null, null, null, null, null, null, null, null, null, null, null, null,
                           p_depends_on => array[:brief]::bigint[]) as behind
\gset
select is(t.page(t.at('10 seconds'), '{"queue": "brief", "status": "available"}'), array[:brief]::bigint[], 'not expired yet');
select is(t.page(t.at('12 seconds'), '{"queue": "brief", "status": "available"}'), '{}', 'expired: no longer available');
select is(t.page(t.at('12 seconds'), '{"status": "expired"}'), array[:brief]::bigint[], 'but expired, before a cursor has passed it');
select is(t.page(t.at('12 seconds'), '{"status": "waiting"}'), array[:behind]::bigint[], 'one that waits for others');
select t.claim('none', t.at('12 seconds'), 'brief', 10);
select is(t.page(t.at('12 seconds'), '{"status": "expired"}'), array[:brief]::bigint[], 'and when a cursor has');
insert into millrace.archive (finished_at, keep_until, job_id, created_at, queue_id, lane, slot, attempt, attempts_limit, outcome, holder, claimed_at, job_kind, payload_args, job_ref)
select t.at('-2 days'), t.at('2 days'), -32 * g, t.at('-2 days'), t.qid('mail'), (t.qid('mail') << 12) + 1600, 3, 1, 3, (array['c', 'x', 'k'])[g]::"char", 'w', t.at('-2 days'), 'k', '{}', 'old'
  from generate_series(1, 3) g;
select is((t.pages(t.at('12 seconds'), '{"ref": "old"}')).ids, '{-32,-64,-96}', 'archived jobs');
select is(array(select (t.pages(t.at('12 seconds'), jsonb_build_object('ref', 'old', 'status', s))).ids from unnest('{completed,expired,cancelled}'::text[]) s), '{{-32},{-64},{-96}}',
          'archived jobs by their status');
select is((t.pages(t.at('12 seconds'), '{"ref": "old", "status": "running"}')).ids, '{}', 'none of them runs');
select is((t.pages(t.at('3 days'), '{"ref": "old"}')).ids, '{}', 'no longer than they are kept');
delete from millrace.archive;

-- ---- across segments, retries, parked leases ----
select setval('millrace.seg_seq', pg_sequence_last_value('millrace.seg_seq') + 1);
select millrace.rotate(t.at('20 seconds')), t.wait_sealed();
select t.put(t.at('20 seconds'), 'mail', 5) as later
\gset
select is((t.page(t.at('21 seconds'), '{"queue": "mail", "limit": 5}')), array(select i from unnest(:'later'::bigint[]) i order by i desc), 'the open segment first');
select is(t.sorted((t.pages(t.at('21 seconds'), '{"limit": 4}')).ids), t.view_ids('true'), 'then the others');
select millrace.promote(t.at('2 hours'), 100);
select is(t.page(t.at('2 hours'), '{"limit": 1}'), (t.ids('mixed'))[3:3], 'a job that is tried again is as new as that');
select is((t.pages(t.at('2 hours'), '{"error": "again"}')).ids, (t.ids('mixed'))[3:3], 'and is listed once');
select millrace.count_all(t.at('2 hours'));
select millrace.park(t.at('2 hours'), row(1, '3', t.at('0'), 0, false, 0, false, false)::millrace.segment);
select is((select count(*) from millrace.job j where j.slot = -1), 10::bigint, 'jobs of a long lease were parked');
select is(t.sorted((t.pages(t.at('2 hours'), '{"limit": 4}')).ids), t.view_ids('true'), 'and are still listed');
select is(t.sorted((t.pages(t.at('2 hours'), '{"status": "running"}')).ids), (t.ids('mixed'))[6:10], 'as running');
select is(t.sorted((t.pages(t.at('2 hours'), '{"status": "completed", "limit": 3}')).ids), t.view_ids($$j.status = 'completed'$$), 'the others as completed');
select millrace.purge_at(t.at('2 hours'), q) from millrace.queue q where q.queue_name = 'large';
select is(t.page(t.at('2 hours'), '{"queue": "large", "status": "cancelled"}'), array[:large]::bigint[], 'one that was purged is cancelled');

-- ---- dead letters ----
select is(array(select (j ->> 'id')::bigint from jsonb_array_elements(millrace.list_dead('{"queue": "mail"}') -> 'jobs') j), array[(t.ids('mixed'))[2], (t.ids('mixed'))[1]], 'dead letters of a queue');
select is((millrace.list_dead('{"limit": 1}') -> 'jobs' -> 0) - 'history' - 'bytes',
          jsonb_build_object('id', (t.ids('mixed'))[2], 'queue', 'mail', 'kind', 'k', 'cause', 'failed', 'error', 'no host "b" on port 18', 'attempt', 1, 'max_attempts', 3, 'lost', 0,
                             'args', '{"i": 22}'::jsonb, 'source', 'sql', 'created_at', t.at('0'), 'died_at', t.at('6 seconds')), 'a dead letter');
select is(millrace.list_dead(jsonb_build_object('limit', 1, 'after', millrace.list_dead('{"limit": 1}') ->> 'next')) -> 'jobs' -> 0 -> 'id', to_jsonb((t.ids('mixed'))[1]), 'the second page');
select is(millrace.list_dead(jsonb_build_object('queue', 'mail', 'limit', 1, 'after', millrace.list_dead('{"queue": "mail", "limit": 1}') ->> 'next')) -> 'jobs' -> 0 -> 'id', to_jsonb((t.ids('mixed'))[1]),
          'the second page of a queue');
select is(jsonb_array_length(millrace.list_dead('{"error": "port 17"}') -> 'jobs'), 1, 'by error');
select is(jsonb_array_length(millrace.list_dead('{"kind": "other"}') -> 'jobs'), 0, 'by kind');
select is(jsonb_array_length(millrace.list_dead('{"cause": "failed"}') -> 'jobs'), 2, 'by cause');
select is(jsonb_array_length(millrace.list_dead('{"cause": "poison"}') -> 'jobs'), 0, 'by another cause');
select is(millrace.dead_groups('mail'), jsonb_build_object('complete', true, 'groups', jsonb_build_array(jsonb_build_object('queue', 'mail', 'kind', 'k', 'error', 'no host # on port #', 'jobs', 2,
          'first_at', t.at('6 seconds'), 'last_at', t.at('6 seconds'), 'sample_id', (t.ids('mixed'))[2]))), 'grouped by what went wrong');
select is(millrace.dead_groups(), millrace.dead_groups('mail'), 'in all queues');
select is(millrace.error_shape($$row '17' of "t", job 0d9bb9e6-90a9-4c1a-9a53-7f3f6c1f4fb1 failed 3.5 times$$), 'row # of #, job # failed #.# times', 'the shape of an error');
select is(length(millrace.error_shape(repeat('x', 1000))), 200, 'is short');
select is(millrace.error_shape(null), null, 'an error that is not there has none');

-- ---- overview, totals ----
select t.claim('lost', t.at('2 hours'), 'mail', 3, '1 second', 'lost');
select millrace.rescue(t.at('2 hours 5 seconds'), 100);
select millrace.count_all(t.at('2 hours 6 seconds'));
create table t.overview as select millrace.overview_at(t.at('2 hours 7 seconds')) as o;
select is((select jsonb_agg(q ->> 'queue') from t.overview, jsonb_array_elements(o -> 'queues') q), '["brief", "large", "mail", "other"]', 'overview has the queues by name');
select is((select q - '{wait,run,message,oldest_seconds,avg_wait_seconds_1h,avg_run_seconds_1h}'::text[] from t.overview, jsonb_array_elements(o -> 'queues') q where q ->> 'queue' = 'mail'),
          '{"queue": "mail", "paused": false, "status": "OK", "available": 44, "running": 5, "scheduled": 2, "retrying": 0, "dead": 2, "completed_1h": 20, "failed_1h": 0, "claims_open": 1,
            "enqueued_total": 75, "completed_total": 20, "failed_total": 0, "retried_total": 0, "dead_total": 0, "rescued_total": 3, "cancelled_total": 0}', 'the figures of a queue');
select is((select q -> 'message' from t.overview, jsonb_array_elements(o -> 'queues') q where q ->> 'queue' = 'mail'), '"44 pending, oldest 7207.0 s"', 'and what health says');
select is((select q #> '{run}' from t.overview, jsonb_array_elements(o -> 'queues') q where q ->> 'queue' = 'mail'), '{"p50": 2, "p95": 5, "p99": 5}', 'percentiles: 20 jobs ran 2 s, three 5 s');
select is((select o -> 'totals' ->> 'enqueued_total' from t.overview), '79', 'sums; a delayed job that is cancelled comes into the log to be told there');
select is((select o #>> '{log,0,status}' from t.overview), 'OK', 'the log is well');
select millrace.complete_at(t.at('2 hours 8 seconds'), t.lease('mixed'), null, null);
select millrace.count_all(t.at('2 hours 9 seconds'));
select is((select array[q -> 'completed_total', q -> 'failed_total', q -> 'retried_total', q -> 'dead_total', q -> 'claims_open']
             from jsonb_array_elements(millrace.overview_at(t.at('2 hours 9 seconds')) -> 'queues') q where q ->> 'queue' = 'mail'),
          array['27', '3', '1', '2', '0']::jsonb[], 'a claim that has ended is in the totals');
select t.claim_all('rest', t.at('2 hours 10 seconds'), 'mail', '1 hour');
select millrace.count_all(t.at('2 hours 11 seconds'));
select is((select array[q -> 'available', q -> 'running', q -> 'cancelled_total'] from jsonb_array_elements(millrace.overview_at(t.at('2 hours 11 seconds')) -> 'queues') q where q ->> 'queue' = 'mail'),
          array['0', '44', '0']::jsonb[], 'a cancelled job counts with the claim that passed it');
select is(millrace.percentiles(array[3, 1, 2], array[1, 98, 1]), '{"p50": 1, "p95": 1, "p99": 2}', 'percentiles of weighted values');
select is(millrace.percentiles(array[7], array[1]), '{"p50": 7, "p95": 7, "p99": 7}', 'of one value');

-- ---- spreads ----
select is(cardinality(millrace.spread_bounds()), 62, 'a spread has bounds');
select is((millrace.spread_bounds())[1:5] || (millrace.spread_bounds())[62], array[100, 141, 200, 283, 400, 151850024999]::bigint[], 'from 100 us to 42 hours');
select is(millrace.spread_with('{}', '{50,100,140,150}', '{1,2,3,4}'), '{1,5,4}', 'jobs by how long they took');
select is(millrace.spread_with('{1,5,4}', '{250}', '{7}'), '{1,5,4,7}', 'and more of them');
select is(millrace.spread_with('{}', '{-5,9000000000000000000}', '{1,2}'), array[1]::bigint[] || array_fill(null::bigint, array[61]) || array[2]::bigint[], 'whatever was measured');
select is(millrace.spread_with('{}', '{}', '{}'), '{null}', 'of no jobs');
select is(millrace.spread_with(null, null, null), '{null}', 'of nothing');
select is(millrace.spread_sum('{1,null,3}', '{null,2,3,4}'), '{1,2,6,4}', 'the sum of two');
select is(array[millrace.spread_sum(null, '{1,2}'), millrace.spread_sum('{1,2}', '{}'), millrace.spread_sum('{1,2}', null)], '{{1,2},{1,2},{1,2}}', 'with nothing');
select is(millrace.spread_sum(null, null), '{}', 'of nothing at all');
select is(millrace.spread_rise('{5,null,7}', '{2,null,7}'), '{3,null,null}', 'what one has more');
select is(millrace.spread_rise('{5,1,7}', '{}'), '{5,1,7}', 'than nothing');
select is(millrace.spread_rise('{5,null,7}', '{2,1}'), null, 'where it has less, counts began anew');
select is(millrace.spread_percentiles('{null,100}'), '{"p50": 0.000119, "p95": 0.000139, "p99": 0.000141}', 'percentiles of one range');
select is(millrace.spread_percentiles('{100}'), '{"p50": 0.00005, "p95": 0.000095, "p99": 0.000099}', 'of the first one');
select is(millrace.spread_percentiles(array_fill(null::bigint, array[62]) || 3::bigint), '{"p50": 151850.024999, "p95": 151850.024999, "p99": 151850.024999}', 'of the last one');
select is(millrace.spread_percentiles(s), null, 'of nothing') from unnest(array['{}', '{null}', '{0,0}', null]) u(t) cross join lateral (select u.t::bigint[] as s) s;
-- Of ten thousand times from 1 ms to 10 s, evenly on a scale of powers: no percentile is more than a fifth off.
select ok((select bool_and(abs((p.found ->> p.name)::numeric / (0.001 * 10000 ^ p.share) - 1) < 0.2)
             from (select 'p50' as name, 0.5 as share union all select 'p95', 0.95 union all select 'p99', 0.99) s
            cross join lateral (select s.name, s.share, millrace.spread_percentiles((select millrace.spread_with('{}', array_agg((1000 * 10000 ^ (g / 10000.0))::bigint), array_agg(1)) from generate_series(1, 10000) g)) as found) p),
          'percentiles are at most a fifth off');

-- ---- history ----
select millrace.set_queue('flow', '{}');
update millrace.queue q set created_at = t.at('3 hours 1 second') where q.queue_name = 'flow';
-- As many jobs as were asked for, in as many claims as it takes: where one ends depends on what else runs on this server.
create function t.claim_n(p_tag text, p_now timestamptz, p_queue text, p_n int)
returns void
language plpgsql
as $$
declare
  v_left int := p_n;
begin
  while v_left > 0 loop
    insert into t.got
    select p_tag, p_n - v_left + row_number() over (), c.*
      from millrace.claim_at(p_now, p_queue, 'w', v_left, null, true) c;
    exit when not found;
    v_left := p_n - (select count(*) from t.got g where g.tag = p_tag);
  end loop;
end $$;
-- Ten, twenty ... fifty jobs, ten seconds apart, each with a round of maintain a few seconds later; some of them completed after two seconds.
create procedure t.flow(p_from timestamptz)
language plpgsql
as $$
begin
  for g in 0 .. 5 loop
    perform t.put(p_from + g * interval '10 seconds' + interval '2 seconds', 'flow', 10 * g);
    commit;
    perform t.claim_n('flow' || g, p_from + g * interval '10 seconds' + interval '3 seconds', 'flow', 5 * g + 1);
    commit;
    perform millrace.complete_at(p_from + g * interval '10 seconds' + interval '5 seconds', l.lease, null, null)
       from (select distinct c.lease from t.got c where c.tag = 'flow' || g) l;
    commit;
    perform millrace.maintain_at(p_from + g * interval '10 seconds' + interval '6 seconds');
    commit;
  end loop;
end $$;
call t.flow(t.at('3 hours'));
-- A percentile of jobs that all took that long, in a spread: so far through the range it is in.
create function t.spread_of(p_seconds double precision, p_share double precision = 0.5)
returns jsonb
language sql
as $$
  select to_jsonb(millrace.spread_value(millrace.spread_bounds(), width_bucket((p_seconds * 1e6)::bigint, millrace.spread_bounds()) + 1, p_share))
$$;
create table t.history as select millrace.history_at(t.at('3 hours 60 seconds'), 'flow', 1) as h;
select is((select h - 'points' from t.history), jsonb_build_object('queue', 'flow', 'from', t.at('3 hours'), 'to', t.at('3 hours 60 seconds'), 'step_seconds', 10), 'a minute of history');
select is((select array_agg((p -> 'enqueued')::numeric) from t.history, jsonb_array_elements(h -> 'points') p), array[0, 1, 2, 3, 4, 5]::numeric[], 'jobs a second that came');
select is((select array_agg((p -> 'completed')::numeric) from t.history, jsonb_array_elements(h -> 'points') p), array[0, 0.6, 1.1, 1.6, 2.1, 2.6]::numeric[], 'jobs a second that were completed');
select is((select array_agg((p -> 'available')::numeric) from t.history, jsonb_array_elements(h -> 'points') p), array[0, 4, 13, 27, 46, 70]::numeric[], 'what was left at the end of each step');
select is((select array_agg((p -> 'run_seconds')::numeric) from t.history, jsonb_array_elements(h -> 'points') p), array[null, 2, 2, 2, 2, 2]::numeric[], 'how long they ran');
select is((select array_agg(p -> 'run' -> 'p50') from t.history, jsonb_array_elements(h -> 'points') p), array[null, t.spread_of(2), t.spread_of(2), t.spread_of(2), t.spread_of(2), t.spread_of(2)],
          'half of them ran for that long or less');
select is((select p -> 'wait' from t.history, jsonb_array_elements(h -> 'points') with ordinality o(p, nth) where nth = 2), millrace.spread_percentiles(millrace.spread_with('{}', '{1000000}', '{6}')),
          'how long they waited: each a second');
-- In the second step a lease of an hour in another queue has come to its end.
select is((select array_agg(p -> 'run' -> 'p99') from jsonb_array_elements(millrace.history_at(t.at('3 hours 60 seconds'), null, 1) -> 'points') with ordinality o(p, nth) where nth <> 2),
          array[null, t.spread_of(2, 0.99), t.spread_of(2, 0.99), t.spread_of(2, 0.99), t.spread_of(2, 0.99)], 'percentiles of all queues together');
select ok((select (p -> 'run' ->> 'p50')::numeric between 3000 and 5000 and (p -> 'run' ->> 'p99')::numeric between 3000 and 5000 from (select millrace.history_at(t.at('3 hours 60 seconds'), null, 1) -> 'points' -> 1 as p) h), 'which counts with its 44 jobs');
begin;
update millrace.home h set installed_at = t.at('3 hours');
select millrace.overview_at(t.at('3 hours 60 seconds')) -> 'totals' as totals
\gset
rollback;
select ok((:'totals'::jsonb -> 'run' ->> 'p50')::numeric between 1.5 and 2.5, 'and of the last minute in the overview');
select is((select array_agg(k order by k) from jsonb_object_keys(:'totals'::jsonb -> 'wait') k), '{p50,p95,p99}', 'with how long they waited');
select ok((millrace.overview_at(t.at('3 hours 60 seconds')) #>> '{totals,run,p50}')::numeric between 1.5 and 2.5, 'or of what is known of it');
select ok(not millrace.overview_at(t.at('3 hours 7 seconds')) -> 'totals' ? 'run', 'not known where nobody looked before');
select ok(not millrace.overview_at(t.at('3 hours 3 minutes')) -> 'totals' ? 'run', 'of which there are none when nothing ended in it');
select ok(not millrace.overview_at(t.at('3 hours 30 minutes')) -> 'totals' ? 'run', 'or nobody looked');
select is((select array_agg(p -> 'at') from t.history, jsonb_array_elements(h -> 'points') p), (select array_agg(to_jsonb(t.at('3 hours') + g * interval '10 seconds')) from generate_series(1, 6) g), 'a point stands at the end of its step');
select is(millrace.history_at(t.at('3 hours 60 seconds'), null, 1) -> 'points' -> 5 -> 'enqueued', '5', 'of all queues together');
select is((millrace.history_at(t.at('3 hours 61 minutes'), 'flow', 60) -> 'points' -> 179) - 'at', '{}', 'nothing is known of times when nobody looked');
select is((millrace.history_at(t.at('3 hours 5 minutes'), 'flow', 1) -> 'points' -> 5) - 'at', '{"enqueued": 0, "completed": 0, "failed": 0, "available": 70, "running": 0, "retrying": 0, "dead": 0}', 'a quiet while is no gap');
select is(array(select (millrace.history_at(t.at('4 hours'), 'flow', m) ->> 'step_seconds')::int || ' ' || jsonb_array_length(millrace.history_at(t.at('4 hours'), 'flow', m) -> 'points') from unnest('{1,30,31,60,360}'::int[]) m),
          array['10 6', '10 180', '20 93', '20 180', '120 180'], 'steps and points');
-- A round of upkeep is a little late each time: a step without a pulse of its own is no step without jobs.
create function t.pulse(p_at interval, p_total bigint)
returns millrace.pulse
language sql
as $$
  select jsonb_populate_record(null::millrace.pulse, jsonb_build_object('taken_at', t.at('0') + p_at, 'fresh_total', p_total, 'done_total', 0, 'failed_total', 0, 'wait_total', 0,
                                                                        'run_total', 0, 'available', 7, 'aside', 0))
$$;
select is((select array_agg(millrace.history_point(t.at('0') + s.at, s.step, t.pulse(s.now, s.total), t.pulse(s.before, 100), false) -> 'enqueued' order by s.no)
             from (values (1, interval '20 s', 10, interval '10.5 s', 100, interval '10.5 s'), (2, '30 s', 10, '21 s', 205, '10.5 s'), (3, '10 min', 10, '595 s', 200, '2 min'),
                          (4, '10 min', 60, '595 s', 100, '533 s'), (5, '10 min', 10, '2 min', 100, '2 min')) s(no, at, step, now, total, before)),
          array[null, '10', '10', '0', '0']::jsonb[], 'rates where pulses are late, and where some were left out');
select is(millrace.history_point(t.at('20 s'), 10, t.pulse('10.5 s', 100), t.pulse('10.5 s', 100), false) - 'at', '{"available": 7}', 'what is there is known');

-- ---- one queue ----
create table t.story as select millrace.queue_story_at(t.at('3 hours 62 seconds'), 'flow') as s;
select is((select array_agg(k order by k) from t.story, jsonb_object_keys(s) k), '{lanes,oldest,paused,queue,settings,stats,workers}', 'a queue has a story');
select is((select s #- '{lanes,0,lane}' -> 'lanes' from t.story), '[{"part": 0, "priority": 50, "available": 70, "running": 0, "oldest_seconds": 20}]', 'its lanes');
select is((select jsonb_array_length(s -> 'oldest') from t.story), 20, 'its oldest jobs');
select is((select array_agg(distinct j ->> 'run_at') from t.story, jsonb_array_elements(s -> 'oldest') o(j)), array[to_jsonb(t.at('3 hours 42 seconds')) #>> '{}'], 'which wait for longest');
select is((select s #> '{stats,available}' from t.story), '70', 'its figures');
select is((select s #>> '{settings,max_attempts}' from t.story), '3', 'its settings');
select is((select s #> '{workers,0,worker}' from t.story), '"w"', 'its workers');

-- ---- the system ----
select t.wait_sealed();
create table t.system as select millrace.system_at(t.at('3 hours 63 seconds')) as s;
select is((select array_agg(k order by k) from t.system, jsonb_object_keys(s) k),
          '{at,connections,database_bytes,disk,maintain,millrace_bytes,schema_version,segments,server_version,settings,version,xmin}', 'the system has its keys');
select is((select array_agg(g ->> 'state' order by (g ->> 'seg')::int) from t.system, jsonb_array_elements(s -> 'segments') g), '{sealed,sealed,open}', 'its segments');
select is((select array_agg((g ->> 'jobs')::int order by (g ->> 'seg')::int) from t.system, jsonb_array_elements(s -> 'segments') g), '{0,83,191}', 'and the jobs that were counted in them');
select ok((select (s ->> 'millrace_bytes')::bigint between 1000000 and (s ->> 'database_bytes')::bigint from t.system), 'sizes');
select is((select s #> '{maintain,last_at}' from t.system), to_jsonb(t.at('3 hours 56 seconds')), 'when maintain ran');
select is((select array_agg(d ->> 'duty') from t.system, jsonb_array_elements(s -> 'maintain' -> 'duties') d), (select array_agg(m.duty order by m.duty) from millrace.maintain_at(t.at('3 hours 64 seconds')) m), 'all duties');
select is((select d -> 'total' from jsonb_array_elements(millrace.system_at(t.at('3 hours 65 seconds')) #> '{maintain,duties}') d where d ->> 'duty' = 'retire'), '0', 'nothing was retired');
select is((select array_agg(m.k order by m.k) from jsonb_object_keys(millrace.metrics_at(t.at('3 hours 65 seconds'))) m(k)),
          '{at,cache_keys,data_directory,database_bytes,limiter_keys,lock_leases_total,locks_held,maintain_seconds,pinned_segments,queues,removed_total,segments,toolbox_bytes,xmin_age_seconds}', 'metrics have their keys');
select is(millrace.metrics_at(t.at('3 hours 65 seconds')) -> 'segments', '{"open": 1, "closed": 0, "sealed": 2, "leaving": 0, "free": 13}', 'segments by state');
select is(millrace.metrics_at(t.at('3 hours 65 seconds')) -> 'pinned_segments', '{}', 'a segment that retention keeps is not pinned');
select is(millrace.metrics_at(t.at('2 days')) -> 'pinned_segments' -> 'other', '2', 'one past it is, by the queues that need it');
select ok(not millrace.metrics_at(t.at('3 hours 65 seconds')) -> 'queues' -> 0 ? 'wait', 'metrics have no percentiles');

-- Of the toolbox.
create function t.toolbox(p_at interval)
returns text
language sql
as $$
  select string_agg(coalesce(m -> k ->> 'valid' || '/' || (m -> k ->> 'expired'), m ->> k), ' ' order by n)
    from millrace.metrics_at(t.at(p_at)) m
   cross join unnest(array['cache_keys', 'limiter_keys', 'locks_held', 'lock_leases_total']) with ordinality k(k, n)
$$;
select is(t.toolbox('3 hours'), '0/0 0 0 0', 'an empty toolbox');
select millrace.cache_set_at(t.at('3 hours'), 'k' || i % 5, '1', i % 5 * interval '1 minute' + interval '30 seconds') from generate_series(1, 20) i;
select millrace.rate_limit_at(t.at('3 hours'), 'tenant' || i % 7, 100, p.per::interval, 1) from generate_series(1, 21) i, unnest(array['1 minute', '1 day']) p(per);
select millrace.lock_lease_at(t.at('3 hours') + i * interval '1 second', 'lock' || i % 3, 'me' || i % 3, '1 minute') from generate_series(1, 30) i;
select millrace.unlock_lease_at(t.at('3 hours 31 seconds'), 'lock1', 'me1');
select is(t.toolbox('3 hours 32 seconds'), '4/1 14 2 3', 'keys with and without a value, keys of each length of period, locks that are held, leases');
select is(t.toolbox('3 hours 2 minutes'), '3/2 14 0 3', 'time goes by');
select is((select array_agg(b.key || ' ' || (b.value::bigint > 0) order by b.key) from jsonb_each_text(millrace.metrics_at(t.at('3 hours')) -> 'toolbox_bytes') b),
          '{cache true,limiter true,locks true}', 'bytes of each part');
select millrace.rate_limit_at(t.at('3 hours'), 'many' || i, 100, '1 minute', 1) from generate_series(1, 1200) i;
select millrace.lock_lease_at(t.at('3 hours 1 second'), 'many' || i, 'me', '1 minute') from generate_series(1, 1200) i;
select millrace.lock_lease_at(t.at('3 hours 1 second'), 'lock1', 'me1', '1 minute');
select is(t.toolbox('3 hours 5 seconds'), '5/0 1000 1000 1204', 'keys and locks are counted up to a thousand');
begin;
create table t.held (n int);
prepare transaction :'prepared';
select ok(exists (select from jsonb_array_elements(millrace.system() -> 'xmin') h where h ->> 'what' = 'prepared transaction' and h ->> 'query' = :'prepared'), 'a prepared transaction holds dead rows');
rollback prepared :'prepared';

-- ---- rounds of maintain ----
select is((select count(*) from millrace.upkeep_round r where r.ended_at between t.at('3 hours') and t.at('3 hours 59 seconds')), 6::bigint, 'rounds that did something are written down');
select millrace.round_add(t.at('5 hours'), jsonb_build_object('rotate', jsonb_build_object('last_at', t.at('5 hours'), 'done', 0)), '{}');
select is(millrace.rounds_last() -> 'rotate' -> 'last_at', to_jsonb(t.at('5 hours')), 'the first one, whatever it did');
select millrace.round_add(t.at('5 hours 2 seconds'), jsonb_build_object('rotate', jsonb_build_object('last_at', t.at('5 hours 2 seconds'), 'done', 0)), millrace.rounds_last());
select is(millrace.rounds_last() -> 'rotate' -> 'last_at', to_jsonb(t.at('5 hours')), 'one that found nothing to do is not');
select millrace.round_add(t.at('5 hours 3 seconds'), jsonb_build_object('rotate', jsonb_build_object('last_at', t.at('5 hours 3 seconds'), 'done', 1)), millrace.rounds_last());
select is(millrace.rounds_last() -> 'rotate' -> 'last_at', to_jsonb(t.at('5 hours 3 seconds')), 'one that did something is');
select millrace.round_add(t.at('5 hours 13 seconds'), jsonb_build_object('rotate', jsonb_build_object('last_at', t.at('5 hours 13 seconds'), 'done', 0)), millrace.rounds_last());
select is(millrace.rounds_last() -> 'rotate' -> 'last_at', to_jsonb(t.at('5 hours 13 seconds')), 'and any once in ten seconds');
select is(millrace.round_duty(t.at('6 hours'), 'dead', 7, '5 milliseconds', '{"dead": {"total": 10}}'), jsonb_build_object('dead', jsonb_build_object('last_at', t.at('6 hours'), 'ms', 5, 'done', 7, 'total', 17)), 'totals go on');
select is(millrace.round_duty(t.at('6 hours'), 'dead', null, '5 milliseconds', '{"dead": {"total": 10}}'), '{"dead": {"total": 10}}', 'a duty that was not due leaves what is known');

-- ---- schedules, batches, workers ----
select millrace.schedule_at(t.at('5 hours'), 'nightly', '0 2 * * *', 'k', '{"n": null}', 'reports', 'UTC', 'last', true, 50), millrace.schedule_at(t.at('5 hours'), 'off', '0 3 * * *', 'k', '{}', 'reports', 'UTC', 'last', false, 50);
select is((select jsonb_agg(jsonb_build_array(s -> 'name', s -> 'active', s -> 'args', s -> 'next')) from jsonb_array_elements(millrace.list_schedules_at(t.at('5 hours')) -> 'schedules') s),
          jsonb_build_array(jsonb_build_array('nightly', true, '{"n": null}'::jsonb, jsonb_build_array(t.at('26 hours'), t.at('50 hours'), t.at('74 hours'))), jsonb_build_array('off', false, '{}'::jsonb, '[]'::jsonb)),
          'schedules and when they fire');
select is(millrace.schedule_story('nightly') - 'set_at', jsonb_build_object('name', 'nightly', 'cron', '0 2 * * *', 'timezone', 'UTC', 'kind', 'k', 'args', '{"n": null}'::jsonb, 'queue', 'reports', 'priority', 50,
          'catch_up', 'last', 'active', true, 'next_at', t.at('26 hours'), 'next', (select jsonb_agg(t.at('26 hours') + g * interval '24 hours') from generate_series(0, 4) g)), 'the story of a schedule');
select is(millrace.schedule_story('off') -> 'next', '[]', 'one that is off has no next times');
select millrace.schedule('big', '@daily', 'k', jsonb_build_object('text', repeat('x', 5000)), 'reports');
select is((select s -> 'args_cut' from jsonb_array_elements(millrace.list_schedules() -> 'schedules') s where s ->> 'name' = 'big'), 'true', 'in the list large args are left out');
select is(length(millrace.schedule_story('big') #>> '{args,text}'), 5000, 'in its story they are not');
select millrace.unschedule('big');
select t.refused(format('select millrace.schedule_story(%s)', n), 'MR003', 'does not exist') from unnest(array['''nowhere''', 'null', '''''']) n;
select is(millrace.cron_times('0 9 * * MON', '2030-01-01 00:00+00', 'Europe/Berlin', 2), '{"cron": "0 9 * * MON", "timezone": "Europe/Berlin", "next": ["2030-01-07T08:00:00+00:00", "2030-01-14T08:00:00+00:00"]}', 'when an expression would fire');
select is(jsonb_array_length(millrace.cron_times('@daily') -> 'next'), 5, 'five times');
select is(jsonb_array_length(millrace.cron_times('0 0 29 2 *', '2030-01-01', times => 100) -> 'next'), 100, 'up to a hundred');
select t.refused(format('select millrace.cron_times(%s)', a), '22023', m)
  from (values ('''0 2 * *''', ''), ('null', ''), ('''0 0 31 2 *''', 'never fires'), ('''@daily'', timezone => ''Nowhere/Land''', 'does not exist'), ('''@daily'', timezone => null', 'does not exist'),
               ('''@daily'', null', 'after must not be null'), ('''@daily'', ''infinity''', 'finite'), ('''@daily'', times => 0', 'times'), ('''@daily'', times => 101', 'times'), ('''@daily'', times => null', 'times')) b(a, m);
select millrace.batch_begin(label => 'first') as b1, millrace.batch_begin(label => 'second') as b2
\gset
select millrace.batch_seal(:b1), millrace.batches_fold(now(), 1000);
select is(array(select (b ->> 'id')::bigint from jsonb_array_elements(millrace.list_batches() -> 'batches') b), array[:b2, :b1]::bigint[], 'batches, newest first');
select is(millrace.list_batches('{"status": "open"}') -> 'batches' -> 0, millrace.batch(:b2), 'as batch tells them');
select is(array(select (b ->> 'id')::bigint from jsonb_array_elements(millrace.list_batches('{"label": "firs"}') -> 'batches') b), array[:b1]::bigint[], 'by label');
select is(millrace.list_batches(jsonb_build_object('limit', 1, 'after', millrace.list_batches('{"limit": 1}') ->> 'next')) -> 'batches' -> 0 -> 'id', to_jsonb(:b1::bigint), 'the second page of batches');
select is((select array_agg(w ->> 'worker' order by w ->> 'worker') from jsonb_array_elements(millrace.list_workers() -> 'workers') w where w ->> 'queue' = 'flow'), array['w'], 'workers');

-- ---- claim_json ----
select millrace.enqueue_at(t.at('5 hours'), 'bytes', '{"a": null}', 'json', 50, null, null, null, null, 't', 'r', 5, '1 minute', null, '{"m": 1}', '\x00ff', decode(repeat('ab', 100), 'hex'), null) as bytes
\gset
create table t.json as select millrace.claim_json_at(t.at('5 hours 1 second'), 'json', 'w', 10, '1 minute', true) as c;
select is((select c -> 'jobs' from t.json), jsonb_build_array(jsonb_build_object('id', :bytes, 'attempt', 1, 'max_attempts', 5, 'kind', 'bytes', 'args', '{"a": null}'::jsonb, 'meta', '{"m": 1}'::jsonb, 'tenant', 't',
          'ref', 'r', 'priority', 50, 'created_at', t.at('5 hours'), 'timeout', '00:01:00', 'state', 'AP8=', 'blob', translate(encode(decode(repeat('ab', 100), 'hex'), 'base64'), E'\n', ''))), 'a claimed job');
select is((select c -> 'lease_until' from t.json), to_jsonb(t.at('5 hours 61 seconds')), 'and until when');
select is((select millrace.complete_at(t.at('5 hours 2 seconds'), c ->> 'lease', null, null) from t.json), 1, 'its lease is good');
select millrace.set_queue('json', '{"concurrency": 1}'), millrace.enqueue('k', queue => 'json'), millrace.enqueue('k', queue => 'json', state => '\x01');
select is(jsonb_array_length(millrace.claim_json('json', max_jobs => 5, with_state => false) -> 'jobs'), 1, 'a limit');
select is(millrace.claim_json('json'), '{"jobs": [], "lease": null, "limited": "concurrency", "lease_until": null}', 'that leaves none');
select is((millrace.claim_json('nowhere', null, 1, null, null)) -> 'jobs', '[]', 'with_state null is true');

-- ---- state and blob in a job's story ----
create function t.payload(p_state bytea, p_blob bytea)
returns jsonb
language sql
as $$
  select s || '{}' from millrace.job(millrace.enqueue('payload', queue => 'payload', state => p_state, blob => p_blob)) j
   cross join lateral (select jsonb_object_agg(e.key, e.value) as s from jsonb_each(j) e where e.key in ('state', 'blob')) s
$$;
select is(millrace.job(:bytes) -> 'state', '{"bytes": 2, "cut": false, "format": "hex", "value": "00ff"}', 'state that is no text is shown as hex');
select is(millrace.job(:bytes) -> 'blob' ->> 'value', repeat('ab', 100), 'and so is blob');
select is(t.payload('{"b": [1, 12345678901234567890], "a": null}', ''), '{"state": {"bytes": 43, "cut": false, "format": "json", "value": {"a": null, "b": [1, 12345678901234567890]}},
                                                                         "blob": {"bytes": 0, "cut": false, "format": "text", "value": ""}}', 'JSON as JSON, and nothing as an empty text');
select is(t.payload(convert_to('naïve', 'UTF8'), '{"a":'), '{"state": {"bytes": 6, "cut": false, "format": "text", "value": "naïve"}, "blob": {"bytes": 5, "cut": false, "format": "text", "value": "{\"a\":"}}', 'text as text');
select is(t.payload(null, null), null, 'none is left out');
select is(t.payload(convert_to('"\u0000"', 'UTF8'), convert_to(repeat('[', 10000), 'UTF8')) #- '{blob,value}', '{"state": {"bytes": 8, "cut": false, "format": "text", "value": "\"\\u0000\""}, "blob": {"bytes": 10000, "cut": false, "format": "text"}}',
          'JSON that cannot be kept as such is text');
select is(jsonb_set(t.payload(convert_to(repeat('é', 100000), 'UTF8'), convert_to('x' || repeat('é', 100000), 'UTF8')), '{state,value}', '0') #- '{blob,value}', '{"state": {"bytes": 200000, "cut": true, "format": "text", "value": 0}, "blob": {"bytes": 200001, "cut": true, "format": "text"}}',
          'of a large one the beginning is shown');
select is((select array_agg(length(p.part ->> 'value') order by p.key) from jsonb_each(t.payload(convert_to(repeat('é', 100000), 'UTF8'), convert_to('x' || repeat('é', 100000), 'UTF8'))) p(key, part)), array[8192, 8191], 'whole characters of it');
select is((select array[p ->> 'bytes', p ->> 'format', length(p ->> 'value')::text] from (select t.payload(null, decode(repeat('00ff', 50000), 'hex')) -> 'blob' as p) b), array['100000', 'hex', '32768'], 'and so of bytes');
select is(t.payload(convert_to('[' || repeat('1,', 9000) || '1]', 'UTF8'), null) #>> '{state,format}', 'text', 'JSON that is cut is none');
-- Where it is: delayed, dead, changed by its worker, in the archive.
select millrace.enqueue('k', queue => 'where', state => 'one', blob => 'body', delay => '1 day') as late, millrace.enqueue('k', queue => 'where', state => 'one', blob => 'body') as now
\gset
select is((millrace.job(:late) -> 'state' ->> 'value') || (millrace.job(:late) -> 'blob' ->> 'value'), 'onebody', 'of a delayed job');
select millrace.fail(c.lease, c.id, 'e', interval '1 day', true, 'two') from millrace.claim('where', 'w') c;
select is(millrace.job(:now) -> 'state' ->> 'value', 'two', 'as its worker left it');
select millrace.run_now(:now);
select millrace.fail(c.lease, c.id, 'e', null, false, 'three') from millrace.claim('where', 'w') c;
select is((millrace.job(:now) ->> 'status') || ' ' || (millrace.job(:now) -> 'state' ->> 'value') || ' ' || (millrace.job(:now) -> 'blob' ->> 'value'), 'dead three body', 'of a dead letter');

-- ---- enqueue_once ----
select millrace.enqueue_once_at(t.at('6 hours'), 'key', '[{"kind": "k", "queue": "once", "args": {"b": 1, "a": 2}}, {"kind": "k", "queue": "once"}]') as once
\gset
select is(:'once'::jsonb ->> 'again', 'false', 'the first time');
select is(jsonb_array_length(:'once'::jsonb -> 'ids'), 2, 'an id for each job');
select is(millrace.enqueue_once_at(t.at('7 hours'), 'key', '[{"queue": "once", "kind": "k", "args": {"a": 2, "b": 1}}, {"kind": "k", "queue": "once"}]'), :'once'::jsonb || '{"again": true}', 'the second time: the same ids');
select t.refused($$ select millrace.enqueue_once_at(t.at('7 hours'), 'key', '[{"kind": "k", "queue": "once"}]') $$, 'MR005', 'was used for other jobs');
select is(millrace.depth('once'), 2::bigint, 'two jobs in all');
select is(millrace.enqueue_once_at(t.at('7 hours'), 'one', '{"kind": "k", "queue": "once"}') -> 'ids', millrace.enqueue_once_at(t.at('7 hours'), 'one', '[{"kind": "k", "queue": "once"}]') -> 'ids', 'one object is an array of one');
select is(millrace.enqueue_once_at(t.at('7 hours'), 'none', '[]'), '{"ids": [], "again": false}', 'an empty array');
select is(millrace.enqueue_once_at(t.at('7 hours'), 'none', '[]'), '{"ids": [], "again": true}', 'is remembered, too');
select is(millrace.enqueue_once_at(t.at('29 hours'), 'key', '[{"queue": "once", "kind": "k", "args": {"a": 2, "b": 1}}, {"kind": "k", "queue": "once"}]') -> 'again', 'true', 'for a day');
select is(millrace.enqueue_once_at(t.at('31 hours'), 'key', '[{"kind": "k", "queue": "once"}]') -> 'again', 'false', 'and no longer');
insert into millrace.once_key (slot, made_at, once_name, jobs_hash, job_ids)
select (date_part('epoch', t.at('6 hours'))::bigint / 21600) % 6, t.at('6 hours'), 'many ' || g, '\x00', '{}' from generate_series(1, 3000) g;
select millrace.clean(t.at('32 hours'));
select is((select count(*) from millrace.once_key o where o.made_at < t.at('29 hours')), 0::bigint, 'old keys go with their leaf');
select is((select count(*) from millrace.once_key o where o.once_name = 'key'), 1::bigint, 'new ones stay');
begin;
select millrace.enqueue_once('rolled', '{"kind": "k", "queue": "rolled"}');
rollback;
select is(millrace.enqueue_once('rolled', '{"kind": "k", "queue": "rolled"}') -> 'again', 'false', 'a rollback takes the key back');

-- ---- many lanes, merged ----
-- Forty lanes with jobs in turns, then three hundred of one lane in a row, then all in turns again, backwards; each job in a transaction of its own.
create procedure t.mingle()
language plpgsql
as $$
begin
  for i in 1 .. 800 + 300 + 80 loop
    perform millrace.enqueue('mingled', queue => 'm' || case when i <= 800 then (i * 7) % 40 when i <= 1100 then 3 else 39 - i % 40 end, priority => 50 + i % 2, tenant => 'mingled');
    commit;
  end loop;
end $$;
call t.mingle();
select is((t.pages(now(), p.filter)).ids, (select array_agg(j.id order by j.id desc) from millrace.jobs j where j.tenant = 'mingled'), 'newest first over all lanes, each once: ' || p.filter::text)
  from unnest(array['{"tenant": "mingled", "limit": 7}', '{"tenant": "mingled", "limit": 50}', '{"tenant": "mingled", "limit": 200}', '{"tenant": "mingled", "status": "available", "limit": 33}']::jsonb[]) p(filter);
select is(t.page(now(), '{"limit": 20}'), (select array_agg(i order by i desc) from (select j.id as i from millrace.jobs j where j.tenant = 'mingled' order by 1 desc limit 20) j), 'the newest of all are those');
select ok((t.pages(now(), '{"kind": "no such"}')).looked >= 1180, 'pages say how many rows they have looked at: one alone as many as a tenth of a second allows');

-- ---- what is refused ----
select t.all_rows() as before
\gset
select t.refused(format('select millrace.%s(%L)', f, a), '22023', 'filter must be an object')
  from unnest('{list_jobs,list_dead,list_batches}'::text[]) f cross join unnest(array['[]', '1', '"x"', 'null']) a;
select t.refused(format('select millrace.%s(null)', f), '22023', 'filter must be an object, not null') from unnest('{list_jobs,list_dead,list_batches}'::text[]) f;
select t.refused(format('select millrace.%s(%L)', f, '{"colour": "red"}'), '22023', 'filter has the unknown key ''colour''') from unnest('{list_jobs,list_dead,list_batches}'::text[]) f;
select t.refused(format('select millrace.%s(%L)', f, jsonb_build_object('limit', l)), '22023', 'limit')
  from unnest('{list_jobs,list_dead,list_batches}'::text[]) f cross join unnest(array['0', '201', '-1', '1.5', 'null', '"x"', '[]', '99999999999999999999', 'true']::jsonb[]) l;
select t.refused(format('select millrace.list_jobs(%L)', jsonb_build_object('id', l)), '22023', 'id') from unnest(array['-1', '1.5', 'null', '"x"', '[]', '99999999999999999999', '1e400']::jsonb[]) l;
select t.refused(format('select millrace.list_jobs(%L)', jsonb_build_object(k, v)), '22023', k || ' of the filter must be a text')
  from unnest('{queue,status,kind,tenant,ref,error,after}'::text[]) k cross join unnest(array['1', 'null', '[]', '{}', 'false']::jsonb[]) v;
select t.refused(format('select millrace.list_jobs(%L)', jsonb_build_object('kind', repeat('x', 2001))), '22023', 'kind of the filter is 2001 characters long');
select t.refused(format('select millrace.list_jobs(%L)', jsonb_build_object('status', s)), '22023', 'there is no status') from unnest(array['any', 'Running', '', 'failed']) s;
select t.refused($$ select millrace.list_batches('{"status": "dead"}') $$, '22023', 'there is no status ''dead'' of a batch');
select t.refused(format('select millrace.%s', c), 'MR003', 'nowhere')
  from unnest(array['list_jobs(''{"queue": "nowhere"}'')', 'list_dead(''{"queue": "nowhere"}'')', 'dead_groups(''nowhere'')', 'history(''nowhere'')', 'queue_story(''nowhere'')']) c;
select t.refused('select millrace.queue_story(null)', 'MR003', 'null');
select t.refused(format('select millrace.history(null, %s)', m), '22023', 'minutes must be from 1 to 360') from unnest('{0,-1,361,2147483647,"null"}'::text[]) m;
-- Cursors: of another filter, cut, made up.
select millrace.list_jobs('{"limit": 1}') ->> 'next' as cursor
\gset
select t.refused(format('select millrace.list_jobs(%L)', jsonb_build_object('after', c)), '22023', 'after is not a cursor of this filter')
  from unnest(array['', 'x', '====', 'AAAA', left(:'cursor', 20), :'cursor' || 'x', 'x' || :'cursor', E'\u00e9', 'W10', 'MQ', 'bnVsbA', repeat('A', 1999)]) c;
select t.refused(format('select millrace.list_jobs(%L)', jsonb_build_object('kind', 'k', 'after', :'cursor')), '22023', 'after is not a cursor of this filter', 'a cursor of another filter');
select t.refused(format('select millrace.list_dead(%L)', jsonb_build_object('after', millrace.page_cursor('{}', '{"id": "x"}'))), '22023', 'after is not a cursor', 'a place that is no number');
select t.refused(format('select millrace.list_jobs(%L)', jsonb_build_object('after', millrace.page_cursor('{}', p))), '22023', 'after is not a cursor', 'a made-up place: ' || p::text)
  from unnest(array['{"log": 1}', '{"log": {"seg": "x"}}', '{"log": {"xid": 1.5}}', '{"log": {"pos": 1e30}}', '{"delayed": {"id": []}}', '{"dead": "x"}', '{"archive": {"id": {}}}']::jsonb[]) p;
select lives_ok(format('select millrace.list_jobs(%L)', jsonb_build_object('after', millrace.page_cursor('{}', p))), 'a made-up place that looks like one: ' || p::text)
  from unnest(array['{}', '{"log": {"seg": -7}}', '{"log": {"seg": 2000000000, "xid": 5}}', '{"log": {"xid": -1}}', '{"log": {"seg": 999999999999}}', '{"log": {}, "delayed": true, "dead": {"id": -5}}', '{"other": 7}']::jsonb[]) p;
select is(millrace.list_jobs(jsonb_build_object('limit', 2, 'after', :'cursor')) -> 'jobs' -> 0, millrace.list_jobs('{"limit": 2}') -> 'jobs' -> 1, 'a page may have another size than the one before');
select t.refused(format('select millrace.enqueue_once(%L, %L)', k, '[]'), '22023', 'idempotency_key must have 1 to 255 characters') from unnest(array[null, '', repeat('x', 256)]) k;
select t.refused(format('select millrace.enqueue_once(%L, %L)', 'bad', j), '22023', 'job|kind') from unnest(array[null, '1', '"x"', 'null', '[1]', '[{"kind": 1, "colour": 2}]', '[{}]', '{}']) j;
select is(t.all_rows(), :'before', 'what is refused changes nothing');
select is(jsonb_array_length(millrace.enqueue_once(repeat('é', 255), '{"kind": "k"}') -> 'ids'), 1, 'a key of 255 characters');

-- In a read-only transaction readers read.
begin read only;
select lives_ok(format('select millrace.%s', c), 'read only: ' || c)
  from unnest(array['overview()', 'history()', 'list_jobs()', 'list_dead()', 'dead_groups()', 'queue_story(''mail'')', 'system()', 'metrics()', 'list_schedules()', 'list_batches()', 'list_workers()', 'schedule_story(''nightly'')',
               'cron_times(''@daily'')', 'job(' || :'bytes' || ')']) c;
commit;

select * from finish();
