-- SPDX-License-Identifier: PostgreSQL
-- Fair queues: tenants in turn, newcomers, what is said of a tenant, changes of the setting, and what the rest of the interface makes of tenants.
\ir lib/helpers.psql
select no_plan();

-- Enqueues p_n jobs of a tenant.
create function t.put_for(p_now timestamptz, p_queue text, p_tenant text, p_n int = 1, p_priority int = 50)
returns bigint
language sql
as $$
  select count(millrace.enqueue_at(p_now, 'k', to_jsonb(i), p_queue, p_priority, null, null, null, null, p_tenant, null, null, null, null, null, null, null, null))
    from generate_series(1, p_n) i
$$;
-- Claims and tells whose jobs came: 'a a', '-' for none, '~' for jobs without a tenant.
create function t.who(p_now timestamptz, p_queue text, p_max int = 1)
returns text
language sql
as $$
  select coalesce(string_agg(coalesce(c.tenant, '~'), ' '), '-')
    from millrace.claim_at(p_now, p_queue, 'w', p_max, '1 day', true) c
$$;
-- Several claims, one after the other.
create procedure t.turns(p_now timestamptz, p_queue text, p_max int, p_n int, inout p_got text[])
language plpgsql
as $$
begin
  p_got := '{}';
  for i in 1..p_n loop
    p_got := p_got || t.who(p_now, p_queue, p_max);
    commit;
  end loop;
end $$;

-- ---- turns ----
select millrace.set_queue('fair', '{"fair": true}') \gset
select t.put_for(t.at('0'), 'fair', 'big', 100), t.put_for(t.at('0'), 'fair', 'a'), t.put_for(t.at('0'), 'fair', 'b'), t.put_for(t.at('0'), 'fair', 'c', 3)
\gset
call t.turns(t.at('1 s'), 'fair', 2, 4, '{}') \gset
select is(:'p_got'::text[], array['big big', 'a', 'b', 'c c'], 'each tenant in turn, a batch at most');
call t.turns(t.at('1 s'), 'fair', 2, 4, '{}') \gset
select is(:'p_got'::text[], array['big big', 'c', 'big big', 'big big'], 'who has nothing left is passed over');
select is((select queue || ' ' || coalesce(tenant, '~') || ' ' || status from millrace.jobs where tenant = 'a'), 'fair a running', 'the view shows the queue and the tenant');
select is(millrace.job((select id from millrace.jobs where tenant = 'a')) ->> 'queue', 'fair', 'and so does job()');
select is((select count(*) from millrace.queues where queue = 'fair'), 1::bigint, 'a tenant is no queue of its own');
-- A newcomer is found a second later, without maintain.
select t.put_for(t.at('1.5 s'), 'fair', 'new')
\gset
call t.turns(t.at('2.5 s'), 'fair', 2, 2, '{}') \gset
select ok('new' = any (:'p_got'::text[]), 'a new tenant is found by the claim itself');
select millrace.enqueue('k', queue => 'fair'), t.put_for(t.at('3 s'), 'fair', '')
\gset
call t.turns(t.at('4 s'), 'fair', 2, 3, '{}') \gset
select is((select array_agg(x order by x) from unnest(:'p_got'::text[]) x), array['', 'big big', '~'], 'jobs without a tenant have a turn, and so has the tenant without a name');
-- Where nothing is left the claim looks at once.
select is(t.who(t.at('5 s'), 'fair', 1000), 'big' || repeat(' big', 87), 'the rest of the large one');
select is(t.who(t.at('5.1 s'), 'fair'), '-', 'nothing is left');
select t.put_for(t.at('5.2 s'), 'fair', 'late')
\gset
-- Also where somebody has looked just before it came, and that took long.
select setval(('millrace.fair_at_' || t.qid('fair'))::regclass, millrace.epoch_ms(t.at('6 s')))
\gset
select is(t.who(t.at('5.3 s'), 'fair'), 'late', 'what comes then is found at once, whenever the last look was');
-- Inside a tenant priorities count.
select t.put_for(t.at('6 s'), 'fair', 'p', 1, 90), t.put_for(t.at('6 s'), 'fair', 'q', 1, 90)
\gset
select t.put_for(t.at('6 s'), 'fair', 'p', 1, 10)
\gset
insert into t.got select 'prio', 1, c.* from millrace.claim_at(t.at('7 s'), 'fair', 'w', 9, '1 day', true) c;
insert into t.got select 'prio', 2, c.* from millrace.claim_at(t.at('7 s'), 'fair', 'w', 9, '1 day', true) c;
insert into t.got select 'prio', 3, c.* from millrace.claim_at(t.at('7 s'), 'fair', 'w', 9, '1 day', true) c;
select is((select array_agg(g.tenant || g.priority order by g.ord) from t.got g where g.tag = 'prio'), array['p10', 'q90', 'p90'], 'a tenant with a high priority does not come before the others');

-- ---- 300 tenants, of which one has 2,000 jobs: nobody waits longer than two batches for each ----
select millrace.set_queue('wide', '{"fair": true}') \gset
select count(*) from millrace.enqueue_jobs((select jsonb_agg(jsonb_build_object('kind', 'k', 'queue', 'wide', 'tenant', case when i <= 2000 then 'deep' else 't' || i end))
                                              from generate_series(1, 2299) i))
\gset
create table t.served (at bigserial, tenant text);
create procedure t.drain(p_now timestamptz, p_queue text, p_max int)
language plpgsql
as $$
begin
  loop
    insert into t.served (tenant) select c.tenant from millrace.claim_at(p_now, p_queue, 'w', p_max, '1 day', true) c;
    exit when not found;
    commit;
    p_now := p_now + interval '20 ms';
  end loop;
end $$;
call t.drain(t.at('10 s'), 'wide', 5);
select is((select count(*) from t.served), 2299::bigint, 'all jobs were served');
select is((select count(distinct s.tenant) from t.served s), 300::bigint, 'of all tenants');
select ok((select max(s.at) from t.served s where s.tenant <> 'deep') <= 2 * 5 * 300, 'nobody waited longer than two batches for each tenant');
select ok((select max(s.at) from t.served s where s.tenant <> 'deep') < 700, 'and not even a tenth of the deep one was served before');

-- ---- names are names: long ones, near ones, other alphabets ----
select millrace.set_queue('names', '{"fair": true}') \gset
create table t.name as select repeat('x', 999) || 'a' as tenant union all select repeat('x', 999) || 'b' union all select 'größe' union all select 'Größe'
                    union all select '租户' union all select repeat('ü', 500) union all select ' ' union all select '''; drop table job; --';
select sum(t.put_for(t.at('20 s'), 'names', n.tenant, 2)) from t.name n
\gset
select is((select count(*) from millrace.tenant_stats('names') s join t.name n on n.tenant = s.tenant where s.available = 2), 8::bigint, 'eight names are eight tenants');
call t.turns(t.at('21 s'), 'names', 1, 16, '{}') \gset
select is((select count(distinct x) from unnest((:'p_got'::text[])[1:8]) x), 8::bigint, 'each has its turn');
select is((select count(*) from (select x from unnest(:'p_got'::text[]) x group by x having count(*) = 2) s), 8::bigint, 'and its two jobs');
select t.refused(format('select millrace.enqueue(%L, queue => %L, tenant => %L)', 'k', 'names', repeat('x', 1001)), '22023', 'tenant is 1001 bytes long');

-- ---- pause, resume, depth, figures, purge of one tenant ----
select millrace.set_queue('one', '{"fair": true}') \gset
select t.put_for(t.at('30 s'), 'one', 'a', 3), t.put_for(t.at('30 s'), 'one', 'b', 4), millrace.enqueue('k', queue => 'one', tenant => 'b', delay => '1 hour'),
       millrace.enqueue('k', queue => 'one')
\gset
select is(array[millrace.depth('one'), millrace.depth('one', 'a'), millrace.depth('one', 'b'), millrace.depth('one', 'c'), millrace.depth('nowhere', 'a')], array[8, 3, 4, 0, 0]::bigint[], 'depth');
select millrace.pause('one', 'b')
\gset
call t.turns(t.at('31 s'), 'one', 9, 3, '{}') \gset
select is((select array_agg(x order by x) from unnest(:'p_got'::text[]) x), array['-', 'a a a', '~'], 'a paused tenant has no turn');
select is((select (s.tenant, s.paused, s.available, s.running, s.scheduled)::text from millrace.tenant_stats('one', 'b') s), '(b,t,4,0,1)', 'figures of a tenant');
select is((select array_agg((s.tenant, s.paused, s.available, s.running)::text) from millrace.tenant_stats('one') s), array['(a,f,0,3)', '(b,t,4,0)'], 'and of all');
select is((select (s.available, s.running, s.scheduled)::text from millrace.stats('one') s), '(4,4,1)', 'the queue''s are the sum');
select is((select array_agg(s.tenant) from millrace.tenant_stats('one', max_tenants => 1) s), array['a'], 'no more than asked for');
select is((select count(*) from millrace.tenant_stats('one', 'c')), 0::bigint, 'none of an unknown one');
select millrace.resume('one', 'b')
\gset
select is(t.who(t.at('32.5 s'), 'one', 2), 'b b', 'a tenant goes on');
select millrace.pause('one')
\gset
select is(t.who(t.at('34 s'), 'one', 2), '-', 'the whole queue is paused');
select millrace.resume('one')
\gset
select is(millrace.purge('one', 'b'), 3::bigint, 'purge of a tenant: what is available and what is scheduled');
select is(array[millrace.depth('one'), millrace.depth('one', 'b')], array[0, 0]::bigint[], 'it is gone');
select t.put_for(t.at('40 s'), 'one', 'a', 2), t.put_for(t.at('40 s'), 'one', 'b', 2), millrace.enqueue('k', queue => 'one')
\gset
select is(millrace.purge('one'), 5::bigint, 'purge of the queue has all tenants''');

-- ---- a job's life ----
select millrace.set_queue('life', '{"fair": true, "max_attempts": 2}') \gset
select is(millrace.enqueue('k', queue => 'life', tenant => 'a', unique_key => 'u'), millrace.enqueue('k', queue => 'life', tenant => 'b', unique_key => 'u'), 'a unique key is the queue''s, whoever the tenant is');
select is(t.claim('life', t.at('50 s'), 'life'), array[(select id from millrace.jobs where queue = 'life')], 'claimed');
select is(millrace.fail(t.lease('life'), (t.ids('life'))[1], 'no', '1 second'), 'scheduled', 'failed once');
select is((select status || ' ' || tenant from millrace.jobs where queue = 'life'), 'scheduled a', 'it waits with its tenant');
select is((select s.retrying from millrace.tenant_stats('life', 'a') s), 1::bigint, 'and is counted there');
select millrace.promote(clock_timestamp() + interval '1 hour', 100)
\gset
select is(cardinality(t.claim('life2', t.at('52 s'), 'life')), 1, 'claimed again');
select is(millrace.fail(t.lease('life2'), (t.ids('life2'))[1], 'no'), 'dead', 'failed twice');
select is((select queue || ' ' || tenant from millrace.dead_letters where queue = 'life'), 'life a', 'a dead letter of the queue');
select is((select array[s.dead, (select x.dead from millrace.tenant_stats('life', 'a') x)] from millrace.stats('life') s), array[1, 1]::bigint[], 'counted in both');
select is(millrace.replay_all('life'), 1::bigint, 'replayed');
select is(t.who(t.at('54 s'), 'life'), 'a', 'as a job of its tenant');
select millrace.enqueue('k', queue => 'life', tenant => 'c', ref => 'r')
\gset
insert into t.got select 'done', 1, c.* from millrace.claim_at(t.at('57 s'), 'life', 'w', 1, '1 day', true) c;
select is((select tenant || ref from t.got where tag = 'done'), 'cr', 'tenant and ref come with a job');
select is((millrace.job_by_ref('life', 'r'))::text like '%"c"%', true, 'found by its ref');
select millrace.complete(t.lease('done'))
\gset
select is(millrace.replay_completed('life', now() - interval '1 hour', 'infinity'), 1::bigint, 'completed jobs can be replayed');
select is(t.who(t.at('59 s'), 'life'), 'c', 'as jobs of their tenant');
select is(cardinality(t.claim('cancel', t.at('59 s'), 'life')), 0, 'no more');
select is(millrace.cancel(millrace.enqueue('k', queue => 'life', tenant => 'd')), 'cancelled', 'a waiting job is cancelled');
select is(t.who(t.at('61 s'), 'life'), '-', 'and not delivered');
select millrace.enqueue('k', queue => 'elsewhere', tenant => 'd') as id
\gset
select millrace.change_job(:id, '{"queue": "life"}')
\gset
select is(t.who(t.at('63 s'), 'life'), 'd', 'a job that is moved into a fair queue goes to its tenant');

-- ---- settings ----
select millrace.set_queue('life', '{"lease": "7 seconds"}') \gset
select is((select array_agg(distinct q.lease_time) from millrace.queue q where q.queue_name = 'life'), array['7 seconds']::interval[], 'tenants have the settings of their queue');
select is((select settings ->> 'fair' from millrace.queues where queue = 'life'), 'true', 'and the view shows that it is fair');
select t.refused(format('select millrace.set_queue(%L, %L)', 'life', v), '22023', 'a fair queue cannot have ' || m)
  from (values ('{"concurrency": 1}', 'concurrency'), ('{"rate": "1/s"}', 'rate'), ('{"depth_limit": 1}', 'depth_limit'), ('{"overflow": "x"}', 'overflow'),
               ('{"ordered": true}', 'ordered'), ('{"concurrency_per_key": 1}', 'concurrency_per_key'), ('{"rate_per_tenant": "1/s"}', 'rate_per_tenant'),
               ('{"rate": "1/s", "concurrency": 1}', 'concurrency, rate'), ('{"fair": false, "concurrency": 1}', 'concurrency')) v(v, m);
select t.refused($$ select millrace.set_queue('elsewhere', '{"fair": true, "rate": "1/s"}') $$, '22023', 'a fair queue cannot have rate');
select t.refused($$ select millrace.set_queue('life', '{"fair": 2}') $$, '22023', 'setting fair does not accept');
select t.refused($$ select millrace.set_queue('life', '{"fair": "maybe"}') $$, '22023', 'setting fair does not accept');
select t.refused($$ select millrace.pause('elsewhere', 'a') $$, '22023', 'is not fair');
select t.refused($$ select millrace.resume('elsewhere', 'a') $$, '22023', 'is not fair');
select t.refused($$ select millrace.purge('elsewhere', 'a') $$, '22023', 'is not fair');
select t.refused($$ select * from millrace.tenant_stats('elsewhere') $$, '22023', 'is not fair');
select t.refused($$ select * from millrace.tenant_stats('nowhere') $$, 'MR003', 'does not exist');
select t.refused($$ select * from millrace.tenant_stats(null) $$, 'MR003', 'does not exist');
select t.refused($$ select * from millrace.tenant_stats('life', max_tenants => 0) $$, '22023', 'max_tenants must be from 1');
select t.refused($$ select * from millrace.tenant_stats('life', max_tenants => null) $$, '22023', 'max_tenants must be from 1');
select t.refused($$ select millrace.pause('life', 'nobody') $$, 'MR003', 'has no tenant');
select t.refused($$ select millrace.resume('nowhere', 'a') $$, 'MR003', 'does not exist');

-- ---- on and off with jobs inside ----
select t.put_for(t.at('70 s'), 'change', 'a', 2)
\gset
select millrace.set_queue('change', '{"fair": true}')
\gset
select t.put_for(t.at('70 s'), 'change', 'a', 2), t.put_for(t.at('70 s'), 'change', 'b', 2)
\gset
select millrace.set_queue('change', '{"fair": false}')
\gset
select t.put_for(t.at('70 s'), 'change', 'c', 2)
\gset
select is(millrace.depth('change'), 8::bigint, 'all are there');
call t.turns(t.at('72 s'), 'change', 1, 9, '{}') \gset
select is((select array_agg(x order by x) from unnest(:'p_got'::text[]) x), array['-', 'a', 'a', 'a', 'a', 'b', 'b', 'c', 'c'], 'and all are served');
select is((select settings ->> 'fair' from millrace.queues where queue = 'change'), 'false', 'it is not fair any more');
select millrace.set_queue('change', '{"fair": true}')
\gset
select t.put_for(t.at('74 s'), 'change', 'b')
\gset
select is(t.who(t.at('76 s'), 'change'), 'b', 'fair again');

-- ---- a fair queue as overflow ----
select millrace.set_queue('small', '{"depth_limit": 1, "overflow": "spill"}'), millrace.set_queue('spill', '{"fair": true}')
\gset
select count(*) from millrace.enqueue_jobs('[{"kind": "k", "queue": "small", "tenant": "a"}]')
\gset
select count(*) from millrace.enqueue_jobs('[{"kind": "k", "queue": "small", "tenant": "b"}]')
\gset
select millrace.enqueue('k', queue => 'small', tenant => 'c')
\gset
select is((select array_agg(s.tenant || s.available) from millrace.tenant_stats('spill') s), array['b1', 'c1'], 'what overflows goes to its tenant');

-- ---- the end of a queue ----
select t.put_for(t.at('80 s'), 'one', 'z', 2)
\gset
select t.refused($$ select millrace.drop_queue('one') $$, '55006', 'open leases');
select sum(millrace.release(k.slot || '.' || k.lane || '.' || k.no || '.' || k.token))
  from millrace.claim k
  join millrace.queue q on q.queue_id = k.lane >> 12
 where q.queue_name = 'one'
   and k.status = 'r'
\gset
select millrace.drop_queue('one')
\gset
select is((select count(*) from millrace.queue q where q.queue_name = 'one'), 0::bigint, 'a dropped queue takes its tenants along');
select is((select count(*) from pg_class c where c.relname ~ '^fair_(turn|at)_\d+$'), 2 * (select count(*) from millrace.queue q where q.has_tenants), 'and its sequences');
select millrace.set_queue('one', '{"fair": true}')
\gset
select t.put_for(t.at('80 s'), 'one', 'z', 1)
\gset
select is(t.who(t.at('90 s'), 'one', 5), 'z', 'one of the same name begins anew');

-- ---- upkeep ----
select sum(t.put_for(t.at('100 s'), 'one', 'u' || i, 2)) from generate_series(1, 20) i
\gset
create temporary table duty as select * from millrace.maintain_at(t.at('100 s'));
select is((select r.member_n from millrace.fair_round r join millrace.queue q on q.queue_id = r.queue_id where q.queue_name = 'one' order by r.no desc limit 1), 20, 'maintain makes the round');
select is((select count(*) from millrace.fair_round r join millrace.queue q on q.queue_id = r.queue_id where q.queue_name = 'one' and r.made_at = t.at('100 s')), 1::bigint, 'once');
create temporary table duty2 as select * from millrace.maintain_at(t.at('102 s'));
select is((select max(r.made_at) from millrace.fair_round r join millrace.queue q on q.queue_id = r.queue_id where q.queue_name = 'one'), t.at('100 s'), 'and no other while nothing changes');
create temporary table duty3 as select * from millrace.maintain_at(t.at('1 hour 102 s'));
select is((select max(r.made_at) from millrace.fair_round r join millrace.queue q on q.queue_id = r.queue_id where q.queue_name = 'one'), t.at('1 hour 102 s'), 'but in each leaf one');
select is(t.who(t.at('1 hour 103 s'), 'one', 5), 'u1 u1', 'and turns go on there');
select is((select array[sum(s.available), millrace.depth('one')] from millrace.tenant_stats('one') s), array[38, 38]::numeric[], 'counts agree');

-- ---- ---- the turn of the hour, with many tenants and a look at them a moment ago ----
select millrace.set_queue('hour', '{"fair": true}')
\gset
select date_trunc('hour', t.at('2 hours')) as hour \gset
select sum(t.put_for(:'hour'::timestamptz - interval '3 s', 'hour', 't' || i, 2)) from generate_series(1, 66) i
\gset
select isnt(t.who(:'hour'::timestamptz - interval '2 s', 'hour'), '-', 'one has its turn before the hour is over');
-- As after a look that took long.
select setval(('millrace.fair_at_' || t.qid('hour'))::regclass, millrace.epoch_ms(:'hour'::timestamptz + interval '7 s'))
\gset
select isnt(t.who(:'hour'::timestamptz + interval '1 s', 'hour'), '-', 'and one after it, whose round is not in the leaf of this hour yet');

-- the end of the room ----
select setval('millrace.tenant_seq', 524287), setval('millrace.queue_seq', 65535)
\gset
select t.refused($$ select t.put_for(t.at('1 hour 104 s'), 'one', 'more') $$, '54000', 'there is no room for tenant ''more''');
select t.refused($$ select millrace.enqueue_many('k', '{1}', queue => 'more') $$, '54000', 'there is no room for queue ''more''');
select is(t.put_for(t.at('1 hour 104 s'), 'one', 'u1'), 1::bigint, 'known ones go on');

select * from finish();
