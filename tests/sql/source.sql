-- SPDX-License-Identifier: PostgreSQL
-- Where a job comes from: what each way in leaves, who shows it, and that it stays with the job.
\ir lib/helpers.psql
select no_plan();

create function t.source(p_id bigint)
returns text
language sql
as $$
  select millrace.job(p_id) ->> 'source'
$$;

select is(t.source(i), 'sql', 'enqueue') from millrace.enqueue('k', queue => 'q') i;
select is(array(select distinct t.source(i) from millrace.enqueue_many('k', '{1,2,3}', 'q') i), '{sql}', 'enqueue_many, in a pack');
select is(t.source(i), 'sql', 'enqueue_jobs') from millrace.enqueue_jobs('[{"kind": "k", "queue": "q"}]') i;
select is(t.source(i), 'http', 'enqueue_jobs that is told') from millrace.enqueue_jobs('[{"kind": "k", "queue": "q"}]', 'http') i;
select is(t.source(i), 'http', 'for later, too') from millrace.enqueue_jobs('[{"kind": "k", "queue": "q", "delay": "1 hour"}]', source => 'http') i;
select is(t.source((e -> 'ids' ->> 0)::bigint), 'http', 'enqueue_once') from millrace.enqueue_once('key', '[{"kind": "k", "queue": "q"}]', 'http') e;
select is((millrace.enqueue_once('key', '[{"kind": "k", "queue": "q"}]', 'other') ->> 'again')::boolean, true, 'which another source does not make another request');
select is((select count(*) from millrace.job j where j.job_source = 'sql'), 0::bigint, 'sql is not written down');
select throws_ok('select millrace.enqueue_jobs(''[]'', '''')', '22023', 'source must have 1 to 200 bytes, not 0', 'an empty one');
select throws_ok(format('select millrace.enqueue_jobs(''[]'', %L)', repeat('x', 201)), '22023', 'source must have 1 to 200 bytes, not 201', 'a long one');

-- batches
select millrace.batch_begin(on_complete => '{"kind": "done", "queue": "calls"}') as batch
\gset
select is(t.source(i), 'http', 'batch_add') from millrace.batch_add(:batch, '[{"kind": "member", "queue": "members"}]', 'http') i;
select millrace.batch_seal(:batch);
insert into t.got select 'member', 1, c.* from millrace.claim('members', 'w') c;
select is((select g.source from t.got g where g.tag = 'member'), 'http', 'a claim has it');
select millrace.complete(t.lease('member'));
do $$
begin
  for i in 1..300 loop
    perform millrace.maintain();
    commit;
    exit when exists (select from millrace.jobs j where j.queue = 'calls');
    perform pg_sleep(0.1);
  end loop;
end $$;
select is((select j.source from millrace.jobs j where j.queue = 'calls'), 'batch', 'the callback of a batch');

-- schedules, capture, bridges, replay
select millrace.schedule('tick', '@daily', 'k', queue => 'ticks');
select is(t.source(i), 'cron', 'a schedule') from millrace.schedule_run('tick') i;
create table t.orders (id int);
select millrace.capture('t.orders', 'captured', 'k');
insert into t.orders values (1);
select is((select j.source from millrace.jobs j where j.queue = 'captured'), 'capture:t.orders', 'a table');
select applied from millrace.bridge_apply('indexer', 's', 'g', array['1-1'], array['{"a": 1}']::jsonb[], settings => '{"queue": "bridged", "kind": "k"}') b;
select is((select j.source from millrace.jobs j where j.queue = 'bridged'), 'bridge:indexer', 'a stream');
select millrace.bridge_bury('indexer', 's', 'g', '1-2', 'buried', 'k', '{}', 'poison');
select is((select d.source from millrace.dead_letters d where d.queue = 'buried'), 'bridge:indexer', 'and what it could not apply');

-- It stays: over a failure, a retry, death and replay.
select i as http from millrace.enqueue_jobs('[{"kind": "k", "queue": "stays", "max_attempts": 1}]', 'http') i
\gset
select millrace.fail(c.lease, c.id, 'no') from millrace.claim('stays', 'w') c;
select is((select d.source from millrace.dead_letters d where d.id = :http), 'http', 'a dead letter has it');
select is(millrace.list_dead('{"queue": "stays"}') -> 'jobs' -> 0 ->> 'source', 'http', 'in the list, too');
select millrace.replay(:http);
select is(t.source(:http), 'http', 'and its replay');
select is((select c.source from millrace.claim('stays', 'w') c), 'http', 'as a claim gives it');

-- The filter of list_jobs.
select is((select array_agg(distinct j ->> 'source') from jsonb_array_elements(millrace.list_jobs('{"source": "http", "limit": 200}') -> 'jobs') j), '{http}', 'a page of one source');
select is(jsonb_array_length(millrace.list_jobs('{"source": "sql", "queue": "q"}') -> 'jobs'), 5, 'of those that have none written down');
select is(jsonb_array_length(millrace.list_jobs('{"source": "http", "queue": "q", "status": "scheduled"}') -> 'jobs'), 1, 'with a status');
select is(jsonb_array_length(millrace.list_jobs('{"source": "nowhere"}') -> 'jobs'), 0, 'of one that there is not');
select * from finish();
