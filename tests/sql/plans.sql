-- SPDX-License-Identifier: PostgreSQL
-- Plans: made on an empty log, they must hold when there are many rows and nobody has analyzed. What a call reads is counted, with the
-- counters that the server keeps of the current transaction.
\ir lib/helpers.psql
select no_plan();

\ir lib/plans.psql
-- Makes the next claim do its slice of promotion and rescue.
create function t.due() returns void language sql as $$ select setval('millrace.upkeep_clock', 0) $$;

-- The counters count: without this everything below would pass.
select ok((t.cost('select count(*) from millrace.segment g where g.seg >= 0') ->> 'segment') is not null, 'there are counters');
select t.put(t.at('0'), 'probe', 320)
\gset
select ok((t.cost('select count(*) from millrace.job_1') ->> 'seq_rows')::int >= 10, 'a sequential scan is seen');

-- ---- every plan is made on an empty log, in this session ----
select millrace.set_queue('q', '{}'), millrace.set_queue('two', '{}')
\gset
-- What failed is not due before the end: promotion below has what it is given, on a slow machine, too.
select millrace.set_retry('k', base => '1 day', cap => '2 days')
\gset
select count(*) from millrace.claim('q', 'w', 100)
\gset
insert into t.got select 'warm', 1, c.* from (select millrace.enqueue('k', queue => 'q')) e cross join millrace.claim('q') c;
insert into t.got select 'warm', 1, c.* from millrace.claim('q', lease_for => '1 hour') c;
select millrace.complete(t.lease('warm'))
\gset
select count(*) from millrace.enqueue_many('k', array['{}', '{}', '{}', '{}']::jsonb[], 'q')
\gset
insert into t.got select 'warm2', 1, c.* from millrace.claim('q', 'w', 4, '1 hour') c;
select millrace.complete(t.lease('warm2'), (t.ids('warm2'))[1:1]), millrace.fail(t.lease('warm2'), (t.ids('warm2'))[2], 'e', '1 day'), millrace.release(t.lease('warm2'), (t.ids('warm2'))[3:3]),
       (millrace.heartbeat(t.lease('warm2'))).lease_until, millrace.complete(t.lease('warm2')), millrace.depth('q'), (select count(*) from millrace.stats('q'))
\gset
insert into t.got select 'warm3', 1, c.* from millrace.claim('q') c;
select millrace.progress(t.lease('warm3'), (t.ids('warm3'))[1], 50)
\gset
select millrace.complete(t.lease('warm3')), millrace.job((t.ids('warm3'))[1]) ->> 'status' as status, (millrace.outcome((t.ids('warm3'))[1])).status as ended
\gset
select count(*) from millrace.enqueue_many('k', array['{}', '{}']::jsonb[], 'q')
\gset
insert into t.got select 'warm4', 1, c.* from millrace.claim('q', 'w', 4) c;
select millrace.finish(t.lease('warm4'), jsonb_build_array(jsonb_build_object('id', (t.ids('warm4'))[1], 'outcome', 'failed', 'retry_in', '1 day'),
                                                           jsonb_build_object('id', (t.ids('warm4'))[2], 'outcome', 'completed')))
\gset
select t.due()
\gset
select count(*) from millrace.claim('two')
\gset
select millrace.set_queue('limited', '{"concurrency": 2, "rate": "1000000/min"}'), millrace.enqueue('k', queue => 'limited')
\gset
insert into t.got select 'warm5', 1, c.* from millrace.claim('limited', 'w', 10, '1 hour') c;
select count(*), millrace.complete(t.lease('warm5')) from millrace.claim('limited', 'w', 10, '1 hour')
\gset

-- ---- then 20,000 jobs, 2,000 claims and 20,000 delayed jobs, and no analyze ----
select count(*) from millrace.enqueue_many('k', array(select jsonb_build_object('i', i) from generate_series(1, 20000) i), 'q')
\gset
select count(*) from millrace.enqueue_many('k', array(select jsonb_build_object('i', i) from generate_series(1, 2000) i), 'q', 10)
\gset
select count(*) from millrace.enqueue_many('k', array_fill('{}'::jsonb, array[20000]), 'later', 50, now() + interval '3 days')
\gset
select count(*) from millrace.enqueue_many('k', array_fill('{}'::jsonb, array[20000]), 'later', 50, now() + interval '10 minutes')
\gset
-- Many small claims: open ones, and finished ones.
create procedure t.many_claims(p_n int)
language plpgsql
as $$
declare
  v_lease text;
begin
  for i in 1 .. p_n loop
    select c.lease into v_lease from millrace.claim('q', 'w', 1, '1 hour') c;
    if i % 2 = 0 then
      perform millrace.complete(v_lease);
    end if;
    commit;
  end loop;
end $$;
call t.many_claims(2000);
select is((select count(*) from millrace.claim k where k.status = 'r'), 1000::bigint, 'a thousand open claims among two thousand');
select is((select coalesce(max(c.reltuples), -1) <= 0 from pg_class c where c.oid = 'millrace.job_1'::regclass), true, 'the planner knows of no rows');

-- ---- the calls ----
select t.cheap(t.cost($$ insert into t.got select 'b1', row_number() over (), c.* from millrace.claim('q', 'w', 100, '1 hour') c $$), '{"job": 210, "claim": 12, "delayed": 0, "tally": 2}', 'claim of 100 from 20,000');
select is(cardinality(t.ids('b1')), 100, 'it got them');
select t.cheap(t.cost($$ insert into t.got select 'b2', row_number() over (), c.* from millrace.claim('q', 'w', 100, '1 hour') c $$), '{"job": 210, "claim": 12}', 'the next claim');
select t.cheap(t.cost($$ select count(*) from millrace.claim_batch('q', 'w', 100, '1 hour') c $$), '{"job": 210, "claim": 12}', 'claim_batch');
select t.cheap(t.cost($$ select count(*) from millrace.claim_packs('q', 'w', 100, '1 hour') c $$), '{"job": 210, "claim": 12}', 'claim_packs');
select t.cheap(t.cost($$ insert into t.got select 'b3', row_number() over (), c.* from millrace.claim('q', 'w', 1, '1 hour') c $$), '{"job": 6, "claim": 12}', 'claim of one');
select t.cheap(t.cost($$ select count(*) from millrace.claim('two') $$), '{"job": 2, "claim": 12, "delayed": 0}', 'an empty claim beside them');
select t.cheap(t.cost($$ select millrace.complete(t.lease('b1')) $$), '{"job": 0, "claim": 3}', 'complete of a batch');
select t.cheap(t.cost($$ select millrace.complete(t.lease('b2'), (t.ids('b2'))[1:1]) $$), '{"job": 0, "claim": 5}', 'complete of one in a batch');
select t.cheap(t.cost($$ select millrace.fail(t.lease('b2'), (t.ids('b2'))[2], 'e') $$), '{"job": 3, "claim": 5}', 'fail');
select t.cheap(t.cost($$ select millrace.release(t.lease('b2'), (t.ids('b2'))[3:3]) $$), '{"job": 3, "claim": 5}', 'release');
select t.cheap(t.cost($$ select millrace.requeue(t.lease('b2'), (t.ids('b2'))[4]) $$), '{"job": 3, "claim": 5}', 'requeue');
select t.cheap(t.cost($$ select millrace.heartbeat(t.lease('b2')) $$), '{"job": 0, "claim": 3}', 'heartbeat');
select t.cheap(t.cost($$ select millrace.progress(t.lease('b2'), (t.ids('b2'))[6], 50) $$), '{"job": 0, "claim": 3, "report": 0}', 'progress');
select t.cheap(t.cost($$ select millrace.finish(t.lease('b2'), jsonb_build_array(jsonb_build_object('id', (t.ids('b2'))[5], 'outcome', 'completed'))) $$), '{"job": 0, "claim": 5}', 'finish');
select t.cheap(t.cost($$ select millrace.finish(t.lease('b2'), (select jsonb_agg(jsonb_build_object('id', i, 'outcome', case when ord > 10 then 'completed' else 'failed' end))
                                                                      from unnest((t.ids('b2'))[21:60]) with ordinality u(i, ord))) $$), '{"job": 30, "claim": 5}', 'finish of forty, ten of them failed');
select t.cheap(t.cost($$ select millrace.job((t.ids('b2'))[6]) $$), '{"job": 8, "claim": 200, "delayed": 2}', 'job: a story');
select t.cheap(t.cost($$ select millrace.outcome((t.ids('b2'))[6]) $$), '{"job": 4, "claim": 200, "delayed": 0, "result": 1, "report": 2}', 'outcome: a look');
select count(millrace.progress(t.lease('b3'), (t.ids('b3'))[1], 50, 'note ' || i)) from generate_series(1, 3000) i
\gset
select t.cheap(t.cost($$ select millrace.job((t.ids('b3'))[1]) $$), '{"job": 8, "claim": 200, "report": 4}', 'job: a story with thousands of reports');
select t.cheap(t.cost($$ select millrace.outcome((t.ids('b3'))[1]) $$), '{"job": 6, "claim": 200, "report": 2}', 'outcome: a look at it');
select t.cheap(t.cost($$ select millrace.enqueue('k', queue => 'q') $$), '{"job": 0, "claim": 0, "delayed": 0}', 'enqueue');
select t.cheap(t.cost($$ select count(*) from millrace.enqueue_many('k', array_fill('{}'::jsonb, array[100]), 'q') $$), '{"job": 0, "claim": 0}', 'enqueue_many');
-- Depth: each job is counted once; from then on the depth costs what came since.
select millrace.depth('q')
\gset
select setval('millrace.upkeep_clock', millrace.epoch_ms(clock_timestamp()))
\gset
select t.cheap(t.cost($$ select millrace.depth('q') $$), '{"job": 10, "claim": 2100}', 'depth, once counted');
-- Promote: a hundred that are due among 40,000.
select count(*) from millrace.enqueue_many('k', array_fill('{}'::jsonb, array[100]), 'soon', 50, clock_timestamp() + interval '1 millisecond')
\gset
select pg_sleep(0.005)
\gset
select t.due()
\gset
select t.cheap(t.cost($$ select count(*) from millrace.claim('two') $$), '{"delayed": 500, "job": 250, "claim": 20}', 'promotion of a hundred among forty thousand');
select is((select count(*) from millrace.claim('soon', 'w', 200)), 100::bigint, 'they were promoted');
-- Rescue: one lease that has expired among a thousand that have not.
insert into t.got select 'r', 1, c.* from millrace.claim('q', 'w', 5, '1 millisecond') c;
select pg_sleep(0.005)
\gset
select t.due()
\gset
select t.cheap(t.cost($$ select count(*) from millrace.claim('two') $$), '{"claim": 700, "job": 20, "delayed": 5}', 'rescue of one lease among a thousand');
select throws_ok(format('select millrace.complete(%L)', t.lease('r')), 'MR001', null, 'it was rescued');

-- Parking: what a thousand long leases hold goes off the segment, and nothing else is looked at. With the settings of maintain.
set plan_cache_mode = force_generic_plan;
set enable_seqscan = off;
set enable_bitmapscan = off;
select t.cheap(t.cost(format('select millrace.park(clock_timestamp(), row(%s, %L, now(), 0, false, 0, false, false)::millrace.segment)', pg_sequence_last_value('millrace.seg_seq'), '3')),
               '{"job": 40000, "claim": 9000, "seq": 1, "seq_rows": 1}', 'parking of a thousand leases');      -- one row of what is parked: is there any?

-- Limits: what runs and what was started is found without the history of 1,500 claims, one of which is open from its beginning on.
select count(*) from millrace.enqueue_many('k', array_fill('{}'::jsonb, array[20000]), 'limited')
\gset
create procedure t.limited_claims(p_n int)
language plpgsql
as $$
declare
  v_lease text;
begin
  perform millrace.claim('limited', 'w', 1, '1 hour');
  commit;
  for i in 1 .. p_n loop
    select c.lease into v_lease from millrace.claim('limited', 'w', 1, '1 hour') c;
    commit;
    perform millrace.complete(v_lease);
    commit;
  end loop;
end $$;
call t.limited_claims(1500);
select is((select array[count(*), count(*) filter (where k.status = 'r')] from millrace.claim k where k.lane >> 12 = t.qid('limited') and k.n > 0), array[1502, 1]::bigint[], 'all went through');
select setval('millrace.upkeep_clock', millrace.epoch_ms(clock_timestamp()))      -- no slice of upkeep here
\gset
select t.cheap(t.cost($$ insert into t.got select 'l1', 1, c.* from millrace.claim('limited', 'w', 1, '1 hour') c $$), '{"job": 6, "claim": 120, "tally": 3, "started": 16}', 'a claim below its limits');
select is(cardinality(t.ids('l1')), 1, 'it got its job');
select setval('millrace.upkeep_clock', millrace.epoch_ms(clock_timestamp()))      -- no slice of upkeep here
\gset
select t.cheap(t.cost($$ select count(*) from millrace.claim('limited', 'w', 10, '1 hour') $$), '{"job": 0, "claim": 120, "tally": 3, "started": 16}', 'and one at the limit');

select * from finish();
