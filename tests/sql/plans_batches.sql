-- SPDX-License-Identifier: PostgreSQL
-- Plans of batches and dependencies: made when there is nothing, they hold with hundreds of thousands of members and batches, and nobody has analyzed.
\ir lib/helpers.psql
select no_plan();
\ir lib/plans.psql

-- The settings of the public functions: what upkeep does is called here by itself.
set plan_cache_mode = force_generic_plan;
set enable_seqscan = off;
set enable_bitmapscan = off;

-- ---- every plan is made on empty tables, in this session ----
create function t.members(p_batch bigint, p_n int)
returns bigint[]
language sql
as $$
  select array(select * from millrace.batch_add(p_batch, (select jsonb_agg('{"kind": "k", "queue": "q"}'::jsonb) from generate_series(1, p_n))))
$$;
create function t.some_claim(p_tag text, p_n int)
returns text
language sql
as $$
  insert into t.got select p_tag, row_number() over (), c.* from millrace.claim('q', 'w', p_n, '1 hour') c;
  select t.lease(p_tag)
$$;
select millrace.batch_begin() as warm
\gset
select t.members(:warm, 3);
select t.some_claim('warm', 3);
select millrace.complete(t.lease('warm')), millrace.batches_fold(clock_timestamp(), 10000), millrace.batch(:warm);
select millrace.enqueue('k', queue => 'w', depends_on => t.ids('warm')), millrace.enqueue('k', queue => 'w', depends_on => array[millrace.enqueue('k', queue => 'w')]);
select millrace.depends_look(clock_timestamp(), 10000), millrace.batch_seal(:warm);
select millrace.batches_fold(clock_timestamp(), 10000), millrace.batches_forget(clock_timestamp());

-- ---- 100,000 batches that have ended, 200,000 dependencies of jobs that wait, a batch of 30,000 members ----
insert into millrace.batch (batch_id, began_at, sealed_at) select 1000 + g, now(), now() from generate_series(1, 100000) g;
insert into millrace.batch_total (batch_id, no, sealed, ended_at) select 1000 + g, 0, true, now() from generate_series(1, 100000) g;
select setval('millrace.batch_seq', 200000);
select t.put(clock_timestamp(), 'needed', 1) as needed
\gset
insert into millrace.dependency (job_id, needs_id) select 100000000 + g, (:'needed'::bigint[])[1] from generate_series(1, 100000) g;
insert into millrace.dependency (job_id, needs_id) select 100000000 + g, 200000000 from generate_series(1, 100000) g;
select millrace.batch_begin() as b
\gset
select cardinality(t.members(:b, 30000));
select is((select coalesce(max(c.reltuples), -1) <= 0 from pg_class c where c.oid = 'millrace.batch_total'::regclass), true, 'the planner knows of no rows');

-- ---- the calls ----
select t.cheap(t.cost('select millrace.batch_begin()'), '{"batch": 0, "dependency": 0}', 'batch_begin');
select t.cheap(t.cost(format('select t.members(%s, 100)', :b)), '{"batch": 4, "job": 0, "dependency": 0}', 'batch_add of a hundred');
select t.cheap(t.cost(format('select millrace.enqueue(%L, queue => %L, batch => %s)', 'k', 'q', :b)), '{"batch": 4, "job": 0}', 'enqueue into a batch');
select t.cheap(t.cost(format('select millrace.batches_fold(clock_timestamp(), 10000)')), '{"batch": 20, "dependency": 0}', 'the fold of a few notes');
select t.cheap(t.cost(format('select millrace.batches_fold(clock_timestamp(), 10000)')), '{"batch": 4}', 'a fold of none');
select is((millrace.batch(:b) ->> 'jobs')::int, 30101, 'it counted them');
select setval('millrace.upkeep_clock', millrace.epoch_ms(clock_timestamp()));
select t.cheap(t.cost($$ select t.some_claim('a', 100) $$), '{"job": 1500, "claim": 12, "batch": 0, "dependency": 0}', 'claim of a hundred members');
select is(cardinality(t.ids('a')), 100, 'it got them');
select t.cheap(t.cost($$ select millrace.complete(t.lease('a')) $$), '{"job": 0, "claim": 5, "batch": 0}', 'complete of a hundred members');
select t.cheap(t.cost($$ select millrace.batches_fold(clock_timestamp(), 10000) $$), '{"batch": 20}', 'its fold');
select is((millrace.batch(:b) ->> 'completed')::int, 100, 'it counted them');
select t.cheap(t.cost(format('select millrace.batch(%s)', :b)), '{"batch": 4}', 'batch');
select t.cheap(t.cost(format('select millrace.batch_seal(%s)', :b)), '{"batch": 6}', 'batch_seal');
select t.cheap(t.cost('select millrace.batches_forget(clock_timestamp())'), '{"batch": 10}', 'nothing to forget');
select t.cheap(t.cost('select millrace.batches_forget(clock_timestamp() + interval $$8 days$$)'), '{"batch": 5000}', 'a thousand to forget');
select t.cheap(t.cost(format('select millrace.enqueue(%L, queue => %L, depends_on => %L)', 'k', 'w', :'needed')), '{"dependency": 0, "job": 4, "claim": 50}', 'enqueue of a job that depends on one');
select t.cheap(t.cost('select millrace.depends_look(clock_timestamp(), 100)'), '{"dependency": 700, "delayed": 10}', 'a look');
select t.cheap(t.cost(format('select millrace.job(%s)', (:'needed'::bigint[])[1])), '{"dependency": 1100}', 'job with a hundred thousand that need it');
select * from finish();
