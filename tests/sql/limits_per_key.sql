-- SPDX-License-Identifier: PostgreSQL
-- Limits inside a queue: jobs of one key at once, and jobs of one tenant started per time. Races are in tests/isolation/specs/limit-key-claim.spec and
-- limit-tenant-claim.spec, killed workers in tests/fault/limits_per_key.bats.
\ir lib/helpers.psql
select no_plan();

-- Jobs with a key or a tenant; their ids.
create function t.keyed(p_queue text, p_n int, p_key text, p_tenant text = null, p_priority int = 50, p_expires interval = null, p_at interval = '0')
returns bigint[]
language sql
as $$
  select array(select millrace.enqueue_at(t.at(p_at), 'k', jsonb_build_object('i', i), p_queue, p_priority, null, null, null, p_key, p_tenant, null, null, null,
                                          p_expires, null, null, null, null)
                 from generate_series(1, p_n) i)
$$;
-- Claims and tells how many jobs came.
create function t.n(p_tag text, p_after interval, p_queue text, p_max int, p_lease interval = null)
returns int
language sql
as $$
  select cardinality(t.claim(p_tag, t.at(p_after), p_queue, p_max, p_lease))
$$;
-- The same at most four times, each in a transaction of its own, until something comes: jobs that are let in come with the next claim.
create procedure t.soon(p_tag text, p_after interval, p_queue text, p_max int, p_lease interval = null)
language plpgsql
as $$
begin
  for i in 1..4 loop
    exit when t.n(p_tag, p_after, p_queue, p_max, p_lease) > 0;
    commit;
  end loop;
end $$;
create function t.came(p_tag text)
returns int
language sql
as $$
  select cardinality(t.ids(p_tag))
$$;
create function t.aside(p_queue text, p_why text = null)
returns bigint
language sql
as $$
  select count(*) from millrace.delayed d where d.lane >> 12 = t.qid(p_queue) and d.why in ('k', 't') and d.why::text = coalesce(p_why, d.why::text)
$$;
-- The row that claim_batch returns for the lease, and the number of jobs, at the server's own time.
create function t.batch(p_queue text, p_max int, out lease boolean, out word text, out wait boolean, out jobs bigint)
language sql
as $$
  select bool_or(c.lease is not null), max(c.kind) filter (where c.id is null), bool_or(c.lease_until is not null) filter (where c.id is null),
         count(c.id)
    from millrace.claim_batch(p_queue, 'w', p_max) c
$$;

-- ---- settings ----
select millrace.set_queue('s', '{"concurrency_per_key": 4, "rate_per_tenant": "100/s"}')
\gset
select is((select q.settings -> 'concurrency_per_key' from millrace.queues q where q.queue = 's'), '4', 'the view shows concurrency_per_key');
select is((select q.settings ->> 'rate_per_tenant' from millrace.queues q where q.queue = 's'), '100/s', 'the view shows rate_per_tenant');
select millrace.set_queue('s', '{"concurrency_per_key": null, "rate_per_tenant": null}')
\gset
select is((select q.settings -> 'concurrency_per_key' from millrace.queues q where q.queue = 's'), 'null', 'null takes the one away');
select is((select q.settings -> 'rate_per_tenant' from millrace.queues q where q.queue = 's'), 'null', 'and the other');
select lives_ok('select millrace.set_queue(''s'', ''{"concurrency_per_key": 1}''), millrace.set_queue(''s'', ''{"concurrency_per_key": 1000000}''),
                        millrace.set_queue(''s'', ''{"concurrency_per_key": null}'')', 'from 1 to a million');
select millrace.set_queue('ordered', '{"ordered": true}')
\gset
select t.all_rows() as before
\gset
select t.refused(format('select millrace.set_queue(%L, %L)', r.queue, r.settings), '22023', r.message)
  from (values ('s', '{"concurrency_per_key": 0}', 'setting concurrency_per_key must be from 1 to 1000000, not 0'),
               ('s', '{"concurrency_per_key": -1}', 'setting concurrency_per_key must be from 1 to 1000000, not -1'),
               ('s', '{"concurrency_per_key": 1000001}', 'setting concurrency_per_key must be from 1 to 1000000'),
               ('s', '{"concurrency_per_key": 99999999999999999999}', 'setting concurrency_per_key does not accept'),
               ('s', '{"concurrency_per_key": 2.5}', 'setting concurrency_per_key does not accept ''2.5'''),
               ('s', '{"concurrency_per_key": true}', 'setting concurrency_per_key does not accept ''true'''),
               ('s', '{"concurrency_per_key": "many"}', 'setting concurrency_per_key does not accept ''many'''),
               ('s', '{"concurrency_per_key": ""}', 'setting concurrency_per_key does not accept'),
               ('s', '{"concurrency_per_key": [4]}', 'setting concurrency_per_key does not accept'),
               ('s', '{"rate_per_tenant": "100"}', 'setting rate_per_tenant does not accept ''100'': it has no slash'),
               ('s', '{"rate_per_tenant": 100}', 'setting rate_per_tenant does not accept ''100'': it has no slash'),
               ('s', '{"rate_per_tenant": "1.5/s"}', '''1.5'' is not a whole number of jobs'),
               ('s', '{"rate_per_tenant": "-1/s"}', '''-1'' is not a whole number'),
               ('s', '{"rate_per_tenant": "0/s"}', 'setting rate_per_tenant does not accept ''0/s'': it allows no job at all'),
               ('s', '{"rate_per_tenant": "5/m"}', '''m'' is not a unit of time'),
               ('s', '{"rate_per_tenant": "99999999999999999999999999/s"}', 'it allows more than'),
               ('s', '{"rate_per_tenant": "5/2d"}', 'its time is not from 1s to 1d'),
               ('s', '{"rate_per_tenant": {"a": 1}}', 'setting rate_per_tenant does not accept'),
               ('s', '{"ordered": true, "concurrency_per_key": 2}', 'concurrency_per_key and ordered exclude each other'),
               ('s', '{"ordered": true, "rate_per_tenant": "1/s"}', 'rate_per_tenant and ordered exclude each other'),
               ('ordered', '{"concurrency_per_key": 2}', 'concurrency_per_key and ordered exclude each other'),
               ('ordered', '{"rate_per_tenant": "2/s"}', 'rate_per_tenant and ordered exclude each other')) r(queue, settings, message);
select t.refused('select millrace.enqueue(''k'', queue => ''s'', ordering_key => ''a'')', '22023', 'queue ''s'' is not ordered: it takes no ordering_key');
select t.refused('select millrace.enqueue_jobs(''[{"kind": "k", "queue": "s", "ordering_key": "a"}]'')', '22023', 'job 1: queue ''s'' is not ordered');
select is(t.all_rows(), :'before', 'nothing was changed');

-- ---- jobs of a key at once ----
select millrace.set_queue('c', '{"concurrency_per_key": 2, "lease": "30s"}')
\gset
select t.keyed('c', 5, 'a') as a, t.keyed('c', 3, 'b') as b, t.put(t.at('0'), 'c', 4) as plain
\gset
select is(t.n('c1', '1 s', 'c', 100), 8, 'two of each key, and all that have none');
select is((select array_agg(g.id order by g.id) from t.got g where g.tag = 'c1'),
          array(select i from unnest((:'a'::bigint[])[1:2] || (:'b'::bigint[])[1:2] || :'plain'::bigint[]) i order by i), 'the first of each');
select is(t.n('c2', '1 s', 'c', 100), 0, 'a full key gets no more');
select is(t.aside('c'), 4::bigint, 'the others are set aside');
select is((select array_agg(j.status order by j.id) from millrace.jobs j where j.queue = 'c' and j.ordering_key = 'a'),
          array['running', 'running', 'available', 'available', 'available'], 'and are available');
select is(millrace.depth('c'), 4::bigint, 'they count in depth');
select is((select (s.available, s.running, s.scheduled)::text from millrace.stats_at(t.at('1 s'), 'c') s), '(4,8,0)', 'and in stats');
select is((millrace.outcome_at(t.at('1 s'), (:'a'::bigint[])[5])).status, 'available', 'and for outcome');
select is(millrace.job((:'a'::bigint[])[5]) ->> 'status', 'available', 'and in their story');
select is(millrace.job((:'a'::bigint[])[5]) ->> 'limited_by', 'concurrency_per_key', 'which tells why they wait');
select millrace.complete_at(t.at('2 s'), t.lease('c1'), (:'a'::bigint[])[1:1], null)
\gset
call t.soon('c3', '2 s', 'c', 100);
select is(t.ids('c3'), (:'a'::bigint[])[3:3], 'one that completes makes room for the first in line');
select is(t.n('c4', '2 s', 'c', 100), 0, 'and for no other');
select millrace.fail_at(t.at('3 s'), t.lease('c1'), (:'a'::bigint[])[2], 'no', '1 h', true, null)
\gset
call t.soon('c5', '3 s', 'c', 100);
select is(t.ids('c5'), (:'a'::bigint[])[4:4], 'one that fails, too');
select millrace.release_at(t.at('3 s'), t.lease('c1'), (:'b'::bigint[])[1:1])
\gset
call t.soon('c6', '3 s', 'c', 100);
select is(t.came('c6'), 1, 'one that is released, too');
select is(t.n('c7', '3 s', 'c', 100), 0, 'the key is full again');
select millrace.cancel_at(t.at('3 s'), (:'a'::bigint[])[5], 'no')
\gset
select is(t.aside('c'), 1::bigint, 'one that is set aside can be cancelled');
select is((millrace.outcome_at(t.at('3 s'), (:'a'::bigint[])[5])).status, 'cancelled', 'and has ended');
select millrace.complete_at(t.at('4 s'), t.lease('c3'), null, null), millrace.complete_at(t.at('4 s'), t.lease('c5'), null, null),
       millrace.complete_at(t.at('4 s'), t.lease('c6'), null, null)
\gset
call t.soon('c8', '4 s', 'c', 100);
select is(t.came('c8'), 1, 'only the last of b is left');
select millrace.complete_at(t.at('5 s'), t.lease('c8'), null, null), millrace.complete_at(t.at('5 s'), t.lease('c1'), null, null)
\gset
select is(t.aside('c'), 0::bigint, 'nothing is set aside any more');
select is((select jsonb_object_agg(j.status, j.n) from (select j.status, count(*) as n from millrace.jobs j where j.queue = 'c' group by 1) j),
          '{"completed": 10, "cancelled": 1, "scheduled": 1}', 'every job has one end, or waits for its retry');

-- ---- leases that end: nobody but claimers calls in ----
select millrace.set_queue('l', '{"concurrency_per_key": 1, "lease": "10s"}'), t.keyed('l', 3, 'a') as jobs
\gset
select is(t.n('l1', '10 s', 'l', 3), 1, 'one runs');
select is(t.n('l2', '19 s', 'l', 3), 0, 'as long as its lease holds there is no room');
select setval('millrace.upkeep_clock', millrace.epoch_ms(t.at('20.2 s')))
\gset
call t.soon('l3', '20.1 s', 'l', 3);
select is(t.came('l3'), 1, 'with its end there is, though the slice of upkeep is not due');
select is(t.n('l4', '20.1 s', 'l', 3), 0, 'for one');
select is((select k.status::text from millrace.claim k where k.token = t.token('l1')), 'l', 'the lease was taken back');
select throws_ok(format('select millrace.complete_at(%L, %L, null, null)', t.at('21 s'), t.lease('l1')), 'MR001', null, 'and is lost');
select setval('millrace.rescue_hint', 0), setval('millrace.rescue_sweep', 0)
\gset

-- ---- a deep backlog of a full key does not block the queue, and nobody overtakes for long ----
select millrace.set_queue('d', '{"concurrency_per_key": 1}'), t.keyed('d', 30, 'a') as a, t.keyed('d', 2, 'b') as b
\gset
select is(t.n('d1', '1 s', 'd', 2), 2, 'behind the jobs of a full key another one is found');
select is((select array_agg(g.id order by g.id) from t.got g where g.tag = 'd1'), array[(:'a'::bigint[])[1], (:'b'::bigint[])[1]], 'the first of b');
select t.keyed('d', 30, 'a', p_at => '2 s') as young
\gset
create procedure t.drain(p_tag text, p_from interval, p_queue text, p_rounds int, p_max int = 1)
language plpgsql
as $$
begin
  for i in 1 .. p_rounds loop
    if t.n(p_tag || '.' || i, p_from, p_queue, p_max) > 0 then
      commit;
      perform millrace.complete_at(t.at(p_from), t.lease(p_tag || '.' || i), null, null);
    end if;
    commit;
  end loop;
end $$;
select millrace.complete_at(t.at('3 s'), t.lease('d1'), null, null)
\gset
call t.drain('d2', '3 s', 'd', 140);
select is((select array_agg(g.id order by split_part(g.tag, '.', 2)::int) from t.got g where g.tag like 'd2.%' and g.id = any (:'a'::bigint[] || :'young'::bigint[])),
          (:'a'::bigint[])[2:] || :'young'::bigint[], 'one worker gets the jobs of a key in their order');
select is((select count(*)::int from millrace.jobs j where j.queue = 'd' and j.status = 'completed'), 62, 'and all complete');

-- ---- keys: long ones, ones that look alike, many ----
select millrace.set_queue('k', '{"concurrency_per_key": 1}')
\gset
select t.keyed('k', 2, repeat('x', 1000)), t.keyed('k', 2, repeat('x', 999) || 'y'), t.keyed('k', 2, ' '), t.keyed('k', 2, '''a,"{}'), t.keyed('k', 2, U&'\00e4'), t.keyed('k', 2, U&'a\0308')
\gset
select is(t.n('k1', '1 s', 'k', 100), 6, 'keys are compared as they are written, byte by byte');
select millrace.complete_at(t.at('2 s'), t.lease('k1'), null, null)
\gset
call t.soon('k2', '2 s', 'k', 100);
select is(t.came('k2'), 6, 'and each has a line of its own');
select t.refused('select millrace.enqueue(''k'', queue => ''k'', ordering_key => repeat(''x'', 1001))', '22023', 'ordering_key is 1001 bytes long');
select t.refused('select millrace.enqueue(''k'', queue => ''k'', ordering_key => '''')', '22023', 'ordering_key must not be empty');
-- Keys of one hash: they have nothing to do with each other.
create table t.same_hash as
select min('key ' || i) as one, max('key ' || i) as two
  from generate_series(1, 400000) i
 group by hashtext('key ' || i)
having count(*) > 1
 limit 1;
select ok(exists (select from t.same_hash), 'there are keys of one hash');
select millrace.set_queue('kh', '{"concurrency_per_key": 1}'), t.keyed('kh', 2, h.one), t.keyed('kh', 2, h.two) from t.same_hash h
\gset
select is(t.n('kh1', '1 s', 'kh', 100), 2, 'a key of the same hash does not wait');

-- ---- several parts and priorities ----
select millrace.set_queue('p', '{"concurrency_per_key": 2, "parts": 4}')
\gset
select t.keyed('p', 12, 'a', null, 50) as low, t.keyed('p', 12, 'a', null, 10) as high
\gset
create procedure t.claim_times(p_tag text, p_after interval, p_queue text, p_max int, p_times int)
language plpgsql
as $$
begin
  for i in 1 .. p_times loop
    perform t.n(p_tag || '.' || i, p_after, p_queue, p_max);
    commit;
  end loop;
end $$;
call t.claim_times('p', '1 s', 'p', 5, 12);
select is((select count(*)::int from t.got g where g.tag like 'p.%'), 2, 'the limit is the key''s, whatever parts and priorities there are');
select ok((select bool_and(g.priority = 10) from t.got g where g.tag like 'p.%'), 'the higher priority first');
select count(millrace.complete_at(t.at('2 s'), g.lease, array[g.id], null)) from t.got g where g.tag like 'p.%'
\gset
call t.claim_times('pp', '2 s', 'p', 5, 4);
select is((select array_agg(distinct g.priority) from t.got g where g.tag like 'pp.%'), array[10], 'also out of the lines');
select is((select count(*)::int from t.got g where g.tag like 'pp.%'), 2, 'two again');
select lives_ok('select millrace.set_queue(''p'', ''{"parts": 32}'')', 'all parts there are');
select count(millrace.complete_at(t.at('3 s'), g.lease, array[g.id], null)) from t.got g where g.tag like 'pp.%'
\gset
call t.claim_times('p3', '3 s', 'p', 5, 6);
select is((select count(*)::int from t.got g where g.tag like 'p3.%'), 2, 'two again with another number of parts');

-- ---- steering what is set aside ----
select millrace.set_queue('e', '{"concurrency_per_key": 1}'), t.keyed('e', 7, 'a') as e
\gset
select is(t.n('e1', '1 s', 'e', 10), 1, 'one runs, six are set aside');
select t.refused(format('select millrace.run_now(%s)', (:'e'::bigint[])[2]), '22023', 'set aside: other jobs with ordering_key ''a'' run');
select t.refused(format('select millrace.resume_job(%s)', (:'e'::bigint[])[2]), '22023', 'is available');
select is(t.aside('e'), 6::bigint, 'what was refused is where it was');
select millrace.pause_job_at(t.at('2 s'), (:'e'::bigint[])[2]), millrace.change_job_at(t.at('2 s'), (:'e'::bigint[])[3], '{"args": {"new": 1}}'),
       millrace.change_job_at(t.at('2 s'), (:'e'::bigint[])[4], '{"queue": "elsewhere"}'), millrace.cancel_at(t.at('2 s'), (:'e'::bigint[])[5], null)
\gset
select is((select array_agg(j.status order by j.id) from millrace.jobs j where j.id = any (:'e'::bigint[])),
          array['running', 'paused', 'available', 'available', 'cancelled', 'available', 'available'], 'paused, changed, moved, cancelled');
select is((select j.ordering_key from millrace.jobs j where j.id = (:'e'::bigint[])[4]), null, 'a queue without limits has no use for a key');
select millrace.complete_at(t.at('3 s'), t.lease('e1'), null, null)
\gset
call t.drain('e2', '3 s', 'e', 12);
select is((select array_agg(g.id order by split_part(g.tag, '.', 2)::int) from t.got g where g.tag like 'e2.%'),
          array[(:'e'::bigint[])[6], (:'e'::bigint[])[7], (:'e'::bigint[])[3]], 'the one that was changed has joined behind');
select is((select g.args from t.got g where g.tag like 'e2.%' and g.id = (:'e'::bigint[])[3]), '{"new": 1}', 'with its changes');
select millrace.resume_job_at(t.at('4 s'), (:'e'::bigint[])[2])
\gset
call t.soon('e3', '4 s', 'e', 10);
select is(t.ids('e3'), (:'e'::bigint[])[2:2], 'a paused one comes when it is resumed');
select t.keyed('e', 5, 'a', p_at => '4 s') as purged
\gset
select is(t.n('e4', '4 s', 'e', 10), 0, 'five wait');
select is(millrace.purge('e'), 5::bigint, 'purge removes what is set aside');
select is((select (s.available, s.running)::text from millrace.stats_at(t.at('4 s'), 'e') s), '(0,1)', 'and nothing else');
select is(t.n('e5', '4 s', 'e', 10), 0, 'claims find nothing');
-- Expiry.
select millrace.set_queue('x', '{"concurrency_per_key": 1}'), t.keyed('x', 1, 'a'), t.keyed('x', 300, 'a', null, 50, '10 s') as x, t.keyed('x', 1, 'a') as last
\gset
select is(t.n('x1', '1 s', 'x', 10, '1 day'), 1, 'one runs, the others are set aside');
select is((millrace.outcome_at(t.at('20 s'), (:'x'::bigint[])[1])).status, 'expired', 'one that nobody took in time has expired');
select millrace.complete_at(t.at('20 s'), t.lease('x1'), null, null)
\gset
call t.claim_times('x2', '20 s', 'x', 10, 8);
select is((select array_agg(g.id) from t.got g where g.tag like 'x2.%'), :'last'::bigint[], 'those that have expired do not keep the others waiting for long');
select is((select count(*)::int from millrace.jobs j where j.queue = 'x' and j.status = 'expired'), 300, 'and end as expired');

-- ---- changing the limit ----
select millrace.set_queue('g', '{"concurrency_per_key": 1}'), t.keyed('g', 10, 'a') as g
\gset
select is(t.n('g1', '1 s', 'g', 10), 1, 'one runs');
select millrace.set_queue('g', '{"concurrency_per_key": 3}')
\gset
call t.soon('g2', '1 s', 'g', 10);
select is(t.came('g2'), 2, 'raised, it has room for two more');
select millrace.set_queue('g', '{"concurrency_per_key": 2}')
\gset
select millrace.complete_at(t.at('2 s'), t.lease('g1'), null, null)
\gset
call t.soon('g3', '2 s', 'g', 10);
select is(t.came('g3'), 0, 'lowered, it stops nothing that runs and starts no more');
select millrace.set_queue('g', '{"concurrency_per_key": null}')
\gset
select is(t.aside('g'), 0::bigint, 'taken away, everything comes back');
select is(t.n('g4', '2 s', 'g', 100), 7, 'at once');
select t.refused('select millrace.enqueue(''k'', queue => ''g'', ordering_key => ''a'')', '22023', 'queue ''g'' is not ordered');
select millrace.set_queue('g', '{"concurrency_per_key": 9}'), t.keyed('g', 3, 'a')
\gset
select is(t.n('g5', '2 s', 'g', 100), 0, 'set again, it counts what runs');

-- ---- with the queue's own limits, batches, unique keys, retries, replay ----
select millrace.set_queue('m', '{"concurrency_per_key": 2, "concurrency": 3, "rate": "5/min", "lease": "1h"}')
\gset
select t.keyed('m', 4, 'a'), t.keyed('m', 4, 'b')
\gset
select is(t.n('m1', '1 s', 'm', 10), 3, 'the queue''s concurrency holds, too');
select is((select max(n)::int from (select count(*) as n from t.got g join millrace.jobs j on j.id = g.id where g.tag = 'm1' group by j.ordering_key) s), 2, 'beside the key''s');
select is(t.n('m2', '1 s', 'm', 10), 0, 'no room in the queue');
select millrace.complete_at(t.at('2 s'), t.lease('m1'), null, null)
\gset
call t.claim_times('m3', '2 s', 'm', 10, 4);
select is((select count(*)::int from t.got g where g.tag like 'm3.%'), 2, 'and its rate');
call t.claim_times('m4', '61 s', 'm', 10, 4);
select is((select count(*)::int from t.got g where g.tag like 'm4.%'), 1, 'a minute later its concurrency again');
select millrace.set_queue('u', '{"concurrency_per_key": 1}')
\gset
select millrace.enqueue_at(t.at('0'), 'k', '{}', 'u', 50, null, null, 'u1', 'a', null, null, null, null, null, null, null, null, null) as u1
\gset
select millrace.enqueue_at(t.at('0'), 'k', '{}', 'u', 50, null, null, 'u2', 'a', null, null, null, null, null, null, null, null, null) as u2
\gset
select is(t.n('u1', '1 s', 'u', 10), 1, 'one of two with unique keys runs');
select is(millrace.enqueue_at(t.at('1 s'), 'k', '{}', 'u', 50, null, null, 'u2', 'a', null, null, null, null, null, null, null, null, null), :u2::bigint,
          'the one that is set aside holds its unique key');
select is(millrace.enqueue_at(t.at('1 s'), 'k', '{"v": 2}', 'u', 50, null, null, 'u2', 'a', null, null, null, null, null, null, null, null, null, 'replace'), :u2::bigint,
          'and can be replaced');
select millrace.complete_at(t.at('2 s'), t.lease('u1'), null, null)
\gset
call t.claim_times('u2', '2 s', 'u', 10, 3);
select is((select array_agg(g.args) from t.got g where g.tag like 'u2.%'), array['{"v": 2}'::jsonb], 'it comes as replaced');
select millrace.batch_begin_at(t.at('0'), '{"kind": "done", "queue": "called"}', null, null, null) as batch
\gset
select count(*) from millrace.batch_add_at(t.at('0'), :batch, '[{"kind": "k", "queue": "u", "ordering_key": "z"}, {"kind": "k", "queue": "u", "ordering_key": "z"}]')
\gset
select millrace.batch_seal_at(t.at('0'), :batch)
\gset
call t.drain('u3', '3 s', 'u', 8);
select count(*) from millrace.maintain_at(t.at('10 s'))
\gset
select is((select count(*)::int from millrace.jobs j where j.queue = 'called'), 1, 'a batch ends with its last member, set aside or not');
-- A retry and a dead letter keep their key.
select millrace.set_queue('f', '{"concurrency_per_key": 1, "max_attempts": 2}'), t.keyed('f', 2, 'a') as f
\gset
select is(t.n('f1', '1 s', 'f', 10), 1, 'the first');
select millrace.fail_at(t.at('1 s'), t.lease('f1'), (:'f'::bigint[])[1], 'no', '1 s', true, null)
\gset
call t.soon('f2', '1 s', 'f', 10);
select is(t.ids('f2'), (:'f'::bigint[])[2:2], 'the second runs while the first waits for its retry');
select setval('millrace.promote_hint', 0), setval('millrace.promote_sweep', 0)
\gset
select millrace.promote(t.at('5 s'), 100)
\gset
select is(t.n('f3', '5 s', 'f', 10), 0, 'which then waits for room');
select millrace.complete_at(t.at('5 s'), t.lease('f2'), null, null)
\gset
call t.soon('f4', '5 s', 'f', 10);
select is(t.ids('f4'), (:'f'::bigint[])[1:1], 'and gets it');
select millrace.fail_at(t.at('6 s'), t.lease('f4'), (:'f'::bigint[])[1], 'no', null, true, null)
\gset
select is((select d.status from millrace.jobs d where d.id = (:'f'::bigint[])[1]), 'dead', 'dead');
select millrace.replay((:'f'::bigint[])[1]), t.keyed('f', 1, 'a')
\gset
call t.claim_times('f5', '7 s', 'f', 10, 4);
select is((select count(*)::int from t.got g where g.tag like 'f5.%'), 1, 'replayed, it has its key still');

-- ---- a depth limit counts what is set aside ----
select millrace.set_queue('y', '{"concurrency_per_key": 1, "depth_limit": 5}'), millrace.set_queue('yo', '{"ordered": true, "depth_limit": 5}')
\gset
select t.keyed('y', 5, 'a', p_at => '0'), t.keyed('yo', 5, 'a', p_at => '0')
\gset
select is(t.n('y1', '1 s', 'y', 10, '1 day') + t.n('yo1', '1 s', 'yo', 10, '1 day'), 2, 'one of each runs, four are set aside');
select lives_ok('select t.keyed(''y'', 1, ''a'', p_at => ''5 s''), t.keyed(''yo'', 1, ''a'', p_at => ''5 s'')', 'there is room for one more');
select t.refused(format('select t.keyed(%L, 1, ''a'', p_at => ''10 s'')', q), 'MR002', 'full', 'and for no other: ' || q) from unnest(array['y', 'yo']) q;

-- ---- becoming ordered: keys that stand in any part ----
select millrace.set_queue('z', '{"concurrency_per_key": 2, "parts": 3}'), t.keyed('z', 4, 'a') as z
\gset
select millrace.set_queue('z', '{"concurrency_per_key": null, "ordered": true}'), t.keyed('z', 4, 'a') as zz
\gset
call t.claim_times('z', '1 s', 'z', 10, 12);
select is((select count(*)::int from t.got g where g.tag like 'z.%'), 1, 'one at a time, though the jobs stand in several parts');

-- ---- jobs of a tenant per time ----
select millrace.set_queue('t', '{"rate_per_tenant": "3/min", "lease": "1 day"}')
\gset
select t.keyed('t', 8, null, 'acme') as acme, t.keyed('t', 2, null, 'zeta') as zeta, t.put(t.at('0'), 't', 5) as plain
\gset
select is(t.n('t1', '1 s', 't', 100), 10, 'three of one tenant, two of the other, and all that have none');
select is(t.aside('t', 't'), 5::bigint, 'the others are set aside');
select is(t.n('t2', '2 s', 't', 100), 0, 'no more in this minute');
select is(millrace.job((:'acme'::bigint[])[8]) ->> 'limited_by', 'rate_per_tenant', 'as their story tells');
select is((select (s.available, s.running, s.scheduled)::text from millrace.stats_at(t.at('2 s'), 't') s), '(5,10,0)', 'they are available');
select millrace.complete_at(t.at('3 s'), t.lease('t1'), null, null)
\gset
call t.claim_times('t3', '60.999999 s', 't', 100, 3);
select is((select count(*)::int from t.got g where g.tag like 't3.%'), 0, 'a job that ends makes no room, nor the last microsecond of the minute');
call t.soon('t4', '61 s', 't', 2);
select is(t.ids('t4'), (:'acme'::bigint[])[4:5], 'then the next ones come, in their order');
call t.soon('t5', '80 s', 't', 100);
select is(t.ids('t5'), (:'acme'::bigint[])[6:6], 'as many as the minute leaves');
call t.claim_times('t6', '120.9 s', 't', 100, 3);
select is((select count(*)::int from t.got g where g.tag like 't6.%'), 0, 'no more');
call t.soon('t7', '121 s', 't', 100);
select is(t.came('t7'), 2, 'two minutes later the two of one minute later make room');
select is((select max(w.n)::int
             from (select count(*) over (order by k.claimed_at range between interval '59.999999 s' preceding and current row) as n
                     from t.got g
                     join millrace.claim k on k.token = split_part(g.lease, '.', 4)::uuid
                    where g.tag like 't%' and g.tenant = 'acme') w), 3, 'by claimed_at no minute has more than three');
select t.keyed('t', 3, null, 'acme', 50, null, '121 s')
\gset
select is(t.n('t8', '122 s', 't', 100), 0, 'new ones find no room');
select t.refused(format('select millrace.run_now(%s)', (select max(d.job_id) from millrace.delayed d where d.lane >> 12 = t.qid('t'))), '22023',
                 'set aside: tenant ''acme'' has used up its rate');
select millrace.set_queue('t', '{"rate_per_tenant": "4/min"}')
\gset
call t.soon('t9', '122 s', 't', 100);
select is(t.came('t9'), 1, 'a rate that is raised counts at once');
select millrace.set_queue('t', '{"rate_per_tenant": null}')
\gset
select is(t.n('t10', '122 s', 't', 100), 2, 'taken away, the rest comes back');
-- What a claim of many finds is counted, too, though its jobs are small and plain otherwise.
select millrace.set_queue('tb', '{"rate_per_tenant": "20/min"}')
\gset
select count(*) from millrace.enqueue_jobs_at(t.at('0'), (select jsonb_agg(jsonb_build_object('kind', 'k', 'queue', 'tb', 'tenant', 't' || i % 3)) from generate_series(1, 300) i))
\gset
call t.claim_times('tb', '1 s', 'tb', 50, 5);
select is((select count(*)::int from t.got g where g.tag like 'tb.%'), 60, 'twenty of each of three tenants');
select is((select array_agg(distinct n)::text from (select count(*) as n from t.got g where g.tag like 'tb.%' group by g.tenant) s), '{20}', 'of each');
-- Long tenants, empty ones.
select millrace.set_queue('tt', '{"rate_per_tenant": "1/min"}'), t.keyed('tt', 2, null, repeat('x', 1000)), t.keyed('tt', 2, null, repeat('x', 999) || 'y'), t.keyed('tt', 2, null, '')
\gset
select is(t.n('tt1', '1 s', 'tt', 100), 3, 'tenants are compared as they are written, an empty name is one');
-- Both: a job needs room for its key and for its tenant.
select millrace.set_queue('tk', '{"concurrency_per_key": 2, "rate_per_tenant": "3/min"}'), t.keyed('tk', 3, 'a', 'acme'), t.keyed('tk', 3, 'b', 'acme'), t.keyed('tk', 3, 'c', 'zeta')
\gset
call t.claim_times('tk1', '1 s', 'tk', 100, 6);
select is((select array_agg(n order by n)::text from (select count(*) as n from t.got g join millrace.jobs j on j.id = g.id where g.tag like 'tk1.%' group by j.ordering_key) s),
          '{1,2,2}', 'two of each key, three of each tenant');
select count(millrace.complete_at(t.at('2 s'), g.lease, array[g.id], null)) from t.got g where g.tag like 'tk1.%'
\gset
call t.claim_times('tk2', '2 s', 'tk', 100, 6);
select is((select count(*)::int from t.got g where g.tag like 'tk2.%'), 1, 'room of a key alone is not enough');
select count(millrace.complete_at(t.at('3 s'), g.lease, array[g.id], null)) from t.got g where g.tag like 'tk2.%'
\gset
call t.claim_times('tk3', '61 s', 'tk', 100, 8);
select is((select count(*)::int from t.got g where g.tag like 'tk3.%'), 3, 'a minute later all that is left comes');
-- The clock is put back: by less than the period it is waited for, by more the starts ahead are forgotten.
select millrace.set_queue('tc', '{"rate_per_tenant": "1/min"}'), t.keyed('tc', 4, null, 'acme')
\gset
select is(t.n('tc1', '1000 s', 'tc', 1), 1, 'one at 1000');
call t.claim_times('tc2', '990 s', 'tc', 1, 3);
select is((select count(*)::int from t.got g where g.tag like 'tc2.%'), 0, 'ten seconds earlier none');
call t.soon('tc3', '100 s', 'tc', 1);
select is(t.came('tc3'), 1, 'a quarter of an hour earlier one');

-- ---- what programs are told ----
select millrace.set_queue('b', '{"concurrency_per_key": 1}'), millrace.set_queue('b2', '{"rate_per_tenant": "1/h"}')
\gset
select is(t.batch('b', 1)::text, '(,,,0)', 'no jobs, and a limit: no row');
select count(millrace.enqueue('k', queue => 'b', ordering_key => 'a')), count(millrace.enqueue('k', queue => 'b2', tenant => 'a')) from generate_series(1, 2)
\gset
select is(t.batch('b', 10)::text, '(t,concurrency,t,1)', 'jobs of a key at once: the lease''s row names the limit');
select is(t.batch('b', 10)::text, '(f,concurrency,f,0)', 'nothing left: a row without a lease, and no time');
select is(t.batch('b2', 10)::text, '(t,rate,t,1)', 'a rate');
select is(t.batch('b2', 10)::text, '(f,rate,t,0)', 'nothing left: a row without a lease, and the time');
select ok((select c.lease_until between now() + interval '59 min' and now() + interval '61 min' from millrace.claim_batch('b2') c), 'which is when the tenant has room');
select millrace.complete((select j.lease from (select k.slot || '.' || k.lane || '.' || k.no || '.' || k.token as lease from millrace.claim k where k.lane >> 12 = t.qid('b') and k.status = 'r') j))
\gset
select is(t.batch('b', 10)::text, '(f,concurrency,t,0)', 'who lets others in is told to ask again');
select is(t.batch('b', 10)::text, '(t,concurrency,t,1)', 'and gets them');

-- ---- the list is small and written seldom; what is gone leaves nothing behind ----
select is((select max(n)::int from (select count(*) as n from millrace.line_list l group by l.queue_id) s), 1, 'a queue has one list');
select millrace.drop_queue('x')
\gset
select is((select count(*)::int from millrace.line_list l where not exists (select from millrace.queue q where q.queue_id = l.queue_id)), 0, 'which goes with it');

select * from finish();
