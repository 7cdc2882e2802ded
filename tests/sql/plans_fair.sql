-- SPDX-License-Identifier: PostgreSQL
-- Plans of fair queues: made on an empty log, they hold with 500 tenants, of which one is deep. A claim reads its own jobs, a few claims and a round.
\ir lib/helpers.psql
select no_plan();
\ir lib/plans.psql
set synchronous_commit = off;

-- ---- plans are made on an empty log, in this session ----
select millrace.set_queue('f', '{"fair": true}'), millrace.set_queue('plain', '{}')
\gset
select millrace.enqueue('k', queue => 'f', tenant => 'first'), count(*) from millrace.claim('f', 'w', 10)
\gset
select count(*) from millrace.claim('f', 'w', 10, '1 hour')
\gset
select count(*) from millrace.claim('f', 'w', 1, '1 hour')
\gset
select millrace.depth('f'), count(*) from millrace.tenant_stats('f')
\gset

-- ---- then 500 tenants, 20,000 jobs of one of them, and no analyze ----
select count(*) from millrace.enqueue_jobs((select jsonb_agg(jsonb_build_object('kind', 'k', 'queue', 'f', 'tenant', 'deep', 'ref', 'r' || i)) from generate_series(1, 20000) i))
\gset
select count(*) from millrace.enqueue_jobs((select jsonb_agg(jsonb_build_object('kind', 'k', 'queue', 'f', 'tenant', 't' || i % 500)) from generate_series(1, 2000) i))
\gset
select count(*) from millrace.enqueue_jobs((select jsonb_agg(jsonb_build_object('kind', 'k', 'queue', 'plain', 'tenant', 't', 'ref', 'r' || i)) from generate_series(1, 5000) i))
\gset
-- However short ago the last look was, this is one at all tenants.
select setval(('millrace.fair_at_' || t.qid('f'))::regclass, 0)
\gset
select count(*) from millrace.maintain()
\gset
select is((select max(r.member_n) from millrace.fair_round r), 501, 'all are in the round');
-- As after an hour in which the round has changed every second: none of the old ones is read.
insert into millrace.fair_round (slot, queue_id, no, chunk, made_at, base_turn, member_n, members)
select r.slot, r.queue_id, -g, r.chunk, r.made_at, r.base_turn, r.member_n, r.members
  from millrace.fair_round r
 cross join generate_series(1, 3600) g
 where r.no = (select max(n.no) from millrace.fair_round n);
-- The next claim does no slice of upkeep, and none looks at all tenants.
create procedure t.no_upkeep() language sql as $$
  select setval('millrace.upkeep_clock', millrace.epoch_ms(clock_timestamp())), setval(('millrace.fair_at_' || t.qid('f'))::regclass, millrace.epoch_ms(clock_timestamp() + interval '5 s'))
$$;
create procedure t.claims(p_queue text, p_n int, p_max int) language plpgsql as $$
begin
  for i in 1..p_n loop
    call t.no_upkeep();
    perform count(*) from millrace.claim(p_queue, 'w', p_max, '1 hour');
    commit;
  end loop;
end $$;
call t.claims('plain', 20, 1);
call t.claims('f', 510, 2);
call t.no_upkeep();
select t.cheap(t.cost($$ select count(*) from millrace.claim('f', 'w', 2, '1 hour') $$), '{"job": 12, "claim": 12, "tally": 0, "fair": 4, "queue": 6, "lane": 8}', 'a claim of a fair queue with 500 tenants');
call t.no_upkeep();
select t.cheap(t.cost($$ select count(*) from millrace.claim('plain', 'w', 1, '1 hour') $$), '{"job": 6, "claim": 12, "fair": 0}', 'a claim of one job with a tenant and a ref reads one');
call t.no_upkeep();
select t.cheap(t.cost($$ select count(*) from millrace.claim('plain', 'w', 100, '1 hour') $$), '{"job": 210, "claim": 12}', 'and one of a hundred reads them twice');
-- All but one have nothing left: the round is read ahead.
call t.claims('f', 600, 4);
call t.no_upkeep();
select t.cheap(t.cost($$ select count(*) from millrace.claim('f', 'w', 2, '1 hour') $$), '{"job": 30, "claim": 2200, "fair": 16, "queue": 1100, "lane": 1100}', 'a claim where only one of 500 has jobs left');
select is((select count(*) from millrace.claim('f', 'w', 2, '1 hour')), 2::bigint, 'and it gets them');
select millrace.pause('f', 'deep')
\gset
call t.no_upkeep();
select t.cheap(t.cost($$ select count(*) from millrace.claim('f', 'w', 2, '1 hour') $$), '{"job": 30, "claim": 2200, "fair": 16, "queue": 1100, "lane": 1100}', 'an empty claim');

select * from finish();
