-- SPDX-License-Identifier: PostgreSQL
-- Limits of a queue: jobs at once and jobs started per time. Races are in tests/isolation/specs/limit-claim.spec, killed workers in
-- tests/fault/limits.bats.
\ir lib/helpers.psql
select no_plan();

-- Claims and tells how many jobs came.
create function t.n(p_tag text, p_after interval, p_queue text, p_max int, p_lease interval = null)
returns int
language sql
as $$
  select cardinality(t.claim(p_tag, t.at(p_after), p_queue, p_max, p_lease))
$$;
-- The row that claim_packs returns for the lease, and the number of jobs, at the server's own time.
create function t.batch(p_queue text, p_max int, out lease boolean, out word text, out wait boolean, out jobs bigint)
language sql
as $$
  select bool_or(c.lease is not null), max(c.kind) filter (where c.id is null), bool_or(c.lease_until is not null) filter (where c.id is null),
         coalesce(sum(case when c.id is not null then coalesce(cardinality(c.pack), 1) end), 0)
    from millrace.claim_packs(p_queue, 'w', p_max) c
$$;

-- ---- settings ----
select millrace.set_queue('s', '{"concurrency": 4, "rate": "100/s"}')
\gset
select is((select q.settings -> 'concurrency' from millrace.queues q where q.queue = 's'), '4', 'the view shows concurrency');
select is((select q.settings ->> 'rate' from millrace.queues q where q.queue = 's'), '100/s', 'the view shows rate');
select millrace.set_queue('s', '{"concurrency": null, "rate": null}')
\gset
select is((select q.settings -> 'concurrency' from millrace.queues q where q.queue = 's'), 'null', 'null takes concurrency away');
select is((select q.settings -> 'rate' from millrace.queues q where q.queue = 's'), 'null', 'null takes rate away');
select lives_ok('select millrace.set_queue(''s'', ''{"concurrency": 1}''), millrace.set_queue(''s'', ''{"concurrency": 1000000}'')', 'from 1 to a million');

select t.all_rows() as before
\gset
select t.refused(format('select millrace.set_queue(%L, %L)', 's', r.settings), '22023', r.message)
  from (values ('{"concurrency": 0}', 'setting concurrency must be from 1 to 1000000, not 0'),
               ('{"concurrency": -1}', 'setting concurrency must be from 1 to 1000000, not -1'),
               ('{"concurrency": 1000001}', 'setting concurrency must be from 1 to 1000000'),
               ('{"concurrency": 99999999999999999999}', 'setting concurrency does not accept'),
               ('{"concurrency": 2.5}', 'setting concurrency does not accept ''2.5'''),
               ('{"concurrency": true}', 'setting concurrency does not accept ''true'''),
               ('{"concurrency": "many"}', 'setting concurrency does not accept ''many'''),
               ('{"concurrency": [4]}', 'setting concurrency does not accept'),
               ('{"rate": "100"}', '''100'': it has no slash'),
               ('{"rate": 100}', '''100'': it has no slash'),
               ('{"rate": ""}', 'it has no slash'),
               ('{"rate": "1/2/s"}', 'no slash, or more than one'),
               ('{"rate": "1.5/s"}', '''1.5'' is not a whole number of jobs'),
               ('{"rate": "-1/s"}', '''-1'' is not a whole number'),
               ('{"rate": "/s"}', ''''' is not a whole number'),
               ('{"rate": "ten/s"}', '''ten'' is not a whole number'),
               ('{"rate": "5/"}', ''''' is not a unit of time'),
               ('{"rate": "5/m"}', '''m'' is not a unit of time'),
               ('{"rate": "5/1.5s"}', '''.5s'' is not a unit of time'),
               ('{"rate": "0/s"}', 'it allows no job at all'),
               ('{"rate": "1000000001/s"}', 'it allows more than 1000000000 jobs'),
               ('{"rate": "99999999999999999999999999/s"}', 'it allows more than'),
               ('{"rate": "5/0s"}', 'its time is not from 1s to 1d'),
               ('{"rate": "5/2d"}', 'its time is not from 1s to 1d'),
               ('{"rate": "5/99999999999999999999999s"}', 'its time is not from 1s to 1d'),
               ('{"rate": true}', '''true'': it has no slash'),
               ('{"rate": {"n": 1}}', 'setting rate does not accept')) r(settings, message);
select is(t.all_rows(), :'before', 'nothing was changed');
select throws_ok('select millrace.set_queue(''s'', ''{"rate": "' || repeat('9', 5000) || '"}'')', '22023', null, 'a long text is refused');
select is((select (r.most, r.period)::text from millrace.rate_parse(t.rate) r), t.read, t.rate)
  from (values ('100/s', '(100,00:00:01)'), ('5000/min', '(5000,00:01:00)'), ('20/h', '(20,01:00:00)'), ('10000/d', '(10000,24:00:00)'),
               (' 3 / 2s ', '(3,00:00:02)'), ('3/ 90 min', '(3,01:30:00)'), ('1000000000/s', '(1000000000,00:00:01)'), (null, '(,)')) t(rate, read);
do $$
declare
  v_hint text;
begin
  perform millrace.set_queue('s', '{"concurrency": 0}');
exception when others then
  get stacked diagnostics v_hint = pg_exception_hint;
  create table t.hint as select v_hint as hint;
end $$;
select is((select h.hint from t.hint h), 'To stop a queue, pause it; null takes the limit away.', 'who sets 0 is told to pause');

-- ---- jobs at once ----
select millrace.set_queue('c', '{"concurrency": 5, "lease": "30s"}')
\gset
select t.put(t.at('0'), 'c', 100)
\gset
select is(t.n('c1', '1 s', 'c', 3), 3, 'below the limit a claim gets what it asks for');
select is(t.n('c2', '1 s', 'c', 3), 2, 'then what is left');
select is(t.n('c3', '1 s', 'c', 3), 0, 'and at the limit nothing');
select millrace.complete_at(t.at('2 s'), t.lease('c1'), (t.ids('c1'))[1:2], null)
\gset
select is(t.n('c4', '3 s', 'c', 10), 2, 'each job that ends makes room, its claim need not');
select millrace.fail_at(t.at('3 s'), t.lease('c1'), (t.ids('c1'))[3], 'no', null, true, null)
\gset
select is(t.n('c5', '3 s', 'c', 10), 1, 'one that fails, too');
select millrace.release_at(t.at('3 s'), t.lease('c2'), (t.ids('c2'))[1:1])
\gset
select is(t.n('c6', '3 s', 'c', 10), 1, 'one that is released, too');
select millrace.heartbeat_at(t.at('4 s'), t.lease('c4'), null)
\gset
select is(t.n('c7', '4 s', 'c', 1), 0, 'a heartbeat changes nothing');
select millrace.set_queue('c', '{"concurrency": 7}')
\gset
select is(t.n('c8', '4 s', 'c', 10), 2, 'a limit that is raised counts at once');
select millrace.set_queue('c', '{"concurrency": 2}')
\gset
select millrace.complete_at(t.at('5 s'), t.lease('c8'), null, null)
\gset
select is(t.n('c9', '5 s', 'c', 10), 0, 'one that is lowered keeps new jobs back until enough have ended');
select millrace.complete_at(t.at('5 s'), t.lease('c4'), null, null), millrace.complete_at(t.at('5 s'), t.lease('c5'), null, null),
       millrace.complete_at(t.at('5 s'), t.lease('c6'), null, null)
\gset
select is(t.n('c10', '5 s', 'c', 10), 1, 'and then the new one holds');
select is((select s.running from millrace.stats_at(t.at('6 s'), 'c') s), 2::bigint, 'stats agrees');
select millrace.pause('c')
\gset
select is(t.n('c11', '5 s', 'c', 10), 0, 'a paused queue gives nothing');
select millrace.resume('c'), millrace.set_queue('c', '{"concurrency": null}')
\gset
select is(t.n('c12', '6 s', 'c', 10), 10, 'without a limit there is none');

-- ---- leases that end: nobody but claimers calls in ----
select millrace.set_queue('l', '{"concurrency": 3, "lease": "10s"}')
\gset
select t.put(t.at('0'), 'l', 20)
\gset
select is(t.n('l1', '10 s', 'l', 3), 3, 'three run');
select is(t.n('l2', '19 s', 'l', 1), 0, 'as long as their lease holds there is no room');
select setval('millrace.upkeep_clock', millrace.epoch_ms(t.at('20.2 s')))
\gset
select is(t.n('l3', '20.1 s', 'l', 2), 2, 'with its end there is, though the slice of upkeep is not due');
select is(t.n('l4', '20.1 s', 'l', 5), 1, 'and all of it comes back');
select is((select count(*)::int from millrace.claim k where k.lane >> 12 = t.qid('l') and k.status = 'l'), 1, 'the lease was taken back');
select is((select count(distinct i)::int from unnest(t.ids('l3') || t.ids('l4')) i), 3, 'no job came twice');
select throws_ok(format('select millrace.complete_at(%L, %L, null, null)', t.at('21 s'), t.lease('l1')), 'MR001', null, 'the old lease is lost');
-- In a transaction that has written already nothing is taken back: its locks would last as long as it does.
create function t.write_and_claim() returns int language plpgsql as $$
begin
  perform pg_current_xact_id();
  return t.n('l5', '31 s', 'l', 1);
end $$;
select setval('millrace.upkeep_clock', millrace.epoch_ms(t.at('31 s')))
\gset
select is(t.write_and_claim(), 0, 'a transaction that has written takes no lease back');
select is(t.n('l6', '31 s', 'l', 3), 3, 'the next claim does');

-- ---- rows that are passed over do not run ----
select millrace.set_queue('o', '{"concurrency": 2, "rate": "3/min"}')
\gset
select count(millrace.enqueue_at(t.at('0'), 'k', '{}', 'o', 50, null, null, null, null, null, null, null, null, '1 s', null, null, null, null))
  from generate_series(1, 5)
\gset
select (t.put(t.at('0'), 'o', 5))[1] as first
\gset
select millrace.cancel_at(t.at('1 s'), :first, 'no')
\gset
select is(t.n('o1', '10 s', 'o', 2), 2, 'expired and cancelled jobs take no room');
select is((select k.n - k.open_n from millrace.claim k where k.lane >> 12 = t.qid('o') order by k.no desc limit 1), 6, 'though the claim has passed them');
select is(t.n('o2', '10 s', 'o', 2), 0, 'two run');
select millrace.complete_at(t.at('11 s'), t.lease('o1'), null, null)
\gset
select is(t.n('o3', '11 s', 'o', 2), 1, 'and they were not started: the rate leaves one');

-- ---- several lanes ----
select millrace.set_queue('p', '{"concurrency": 6, "parts": 4}')
\gset
select t.put(t.at('0'), 'p', 256, 10), t.put(t.at('0'), 'p', 256, 20)
\gset
select sum(t.n('p' || i, '1 s', 'p', 2)) as n from generate_series(1, 8) i
\gset
select is(:n, 6, 'the limit is the queue''s, whatever parts and priorities there are');
select is((select s.running from millrace.stats_at(t.at('1 s'), 'p') s), 6::bigint, 'stats agrees');
select millrace.complete_at(t.at('2 s'), t.lease('p1'), null, null)
\gset
select is(t.n('p9', '2 s', 'p', 100), 2, 'room in one lane is room in all');

-- ---- rotation, and the ledger behind ----
select millrace.set_queue('r', '{"concurrency": 4}'), t.put(t.at('0'), 'r', 2000)
\gset
select is(t.n('r1', '1 s', 'r', 1, '1 day'), 1, 'a claim before the rotation');
select setval('millrace.seg_seq', pg_sequence_last_value('millrace.seg_seq'::regclass) + 1)
\gset
insert into millrace.segment (seg, closed_xid, closed_at, closed_pos)
select pg_sequence_last_value('millrace.seg_seq'::regclass) - 1, pg_current_xact_id(), t.at('1 s'), 0;
select is(t.n('r2', '2 s', 'r', 10, '1 day'), 3, 'counts after it');
create function t.churn(p_n int) returns void language plpgsql as $$
begin
  for i in 1 .. p_n loop
    perform millrace.complete_at(t.at('3 s'), t.lease('churn' || i - 1), null, null) where i > 1;
    perform t.claim('churn' || i, t.at('3 s'), 'r', 1, '1 day');
  end loop;
end $$;
select millrace.complete_at(t.at('3 s'), t.lease('r2'), (t.ids('r2'))[1:1], null)
\gset
select t.churn(250)
\gset
select is((select count(*)::int from t.got g where g.tag like 'churn%'), 250, 'one of four runs on, the others stay');
select ok((select t.settled_no from millrace.tally t where t.lane >> 12 = t.qid('r') order by t.no desc limit 1) >= 150, 'claims bring the ledger on');
select is((select cardinality(t.open_nos) from millrace.tally t where t.lane >> 12 = t.qid('r') order by t.no desc limit 1), 2, 'with the claims that are open');
select is(t.n('r3', '4 s', 'r', 10), 0, 'four run');
select is(millrace.depth('r'), 2000::bigint - 4 - 250, 'depth is right beside it');
select is((select s.running from millrace.stats_at(t.at('5 s'), 'r') s), 4::bigint, 'stats, too');

-- ---- rate ----
select millrace.set_queue('t', '{"rate": "10/s"}'), t.put(t.at('0'), 't', 1000)
\gset
select is(t.n('t1', '1 s', 't', 4), 4, 'four at 1.0');
select is(t.n('t2', '1.5 s', 't', 100), 6, 'six at 1.5: ten in this second');
select is(t.n('t3', '1.9 s', 't', 100), 0, 'none at 1.9');
select is(t.n('t4', '1.999999 s', 't', 100), 0, 'nor a microsecond before the first leave the period');
select is(t.n('t5', '2 s', 't', 100), 4, 'four at 2.0, when the four of 1.0 do');
select is(t.n('t6', '2.4 s', 't', 100), 0, 'none at 2.4');
select is(t.n('t7', '2.5 s', 't', 3), 3, 'three at 2.5');
select is(t.n('t8', '2.6 s', 't', 100), 3, 'the rest of them at 2.6');
select is(t.n('t9', '2.6 s', 't', 100), 0, 'no more');
select is((select max(w.n)::int
             from (select sum(k.n) over (order by k.claimed_at range between interval '0.999999 s' preceding and current row) as n
                     from millrace.claim k
                    where k.lane >> 12 = t.qid('t')) w), 10, 'by claimed_at no period of a second has more than ten');
select millrace.complete_at(t.at('2.6 s'), t.lease('t8'), null, null)
\gset
select is(t.n('t10', '2.7 s', 't', 100), 0, 'a job that ends makes no room in a rate');
select is(t.n('t11', '100 s', 't', 100), 10, 'what was not used is not saved up');
select is(t.n('t12', '99 s', 't', 100), 0, 'a claim with an earlier time counts the later start');
select is(t.n('t13', '50 s', 't', 100), 10, 'but not one from before the clock was put back by more than a period');
select is(t.n('t14', '50.5 s', 't', 100), 0, 'and goes on from there');
select millrace.set_queue('t', '{"rate": "12/s"}')
\gset
select is(t.n('t15', '50.5 s', 't', 100), 2, 'a rate that is raised counts at once');
select millrace.set_queue('t', '{"rate": "1/d"}')
\gset
select is(t.n('t16', '3600 s', 't', 100), 0, 'with a longer period what was started before counts');
select is(t.n('t17', '1 day 1 min', 't', 100), 1, 'a day later it does not');
select is((select array_agg(distinct s.slot / 4 order by s.slot / 4) from millrace.started s where s.queue_id = t.qid('t')), array[0, 1],
          'long periods have leaves of their own');
-- Several lanes.
select millrace.set_queue('tp', '{"rate": "7/min", "parts": 3}'), t.put(t.at('0'), 'tp', 200, 10), t.put(t.at('0'), 'tp', 200, 90)
\gset
select sum(t.n('tp' || i, '1 s', 'tp', 2)) as n from generate_series(1, 10) i
\gset
select is(:n, 7, 'a rate is the queue''s, whatever parts and priorities there are');
-- A claim that is rolled back has started nothing.
select millrace.set_queue('tr', '{"rate": "2/min", "concurrency": 2}'), t.put(t.at('0'), 'tr', 10)
\gset
do $$
begin
  perform t.claim('tr0', t.at('1 s'), 'tr', 2);
  raise exception 'no';
exception when raise_exception then
  null;
end $$;
select is(t.n('tr1', '1 s', 'tr', 10), 2, 'a claim that is rolled back has started nothing and runs nothing');

-- ---- what programs are told ----
select millrace.set_queue('b', '{"concurrency": 1}'), millrace.set_queue('b2', '{"rate": "1/h"}'), millrace.set_queue('b3', '{}')
\gset
select is(t.batch('b', 1)::text, '(,,,0)', 'no jobs, and a limit: no row');
select count(*) from unnest(array['b', 'b2', 'b3']) q cross join lateral millrace.enqueue_many('k', array['{}', '{}']::jsonb[], q)
\gset
select is(t.batch('b', 10)::text, '(t,concurrency,t,1)', 'jobs at once: the lease''s row names the limit');
select is(t.batch('b', 10)::text, '(f,concurrency,f,0)', 'nothing left: a row without a lease, and no time');
select is(t.batch('b2', 10)::text, '(t,rate,t,1)', 'a rate');
select is(t.batch('b2', 10)::text, '(f,rate,t,0)', 'nothing left: the row says until when');
select is(t.batch('b3', 10)::text, '(t,,t,2)', 'without limits nothing is said');
select is((select count(*)::int from millrace.claim('b', max_jobs => 10)), 0, 'claim just returns nothing');
select is((select date_part('epoch', max(c.lease_until) - max(c.created_at)) between 3500 and 3600 from millrace.claim_batch('b2') c), true, 'that is when the first start is an hour old');

-- ---- disk: leaves that nobody needs any more ----
insert into millrace.started (slot, queue_id, started_at, started_total, started_n)
select millrace.started_slot(t.at('10 hours'), '1 s'), t.qid('s'), t.at('10 hours'), i, 1 from generate_series(1, 2000) i;
select t.n('u1', '12 hours', 'r', 1)
\gset
select millrace.clean(t.at('11 hours'))
\gset x
select is((select count(*)::int from millrace.started s where s.queue_id = t.qid('s')), 2000, 'starts of the last hours stay');
select millrace.clean(t.at('13 hours'))
\gset x
select is((select count(*)::int from millrace.started s where s.queue_id = t.qid('s')), 0, 'before its leaf is used again it is emptied');

select * from finish();
