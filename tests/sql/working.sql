-- SPDX-License-Identifier: PostgreSQL
-- Working: claim, complete, fail, requeue, release, finish, heartbeat, and leases that are lost.
\ir lib/helpers.psql
select no_plan();

-- The claim that a name of t.claim stands for.
create function t.row_of(p_tag text)
returns millrace.claim
language sql
as $$
  select k from millrace.claim k where k.token = t.token(p_tag)
$$;
create function t.status(p_id bigint)
returns text
language sql
as $$
  select string_agg(j.status, ',') from millrace.jobs j where j.id = p_id
$$;

-- ---- order ----
select t.put(t.at('0'), 'order', 2, 50) || t.put(t.at('0'), 'order', 2, 99) || t.put(t.at('0'), 'order', 2, 0) || t.put(t.at('0'), 'order', 2, 51) as o
\gset
select is(t.claim('o1', t.at('1 s'), 'order', 10), (:'o'::bigint[])[5:6], 'the lowest priority number first; one claim is of one priority');
select t.put(t.at('2 s'), 'order', 1, 0) as late
\gset
select is(t.claim('o2', t.at('3 s'), 'order', 1), :'late'::bigint[], 'a new job of a lower number goes before all that wait');
select is(t.claim('o3', t.at('4 s'), 'order', 10), (:'o'::bigint[])[1:2], 'then 50');
select is(t.claim('o4', t.at('4 s'), 'order', 1), (:'o'::bigint[])[7:7], 'then 51, one at a time');
select is(t.claim('o5', t.at('4 s'), 'order', 10), (:'o'::bigint[])[8:8], 'the rest of 51');
select is(t.claim('o6', t.at('4 s'), 'order', 10), (:'o'::bigint[])[3:4], 'then 99');
select is(t.claim('o7', t.at('4 s'), 'order', 10), '{}', 'then nothing');
select is((select count(distinct g.lease) from t.got g where g.tag like 'o_'), 6::bigint, 'a lease for each claim');
select is((select array_agg(distinct g.priority order by g.priority) from t.got g where g.tag like 'o_'), array[0, 50, 51, 99], 'priorities are returned');
select is(millrace.complete_many(array(select distinct g.lease from t.got g where g.tag like 'o_')), 9, 'complete_many finishes all leases');

-- ---- what claim returns ----
select millrace.enqueue_at(t.at('10 s'), 'k', '{}', 'ws', 50, null, null, null, null, null, null, null, null, null, null, '\x01', '\x02', null)
\gset
select is((select (c.state, c.blob)::text from millrace.claim_at(t.at('11 s'), 'ws', 'w', 1, null, false) c), (null::bytea, '\x02'::bytea)::text,
          'with_state => false leaves the state behind');

-- ---- fetch_state ----
select millrace.enqueue('k', queue => 'fs', state => '\x0011') as with_state, millrace.enqueue('k', queue => 'fs') as without, millrace.enqueue('k', queue => 'fs') as left_there
\gset
select min(c.lease) as fs_lease, bool_and(c.state is null) as fs_none, count(*) as fs_n from millrace.claim('fs', max_jobs => 2, with_state => false) c
\gset
select is((:'fs_n'::int, :'fs_none'::boolean), (2, true), 'two are claimed without state');
select is(millrace.fetch_state(:'fs_lease', :with_state), '\x0011'::bytea, 'fetch_state gets it later, byte for byte');
select is(millrace.fetch_state(:'fs_lease', :without), null, '... and nothing where there is none');
select t.refused(format('select millrace.fetch_state(%L, %s)', :'fs_lease', :left_there), 'MR003', '^job \d+ is not in lease ');
select t.refused(format('select millrace.fetch_state(%L, null)', :'fs_lease'), 'MR003', '^job null is not in lease ');
select t.refused(format('select millrace.fetch_state(%L, %s)', x, :with_state), 'MR001', '^lease .* is lost$', 'fetch_state of lease ' || x)
  from unnest(array['nonsense', '1.2.3.00000000-0000-0000-0000-000000000000']) x;
select is(millrace.complete(:'fs_lease', array[:with_state]), 1, 'one is completed');
select t.refused(format('select millrace.fetch_state(%L, %s)', :'fs_lease', :with_state), 'MR001', '^lease .* is lost$', 'a job that has ended');
select is(millrace.fetch_state(:'fs_lease', :without), null, '... the others of its lease are as before');
select is((select k.holder from millrace.claim k where k.lane >> 12 = (select q.queue_id from millrace.queue q where q.queue_name = 'ws')), 'w', 'the worker is kept');
select millrace.enqueue('k', queue => 'nameless')
\gset
select is((select count(*) from millrace.claim('nameless')), 1::bigint, 'claimed without a name');
select is((select w.worker from millrace.workers w where w.queue = 'nameless'), 'pid ' || pg_backend_pid(), 'the worker''s default name has the pid');
select millrace.set_queue('short', '{"lease": "5 seconds"}')
\gset
select t.put(t.at('0'), 'short', 2)
\gset
select t.claim('s1', t.at('0'), 'short'), t.claim('s2', t.at('0'), 'short', 1, '1 hour')
\gset
select is(array(select g.lease_until from t.got g where g.tag in ('s1', 's2') order by g.tag), array[t.at('5 s'), t.at('1 hour')], 'the lease is the queue''s, or the call''s');
select is(((millrace.heartbeat_at(t.at('4 s'), t.lease('s1'), null)).lease_until, (millrace.heartbeat_at(t.at('4 s'), t.lease('s2'), null)).lease_until)::text,
          (t.at('9 s'), t.at('1 hour 4 s'))::text, 'a heartbeat extends by what the lease was taken for');
select is(millrace.heartbeat_at(t.at('5 s'), t.lease('s1'), '10 minutes')::text, (t.at('605 s'), '{}'::bigint[])::text, 'or by what it is told');
select is((select count(*) from millrace.job_rows((t.ids('s1'))[1]) j), 1::bigint, 'a heartbeat does not touch the job');
select is(millrace.complete_at(t.at('6 s'), t.lease('s1'), null, null) + millrace.complete_at(t.at('6 s'), t.lease('s2'), null, null), 2, 'both complete');

-- ---- claim_batch: the lease once, then what claim returns ----
select millrace.enqueue('k' || i, jsonb_build_object('i', i), q, priority => 30, ref => case when i % 7 = 0 then 'r' || i end, max_attempts => i,
                        "timeout" => case when i % 5 = 0 then interval '3 s' end, state => case when i % 9 = 0 then '\x01'::bytea end,
                        blob => case when i % 20 = 0 then convert_to(repeat('b', 3000), 'UTF8') end)
  from unnest(array['one by one', 'as a batch', 'as small batches', 'without state']) q
 cross join generate_series(1, 60) i
\g /dev/null
create table t.rows_of (q text, ord serial, r millrace.claimed_job);
insert into t.rows_of (q, r) select 'one by one', c from millrace.claim('one by one', 'w', 100) c;
insert into t.rows_of (q, r) select 'as a batch', c from millrace.claim_batch('as a batch', 'w', 100) c;
insert into t.rows_of (q, r) select 'as small batches', c from millrace.claim_batch('as small batches', 'w', 4, '1 hour') c;
insert into t.rows_of (q, r) select 'without state', c from millrace.claim_batch('without state', 'w', 100, null, false) c;
create function t.jobs_of(p_queue text)
returns text[]
language sql
as $$
  select array_agg(((o.r).attempt, (o.r).max_attempts, (o.r).kind, (o.r).args, (o.r).meta, (o.r).state, (o.r).blob, (o.r).tenant, (o.r).ref, (o.r).source, (o.r).timeout)::text order by o.ord)
    from t.rows_of o
   where o.q = p_queue
     and (o.r).id is not null
$$;
select is(cardinality(t.jobs_of('one by one')), 60, 'claim returns a row for each job');
select is(t.jobs_of('as a batch'), t.jobs_of('one by one'), 'claim_batch returns the same jobs');
select is(t.jobs_of('as small batches'), (t.jobs_of('one by one'))[1:4], 'also where they are few');
select is((select count(*) from t.rows_of o where o.q = 'without state' and (o.r).state is not null), 0::bigint, 'with_state => false leaves the state behind');
select is((select array_agg(o.q order by o.ord) from t.rows_of o where (o.r).id is null), array['as a batch', 'as small batches', 'without state'], 'with one row more');
select is((select array_agg(((o.r).priority, (o.r).lease_until - (o.r).created_at, (o.r).kind)::text order by o.ord) from t.rows_of o where (o.r).id is null),
          array['(30,00:00:30,)', '(30,01:00:00,)', '(30,00:00:30,)'], 'which has the priority and how long the lease is');
select is((select bool_and(o.ord = (select min(f.ord) from t.rows_of f where f.q = o.q)) from t.rows_of o where (o.r).id is null), true, 'and comes first');
select is((select array_agg(millrace.complete((o.r).lease) order by o.ord) from t.rows_of o where (o.r).id is null), array[60, 4, 60], 'its lease completes the jobs');
select is((select count(*) from millrace.claim_batch('as a batch', 'w', 10)), 0::bigint, 'nothing left: no rows');
select is((select count(*) from millrace.claim_batch('no such queue')), 0::bigint, 'no such queue: no rows');
select throws_ok($$select millrace.claim_batch('as a batch', 'w', 0)$$, '22023', null, 'a bad argument is refused as by claim');
select is((select count(*) from millrace.claim_batch(null, null, 1, null, null)), 0::bigint, 'nulls are as in claim');

-- ---- claim_packs: claim_batch with the jobs of a row of the log together ----
create table t.seen (call text, ord bigserial, id bigint, j jsonb);
-- What claim_packs returns, job by job.
create function t.packs(p_call text, p_queue text, p_max int)
returns bigint
language sql
as $$
  with got as (
    select row_number() over () as ord, c.* from millrace.claim_packs(p_queue, 'w', p_max) c),
  kept as (
    insert into t.seen (call, id, j)
    select p_call, g.id + p.at - 1, to_jsonb(g) - '{id,lease,lease_until,priority,pack,args,ord}'::text[] || jsonb_build_object('args', p.args)
      from got g
     cross join lateral (select coalesce(u.at, 1) as at, coalesce(u.args, g.args) as args
                           from (select 1) one
                           left join unnest(g.pack) with ordinality u(args, at) on true) p
     where g.id is not null
     order by g.ord, p.at
    returning 1)
  select count(*) from got
$$;
select millrace.set_queue('packed', '{"lease": "1 hour"}'), millrace.set_queue('unpacked', '{"lease": "1 hour"}')
\gset
-- Packs of all sizes, rows of one job, a job with more than args; twice, so that claims are of two transactions.
create procedure t.pack(p_queue text)
language plpgsql
as $$
begin
  for i in 1 .. 2 loop
    perform millrace.enqueue_many('k', array(select jsonb_build_object('i', g) from generate_series(1, 100) g), p_queue);
    perform millrace.enqueue('one', '{"i": 1}', p_queue), millrace.enqueue('heavy', '{}', p_queue, state => '\x01', meta => '{"m": 1}');
    perform millrace.enqueue_many('k2', array['{"a": "\u20ac"}', '[]', '7', 'null', '{}']::jsonb[], p_queue);
    commit;
  end loop;
end $$;
call t.pack('packed');
call t.pack('unpacked');
-- They begin and end in the midst of packs.
-- working_alone.sql has no packs: a row for each job, and for each lease.
select cmp_ok((select sum(t.packs('packs', 'packed', n)) from unnest(array[1, 9, 40, 10, 17, 33, 100, 1000]) n),
              case when millrace.pack_size(array_fill('1'::jsonb, array[100]), 1) > 1 then '<' else '=' end,
              case when millrace.pack_size(array_fill('1'::jsonb, array[100]), 1) > 1 then 60 else 222 end::numeric, 'claim_packs returns few rows where there are packs');
insert into t.seen (call, id, j)
select 'batch', c.id, to_jsonb(c) - '{id,lease,lease_until,priority}'::text[]
  from unnest(array[5, 100, 3, 1000]) n
 cross join lateral (select b.*, row_number() over () as ord from millrace.claim_batch('unpacked', 'w', n) b) c
 where c.id is not null;
select is((select count(*) from t.seen s where s.call = 'packs'), 214::bigint, 'claim_packs returns every job');
select is((select array_agg(s.j - 'created_at' order by s.ord) from t.seen s where s.call = 'packs'),
          (select array_agg(s.j - '{created_at,ord}'::text[] order by s.ord) from t.seen s where s.call = 'batch'), 'each as claim_batch does, in the same order');
select is((select array_agg(s.id order by s.ord) from t.seen s where s.call = 'packs'),
          (select array_agg(i order by k.no, i.ord) from millrace.claim k cross join lateral unnest(coalesce(k.job_ids, k.positions)) with ordinality i(i, ord)
            where k.lane >> 12 = (select q.queue_id from millrace.queue q where q.queue_name = 'packed') and k.n > 0), 'with the ids that the claims have');
-- One job of a pack was moved off, so that the pack is rows with one block.
call t.pack('opened');
select millrace.pack_open(j.slot, array[j.job_id]) from millrace.job j where j.lane >> 12 = (select q.queue_id from millrace.queue q where q.queue_name = 'opened') and j.pack_n is not null order by j.pos limit 1
\g /dev/null
select t.packs('opened', 'opened', n) from unnest(array[3, 8, 20, 1000]) n
\g /dev/null
select is((select array_agg(s.j - 'created_at' order by s.ord) from t.seen s where s.call = 'opened'),
          (select array_agg(s.j - 'created_at' order by s.ord) from t.seen s where s.call = 'packs'), 'also where a pack was opened');
select is((select count(*) from millrace.claim_packs('packed', 'w', 10)), 0::bigint, 'nothing left: no rows');
select is((select count(*) from millrace.claim_packs('no such queue')), 0::bigint, 'no such queue: no rows');
select throws_ok($$select millrace.claim_packs('packed', 'w', 0)$$, '22023', null, 'a bad argument is refused as by claim');

-- ---- complete: whole, by subset, one by one ----
select t.put(t.at('0'), 'pieces', 20)
\gset
select t.claim('whole', t.at('20 s'), 'pieces', 5), t.claim('subset', t.at('20 s'), 'pieces', 5), t.claim('single', t.at('20 s'), 'pieces', 5), t.claim('turned', t.at('20 s'), 'pieces', 5)
\gset
select is(millrace.complete_at(t.at('23 s'), t.lease('whole'), null, null), 5, 'complete returns the number of jobs');
select is(millrace.complete_at(t.at('23 s'), t.lease('subset'), (t.ids('subset'))[2:3], null), 2, 'complete of a subset');
select is((select (k.open_n, k.done_n, k.status, k.finished_at, k.outcome)::text from t.row_of('subset') k), (3, 2, 'r', null::timestamptz, 'occoo')::text, 'the others stay open');
select is(array(select t.status(i) from unnest(t.ids('subset')) i), array['running', 'completed', 'completed', 'running', 'running'], 'and running');
select is(millrace.complete_at(t.at('23 s'), t.lease('subset'), null, null), 3, 'complete of what is still open');
select is(array(select millrace.complete_at(t.at('23 s'), t.lease('single'), array[i], null) from unnest(t.ids('single')) i), array[1, 1, 1, 1, 1], 'complete one by one');
select is(millrace.complete_at(t.at('23 s'), t.lease('turned'), (select array_agg(i order by i desc) from unnest(t.ids('turned')) i), null), 5, 'complete in another order');
select is((select count(distinct to_jsonb(k) - array['no', 'win_no', 'token', 'last_xid', 'last_pos', 'last_seg', 'total', 'win_lo', 'win_hi', 'positions'])
             from millrace.claim k
            where k.token in (t.token('whole'), t.token('subset'), t.token('single'), t.token('turned'))), 1::bigint,
          'a claim finished piece by piece ends like one finished whole, column by column');
select is((select (k.status, k.open_n, k.done_n, k.failed_n, k.run_us, k.finished_at, k.outcome)::text from t.row_of('single') k),
          ('d', 0, 5, 0, 15000000, t.at('23 s'), null::text)::text, 'done, and nothing else to tell');
-- The same with failures: one by one or in one call.
select t.put(t.at('0'), 'pieces', 6)
\gset
select t.claim('f1', t.at('30 s'), 'pieces', 3), t.claim('f2', t.at('30 s'), 'pieces', 3)
\gset
select millrace.complete_at(t.at('31 s'), t.lease('f1'), (t.ids('f1'))[1:1], null), millrace.fail_at(t.at('31 s'), t.lease('f1'), (t.ids('f1'))[2], 'e', '1 hour', true, null),
       millrace.release_at(t.at('31 s'), t.lease('f1'), (t.ids('f1'))[3:3])
\gset
select millrace.finish_at(t.at('31 s'), t.lease('f2'), jsonb_build_array(
  jsonb_build_object('id', (t.ids('f2'))[1], 'outcome', 'completed'), jsonb_build_object('id', (t.ids('f2'))[2], 'outcome', 'failed', 'error', 'e', 'retry_in', '1 hour'),
  jsonb_build_object('id', (t.ids('f2'))[3], 'outcome', 'released')))
\gset
select is((select count(distinct to_jsonb(k) - array['no', 'win_no', 'token', 'last_xid', 'last_pos', 'last_seg', 'total', 'win_lo', 'win_hi', 'positions'])
             from millrace.claim k
            where k.token in (t.token('f1'), t.token('f2'))), 1::bigint, 'the same with mixed outcomes');
select is((select (k.status, k.done_n, k.failed_n, k.outcome)::text from t.row_of('f1') k), ('d', 1, 1, 'cfr')::text, 'which are written down');
select is(millrace.complete(t.claim_lease, '{}'), 0, 'an empty list of ids completes nothing')
  from (select (select c.lease from millrace.claim_at(t.at('31 s'), 'pieces', 'w', 10, null, true) c limit 1) as claim_lease) t;

-- ---- fail, backoff, dead ----
select millrace.set_retry('exact', 4, '10 seconds', 3, '60 seconds', 0)
\gset
select millrace.enqueue_at(t.at('0'), 'exact', '{}', 'fail', 50, null, null, null, null, 'acme', 'r', null, '9 s', null, '{"m": 1}', '\x01', '\x02', 'src') as id
\gset
select t.claim('e1', t.at('100 s'), 'fail')
\gset
select is(millrace.fail_at(t.at('101 s'), t.lease('e1'), :id, 'first', null, true, '\x0102'), 'scheduled', 'a failed job is scheduled again');
select is((select (d.due_at, d.attempt, d.why, d.payload_state)::text from millrace.delayed d where d.job_id = :id), (t.at('111 s'), 2, 'r', '\x0102'::bytea)::text,
          'after base, as attempt 2, with the new state');
select is(t.status(:id), 'scheduled', 'its status is scheduled');
select is(t.duty(t.at('111 s'), 'promote'), 1::bigint, 'its time comes');
select t.claim('e2', t.at('112 s'), 'fail')
\gset
select is((select (g.attempt, g.max_attempts, g.args, g.meta, g.state, g.blob, g.tenant, g.ref, g.source, g.timeout, g.created_at)::text from t.got g where g.tag = 'e2'),
          (2, 4, '{}'::jsonb, '{"m": 1}'::jsonb, '\x0102'::bytea, '\x02'::bytea, 'acme', 'r', 'src', interval '9 s', t.at('0'))::text, 'a retry has every option of the job');
select is(millrace.fail_at(t.at('112 s'), t.lease('e2'), :id, 'second', null, true, null), 'scheduled', 'fails again');
select is((select (d.due_at, d.payload_state)::text from millrace.delayed d where d.job_id = :id), (t.at('142 s'), '\x0102'::bytea)::text, 'base times factor; state null leaves it');
select t.duty(t.at('142 s'), 'promote'), t.claim('e3', t.at('143 s'), 'fail')
\gset
select t.claim('e3', t.at('143 s'), 'fail')
\gset
select is(millrace.fail_at(t.at('143 s'), t.lease('e3'), :id, 'third', null, true, null), 'scheduled', 'and again');
select is((select d.due_at from millrace.delayed d where d.job_id = :id), t.at('203 s'), 'at most cap');
select t.duty(t.at('203 s'), 'promote')
\gset
select t.claim('e4', t.at('204 s'), 'fail')
\gset
select is(millrace.fail_at(t.at('204 s'), t.lease('e4'), :id, 'last', null, true, '\x03'), 'dead', 'the last attempt makes a dead letter');
select is((select (d.cause, d.error, d.attempt, d.max_attempts, d.tenant, d.ref, d.source, d.meta, d.died_at, d.created_at)::text from millrace.dead_letters d where d.id = :id),
          ('failed', 'last', 4, 4, 'acme', 'r', 'src', '{"m": 1}'::jsonb, t.at('204 s'), t.at('0'))::text, 'with its error and options');
select is((select array_agg(h ->> 'error' order by ord) from millrace.dead_letters d cross join lateral jsonb_array_elements(d.history) with ordinality u(h, ord) where d.id = :id),
          array['first', 'second', 'third', 'last'], 'and the history of all attempts');
select is((select d.payload_state from millrace.dead d where d.job_id = :id), '\x03', 'and the state of the last one');
select is(t.status(:id), 'dead', 'its status is dead');
-- Bounds of the default backoff: 2^attempt seconds plus 0-50 %, at most an hour.
select ok(millrace.backoff('none', n, 0) = make_interval(secs => least(2 ^ least(n, 20), 3600)) and millrace.backoff('none', n, 1) = make_interval(secs => least(2 ^ least(n, 20) * 1.5, 3600)),
          format('default backoff after attempt %s', n))
  from unnest(array[1, 2, 3, 10, 11, 12, 60, 32767]) n;
select ok(bool_and(b between interval '4 s' and interval '6 s') and count(distinct b) > 10, 'jitter stays within its bounds and varies')
  from (select millrace.backoff('none', 2, random()) as b from generate_series(1, 50)) s;
-- retry_in and retry => false.
select t.put(t.at('0'), 'fail', 3)
\gset
select t.claim('r', t.at('300 s'), 'fail', 3)
\gset
select is(millrace.fail_at(t.at('300 s'), t.lease('r'), (t.ids('r'))[1], 'x', '7 minutes', true, null), 'scheduled', 'retry_in');
select is((select d.due_at from millrace.delayed d where d.job_id = (t.ids('r'))[1]), t.at('300 s') + interval '7 minutes', 'is taken as it is');
select is(millrace.fail_at(t.at('300 s'), t.lease('r'), (t.ids('r'))[2], 'x', '7 minutes', false, null), 'dead', 'retry => false');
select is(array(select t.status(i) from unnest(t.ids('r')) i), array['scheduled', 'dead', 'running'], 'the neighbours are not touched');
select is(millrace.fail_at(t.at('300 s'), t.lease('r'), (t.ids('r'))[3], null, null, true, null), 'scheduled', 'a failure without words');
select is((select k.outcome from t.row_of('r') k), 'fdf', 'outcomes are kept');

-- ---- release ----
select t.put(t.at('0'), 'rel', 3)
\gset
select t.claim('l', t.at('400 s'), 'rel', 3)
\gset
select is(millrace.release_at(t.at('401 s'), t.lease('l'), (t.ids('l'))[2:2]), 1, 'release of one');
select is(array(select t.status(i) from unnest(t.ids('l')) i), array['running', 'available', 'running'], 'it is available, the others run');
select is(millrace.release_at(t.at('402 s'), t.lease('l'), null), 2, 'release of the rest');
select is(t.claim('l2', t.at('403 s'), 'rel', 10), array[(t.ids('l'))[2], (t.ids('l'))[1], (t.ids('l'))[3]], 'released jobs come again, behind each other');
select is(array(select g.attempt from t.got g where g.tag = 'l2'), array[1, 1, 1], 'the attempt is not counted');
select is(millrace.complete_at(t.at('404 s'), t.lease('l2'), (t.ids('l2'))[1:2], null), 2, 'ids of jobs that moved complete');
select is(millrace.complete_at(t.at('404 s'), t.lease('l2'), null, null), 1, 'and the rest');

-- ---- requeue ----
select millrace.enqueue_at(t.at('0'), 'k', '{"a": 1}', 'req', 50, null, null, null, null, 'acme', 'r', 6, '9 s', null, '{"m": 1}', '\x01', '\x02', null) as id
\gset
select t.claim('q1', t.at('500 s'), 'req')
\gset
select is(millrace.requeue_at(t.at('500 s'), t.lease('q1'), :id, '{}', null, null, '{}'), :id::bigint, 'requeue returns the id');
select t.claim('q2', t.at('501 s'), 'req')
\gset
select is((select (g.attempt, g.max_attempts, g.priority, g.args, g.meta, g.state, g.blob, g.tenant, g.ref, g.timeout)::text from t.got g where g.tag = 'q2'),
          (1, 6, 50, '{"a": 1}'::jsonb, '{"m": 1}'::jsonb, '\x01'::bytea, '\x02'::bytea, 'acme', 'r', interval '9 s')::text, 'without changes nothing changes');
select millrace.requeue_at(t.at('501 s'), t.lease('q2'), :id, '{"queue": "req2", "priority": 3, "args": {"b": 2}, "meta": {"n": 2}}', '\x03', '\x04', '{}')
\gset
select is(t.claim('q3', t.at('502 s'), 'req', 1), '{}', 'it has left its queue');
select t.claim('q4', t.at('502 s'), 'req2')
\gset
select is((select (g.id, g.attempt, g.priority, g.args, g.meta, g.state, g.blob, g.tenant, g.ref)::text from t.got g where g.tag = 'q4'),
          (:id, 1, 3, '{"b": 2}'::jsonb, '{"n": 2}'::jsonb, '\x03'::bytea, '\x04'::bytea, 'acme', 'r')::text, 'every change');
select millrace.requeue_at(t.at('502 s'), t.lease('q4'), :id, '{"args": null, "meta": null, "priority": null, "queue": null, "run_at": null}', null, null, '{}')
\gset
select t.claim('q5', t.at('503 s'), 'req2')
\gset
select is((select (g.priority, g.args, g.meta)::text from t.got g where g.tag = 'q5'), (3, '{"b": 2}'::jsonb, '{"n": 2}'::jsonb)::text, 'null means unchanged');
select millrace.requeue_at(t.at('503 s'), t.lease('q5'), :id, '{"args": {"c": 3}}', '\x05', '\x06', '{args,meta,state,blob}')
\gset
select t.claim('q6', t.at('504 s'), 'req2')
\gset
select is((select (g.args, g.meta, g.state, g.blob)::text from t.got g where g.tag = 'q6'), (null::jsonb, null::jsonb, null::bytea, null::bytea)::text, 'clear unsets every part');
select millrace.requeue_at(t.at('504 s'), t.lease('q6'), :id, jsonb_build_object('run_at', t.at('600 s')), null, null, '{}')
\gset
select is((select (d.due_at, d.why, d.attempt)::text from millrace.delayed d where d.job_id = :id), (t.at('600 s'), 'z', 1)::text, 'run_at puts it off');
select is(t.duty(t.at('600 s'), 'promote') >= 1, true, 'its time comes');
select is(t.claim('q7', t.at('601 s'), 'req2'), array[:id]::bigint[], 'and it comes back');
select millrace.complete_at(t.at('601 s'), t.lease('q7'), null, null)
\gset

-- ---- finish with mixed outcomes, results ----
select t.put(t.at('0'), 'fin', 7)
\gset
select t.claim('m', t.at('700 s'), 'fin', 7)
\gset
select is(millrace.finish_at(t.at('702 s'), t.lease('m'), jsonb_build_array(
  jsonb_build_object('id', (t.ids('m'))[7], 'outcome', 'completed', 'result', '{"seven": null}'::jsonb),
  jsonb_build_object('id', (t.ids('m'))[1], 'outcome', 'completed'),
  jsonb_build_object('id', (t.ids('m'))[2], 'outcome', 'failed', 'error', 'two', 'retry_in', '1 minute', 'state', 'AQI='),
  jsonb_build_object('id', (t.ids('m'))[3], 'outcome', 'failed', 'error', 'three', 'retry', false),
  jsonb_build_object('id', (t.ids('m'))[4], 'outcome', 'released'),
  jsonb_build_object('id', (t.ids('m'))[5], 'outcome', 'requeued', 'changes', '{"queue": "fin2", "args": {"x": 1}}'::jsonb, 'state', 'AQ==', 'blob', 'Ag==', 'clear', '["meta"]'::jsonb))), 6,
  'finish returns how many');
select is((select (k.outcome, k.open_n, k.done_n, k.failed_n, k.status)::text from t.row_of('m') k), ('cfdrqoc', 1, 2, 2, 'r')::text, 'each has its outcome, the one not named stays open');
select is(array(select t.status(i) from unnest(t.ids('m')) i), array['completed', 'scheduled', 'dead', 'available', 'available', 'running', 'completed'], 'and its status');
select is(millrace.job((t.ids('m'))[7]) -> 'result', '{"seven": null}', 'the result is in the story');
select is(millrace.job((t.ids('m'))[1]) ? 'result', false, 'no result where none was left');
select is((select (d.due_at, d.payload_state)::text from millrace.delayed d where d.job_id = (t.ids('m'))[2]), (t.at('762 s'), '\x0102'::bytea)::text, 'retry_in and state of a failure');
select is((select (d.error, d.cause)::text from millrace.dead_letters d where d.id = (t.ids('m'))[3]), ('three', 'failed')::text, 'the dead letter has its error');
select is((select (c.args, c.state, c.blob, c.id)::text from millrace.claim_at(t.at('703 s'), 'fin2', 'w', 1, null, true) c),
          ('{"x": 1}'::jsonb, '\x01'::bytea, '\x02'::bytea, (t.ids('m'))[5])::text, 'the requeued one has its changes');
select is(millrace.complete_at(t.at('703 s'), t.lease('m'), null, '{"all": 1}'), 1, 'complete with a result');
select t.put(t.at('703 s'), 'nap', 2)
\gset
select t.claim('nap', t.at('703 s'), 'nap', 2)
\gset
select is(millrace.finish_at(t.at('704 s'), t.lease('nap'), jsonb_build_array(jsonb_build_object('id', (t.ids('nap'))[1], 'outcome', 'snoozed', 'delay', '90 s', 'state', 'AQ=='))), 1, 'a job is snoozed');
select is(millrace.requeue_at(t.at('704 s'), t.lease('nap'), (t.ids('nap'))[2], '{"delay": "1 minute"}', null, null, '{}'), (t.ids('nap'))[2], 'requeue takes a delay too');
select is((select array_agg((d.due_at, d.attempt, d.payload_state)::text order by d.job_id) from millrace.delayed d where d.job_id = any (t.ids('nap'))),
          array[(t.at('794 s'), 1, '\x01'::bytea)::text, (t.at('764 s'), 1, null::bytea)::text], 'both are back when their time has come, the attempt not counted');
select is(millrace.job((t.ids('m'))[6]) -> 'result', '{"all": 1}', 'keeps it');
select is((select count(*) from millrace.result r where r.job_id = any (t.ids('m'))), 2::bigint, 'a result is kept for those only that finished with it');
select t.put(t.at('0'), 'fin3', 1)
\gset
select t.claim('empty', t.at('703 s'), 'fin3')
\gset
select is(millrace.finish_at(t.at('703 s'), t.lease('empty'), '[]'), 0, 'an empty list of outcomes is fine');

-- ---- lost leases: MR001 in every function, nothing changed ----
select t.put(t.at('0'), 'lost', 12)
\gset
select t.claim('live', t.at('800 s'), 'lost', 2, '1 hour'), t.claim('done', t.at('800 s'), 'lost', 2, '1 hour'), t.claim('resc', t.at('800 s'), 'lost', 2, '5 seconds')
\gset
select millrace.complete_at(t.at('801 s'), t.lease('done'), null, null)
\gset
select is(t.duty(t.at('806 s'), 'rescue'), 2::bigint, 'one lease is rescued');
select t.all_rows() as before
\gset
create temp table bad_lease as
select * from (values
  ('null', null), ('empty', ''), ('words', 'lease'), ('dots', '...'), ('negative', '-1.1.1.' || gen_random_uuid()), ('no token', '1.1.1.'),
  ('short token', '1.1.1.abc'), ('upper case', upper(t.lease('live'))), ('space', t.lease('live') || ' '), ('line', t.lease('live') || E'\n'), ('long', repeat('1', 5000)),
  ('huge lane', '1.9999999999.1.' || gen_random_uuid()), ('huge number', '1.1.999999999999999999.' || gen_random_uuid()), ('other slot', '99.1.1.' || gen_random_uuid()),
  ('quote', '1.1.1.''; select 1'), ('wrong token', regexp_replace(t.lease('live'), '[^.]+$', gen_random_uuid()::text)),
  ('another lane', regexp_replace(t.lease('live'), '^(\d+)\.\d+', '\1.1')), ('another number', regexp_replace(t.lease('live'), '\.\d+\.([^.]+)$', '.99.\1')),
  ('finished', t.lease('done')), ('rescued', t.lease('resc'))) v(name, lease);
select t.refused(format(c.call, quote_nullable(b.lease)), 'MR001', 'is lost', format('%s with a lease that is %s', c.name, b.name))
  from bad_lease b
 cross join (values
  ('complete', 'select millrace.complete(%s)'), ('complete a subset', format('select millrace.complete(%%s, array[%s])', (t.ids('live'))[1])),
  ('complete with a result', 'select millrace.complete(%s, result => ''1'')'),
  ('complete_many', format('select millrace.complete_many(array[%L, %%s])', t.lease('live'))),
  ('fail', format('select millrace.fail(%%s, %s, ''e'')', (t.ids('live'))[1])),
  ('finish', format('select millrace.finish(%%s, ''[{"id": %s, "outcome": "completed"}]'')', (t.ids('live'))[1])),
  ('finish nothing', 'select millrace.finish(%s, ''[]'')'),
  ('requeue', format('select millrace.requeue(%%s, %s)', (t.ids('live'))[1])),
  ('release', 'select millrace.release(%s)'), ('release a subset', format('select millrace.release(%%s, array[%s])', (t.ids('live'))[1])),
  ('heartbeat', 'select * from millrace.heartbeat(%s)')) c(name, call);
-- Ids that are not in the lease, or finished already.
select t.refused(format(c, quote_literal(t.lease('live')), i), 'MR003', 'is not in lease', format(c, 'lease', n))
  from unnest(array['select millrace.complete(%s, array[%s]::bigint[])', 'select millrace.fail(%s, %s::bigint, ''e'')', 'select millrace.requeue(%s, %s::bigint)',
                    'select millrace.release(%s, array[%s]::bigint[])']) c
 cross join (values ((t.ids('done'))[1]::text, 'of another lease'), ('null', 'null'), ('-1', 'unknown')) v(i, n);
select t.refused(format('select millrace.finish(%L, ''[{"id": %s, "outcome": "completed"}, {"id": %s, "outcome": "completed"}]'')', t.lease('live'), (t.ids('live'))[1], (t.ids('done'))[1]),
                 'MR003', 'is not in lease', 'finish with one id of another lease');
select t.refused(format('select millrace.complete(%L, array[%s, %s])', t.lease('live'), (t.ids('live'))[1], (t.ids('done'))[1]), 'MR003', 'is not in lease', 'complete with one id of another lease');
select t.refused(format('select millrace.complete(%1$L, array[%2$s, %2$s])', t.lease('live'), (t.ids('live'))[1]), 'MR001', 'is lost', 'an id given twice');
select is(t.all_rows(), :'before', 'all this has changed nothing');
select is(millrace.complete_at(t.at('807 s'), t.lease('live'), (t.ids('live'))[1:1], null), 1, 'the live lease is not hurt by all that');
select t.refused(format(c, t.lease('live'), (t.ids('live'))[1]), 'MR001', 'is lost', 'finished already: ' || c)
  from unnest(array['select millrace.complete(%L, array[%s])', 'select millrace.fail(%L, %s, ''e'')', 'select millrace.requeue(%L, %s)', 'select millrace.release(%L, array[%s])']) c;
-- Expired and not rescued: still good.
select t.claim('exp', t.at('810 s'), 'lost', 4, '5 seconds')
\gset
select is((millrace.heartbeat_at(t.at('900 s'), t.lease('exp'), '5 seconds')).lease_until, t.at('905 s'), 'an expired lease that nobody rescued is revived by a heartbeat');
select is(millrace.fail_at(t.at('1000 s'), t.lease('exp'), (t.ids('exp'))[1], 'e', null, true, null), 'scheduled', 'may fail');
select is(millrace.complete_at(t.at('1000 s'), t.lease('exp'), null, null), 3, 'and may complete');

-- ---- queues that give nothing ----
select t.put(t.at('0'), 'paused', 2)
\gset
select millrace.pause('paused')
\gset
select is((select count(*) from millrace.claim('paused')), 0::bigint, 'a paused queue hands out nothing');
select is(t.put(t.at('0'), 'paused', 1) <> '{}', true, 'but takes jobs in');
select millrace.resume('paused')
\gset
select is((select count(*) from millrace.claim('paused', max_jobs => 10)), 3::bigint, 'after resume all are there');
select is((select count(*) from millrace.claim('unheard of')), 0::bigint, 'an unknown queue has no rows');

-- ---- isolation and read-only ----
begin isolation level repeatable read;
select throws_ok('select count(*) from millrace.claim(''lost'')', '25000', 'claim needs isolation level read committed, not repeatable read', 'claim at repeatable read');
rollback;
begin isolation level serializable;
select throws_ok('select count(*) from millrace.claim(''lost'')', '25000', 'claim needs isolation level read committed, not serializable', 'claim at serializable');
rollback;
begin read only;
do $$
begin
  perform count(*) from millrace.claim('lost');
  raise exception 'no error';
exception when read_only_sql_transaction then
  perform set_config('t.read_only', 'refused', false);
end $$;
commit;
select is(current_setting('t.read_only'), 'refused', 'claim in a read-only transaction');
begin isolation level repeatable read;
select millrace.enqueue('k', queue => 'rr') as rr
\gset
commit;
insert into t.got select 'rr', 1, c.* from millrace.claim('rr') c;
begin isolation level repeatable read;
select is(millrace.complete(t.lease('rr')), 1, 'a completion works at repeatable read, in the caller''s transaction');
commit;

-- ---- plain, optioned, large and expired jobs in one lane, claimed in batches of any size ----
create function t.blob_of(p_i int) returns bytea language sql as $$ select string_agg(decode(md5(p_i || '.' || g), 'hex'), '' order by g) from generate_series(1, 300) g $$;
create function t.put_sorts(p_queue text)
returns void
language sql
as $$
  select millrace.enqueue_at(t.at('1500 s'), 'k', jsonb_build_object('i', i), p_queue, 50, null, null, null, null, case when i % 3 = 0 then 'acme' end,
                             case when i % 3 = 0 then 'ref-' || i end, null, null, case when i % 20 = 7 then interval '1 s' end,
                             case when i % 3 = 0 then '{"m": 1}'::jsonb end, null, case when i % 20 = 13 then t.blob_of(i) end, null)
    from generate_series(1, 60) i
$$;
-- Claims and completes in batches until nothing is left: the numbers of the jobs in the order they came, and whether each came whole.
create function t.drain_sorts(p_queue text, p_batch int, out numbers int[], out whole boolean, out completed int)
language plpgsql
as $$
declare
  v_job   millrace.claimed_job;
  v_lease text;
begin
  whole := true;
  completed := 0;
  loop
    v_lease := null;
    for v_job in select * from millrace.claim_at(t.at('1600 s'), p_queue, 'w', p_batch, null, true) loop
      v_lease := v_job.lease;
      numbers := numbers || (v_job.args ->> 'i')::int;
      whole := whole and v_job.blob is not distinct from case when (v_job.args ->> 'i')::int % 20 = 13 then t.blob_of((v_job.args ->> 'i')::int) end
                     and v_job.ref is not distinct from case when (v_job.args ->> 'i')::int % 3 = 0 then 'ref-' || (v_job.args ->> 'i') end
                     and v_job.meta is not distinct from case when (v_job.args ->> 'i')::int % 3 = 0 then '{"m": 1}'::jsonb end
                     and v_job.priority = 50 and v_job.attempt = 1 and v_job.lease_until > t.at('1600 s');
    end loop;
    exit when v_lease is null;
    completed := completed + millrace.complete_at(t.at('1601 s'), v_lease, null, null);
  end loop;
end $$;
select t.put_sorts('sorts' || b) from unnest(array[1, 2, 8, 9, 20, 25, 100]) b
\g /dev/null
select is(d, (array(select i from generate_series(1, 60) i where i % 20 <> 7), true, 57)::text, format('in batches of %s: each but the expired ones, in order, whole, completed', b))
  from unnest(array[1, 2, 8, 9, 20, 25, 100]) b
 cross join lateral (select d::text from t.drain_sorts('sorts' || b, b) d) r(d);
select is(millrace.depth('sorts' || b), 0::bigint, 'nothing is left') from unnest(array[1, 9, 100]) b;
select is((select string_agg(k.outcome, '') from millrace.claim k join millrace.queue q on q.queue_id = k.lane >> 12 where q.queue_name = 'sorts100' and k.outcome is not null),
          (select string_agg(case when i % 20 = 7 then 'x' else 'c' end, '' order by i) from generate_series(1, 60) i), 'the claim says which expired');

-- ---- expired jobs do not count: neither their bytes, nor as an empty lane ----
select millrace.enqueue_at(t.at('1500 s'), 'k', '{}', 'late', 10, null, null, null, null, null, null, null, null, '1 s', null, null, decode(repeat('00', 9000000), 'hex'), null) from generate_series(1, 5)
\g /dev/null
select millrace.enqueue_at(t.at('1500 s'), 'low', '{}', 'late', 90, null, null, null, null, null, null, null, null, null, null, null, null, null)
\g /dev/null
select is((select array_agg(c.kind) from millrace.claim_at(t.at('1501 s') - interval '2 s', 'late', 'w', 1, null, false) c), array['k'], 'the window is opened by a claim');
select millrace.enqueue_at(t.at('1600 s'), 'high', '{}', 'late', 10, null, null, null, null, null, null, null, null, null, null, null, null, null) from generate_series(1, 2)
\g /dev/null
select is((select array_agg(c.kind) from millrace.claim_at(t.at('1601 s'), 'late', 'w', 10, null, true) c), array['high', 'high'], 'behind expired jobs, in another window, lie jobs that come before those of a lower priority');
select is((select array_agg(c.kind) from millrace.claim_at(t.at('1601 s'), 'late', 'w', 10, null, true) c), array['low'], 'then these');
select millrace.enqueue_at(t.at('1500 s'), 'k', '{}', 'many late', 50, null, null, null, null, null, null, null, null, '1 s', null, null, null, null) from generate_series(1, 2500)
\g /dev/null
select millrace.enqueue_at(t.at('1500 s'), 'alive', '{}', 'many late', 50, null, null, null, null, null, null, null, null, null, null, null, null, null)
\g /dev/null
select is((select array_agg(c.kind) from millrace.claim_at(t.at('1600 s'), 'many late', 'w', 1, null, true) c), array['alive'], 'one claim passes over thousands of them');
-- ---- purged jobs did not wait ----
select t.put(t.at('1000 s'), 'purged', 100)
\gset
select is(millrace.purge_at(t.at('1600 s'), (select q from millrace.queue q where q.queue_name = 'purged')), 100::bigint, 'a hundred jobs are purged');
select is((select sum(k.wait_us)::bigint from millrace.claim k join millrace.queue q on q.queue_id = k.lane >> 12 where q.queue_name = 'purged'), 0::bigint, 'a purge adds nothing to the waiting times');

-- ---- expired jobs ----
select millrace.enqueue_at(t.at('0'), 'k', '{}', 'stale', 50, null, null, null, null, null, null, null, null, e, null, null, null, null)
  from unnest(array['1 s', null, '1 s', '1 hour', '1 s']::interval[]) with ordinality u(e, ord)
 order by ord
\g /dev/null
select array(select j.job_id from millrace.job j where j.lane >> 12 = (select q.queue_id from millrace.queue q where q.queue_name = 'stale') order by j.pos) as st
\gset
select is(t.claim('st', t.at('2000 s'), 'stale', 2), array[(:'st'::bigint[])[2], (:'st'::bigint[])[4]], 'expired jobs are passed over, and the batch is filled');
select is(array(select t.status(i) from unnest(:'st'::bigint[]) i), array['expired', 'running', 'expired', 'running', 'available'], 'their status is expired');
select is((select (k.outcome, k.n, k.open_n)::text from t.row_of('st') k), ('xoxo', 4, 2)::text, 'the claim that passed them says so');
select is(t.claim('st2', t.at('2001 s'), 'stale', 2), '{}', 'a claim that finds only expired ones returns nothing');
select is(array(select t.status(i) from unnest(:'st'::bigint[]) i), array['expired', 'running', 'expired', 'running', 'expired'], 'and leaves none of them waiting');
select is(millrace.complete_at(t.at('2002 s'), t.lease('st'), null, null), 2, 'complete counts those that were delivered');
select is(array(select t.status(i) from unnest(:'st'::bigint[]) i), array['expired', 'completed', 'expired', 'completed', 'expired'], 'and completes no other');
select is(millrace.depth('stale'), 0::bigint, 'nothing is left');

-- ---- a transaction that claims and enqueues and claims again loses nothing ----
select t.put(t.at('0'), 'self', 1)
\gset
begin;
select t.claim('a1', t.at('3000 s'), 'self')
\gset
select t.put(t.at('3000 s'), 'self', 2) as own
\gset
select is(t.claim('a2', t.at('3001 s'), 'self', 10), '{}', 'its own job is not delivered before the commit');
select t.put(t.at('3001 s'), 'self', 1) as own2
\gset
select t.claim('a3', t.at('3002 s'), 'self', 10)
\gset
commit;
select is(t.claim('a4', t.at('3003 s'), 'self', 10), :'own'::bigint[] || :'own2'::bigint[], 'and is delivered after it');
select is(t.claim('a5', t.at('3004 s'), 'self', 10), '{}', 'once');
-- The same with a subtransaction that was rolled back, and one that was not.
begin;
savepoint a;
select t.claim('b1', t.at('3005 s'), 'self')
\gset
select t.put(t.at('3005 s'), 'self', 1)
\gset
rollback to a;
savepoint b;
select t.put(t.at('3005 s'), 'self', 1) as sub
\gset
release b;
select t.claim('b2', t.at('3005 s'), 'self')
\gset
commit;
select is(t.claim('b3', t.at('3006 s'), 'self', 10), :'sub'::bigint[], 'with savepoints too');
-- A claim that is rolled back gives its jobs back.
select t.put(t.at('0'), 'undo', 2) as undo
\gset
begin;
select t.claim('u1', t.at('3100 s'), 'undo', 2)
\gset
rollback;
select is(t.claim('u2', t.at('3101 s'), 'undo', 2), :'undo'::bigint[], 'a claim that is rolled back gives its jobs back');
select is(array(select g.attempt from t.got g where g.tag = 'u2'), array[1, 1], 'as the same attempt');
-- A completion that is rolled back did not happen.
begin;
select millrace.complete_at(t.at('3102 s'), t.lease('u2'), null, null)
\gset
rollback;
select is(millrace.complete_at(t.at('3103 s'), t.lease('u2'), null, null), 2, 'a completion that is rolled back did not happen');

select * from finish();
