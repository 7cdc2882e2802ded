-- SPDX-License-Identifier: PostgreSQL
-- A shadow: copies of a queue's jobs, read from the log, given out elsewhere and compared. Both queues are in one database here; two servers and the
-- command: integration/shadow.bats.
\ir lib/helpers.psql
select no_plan();

create function t.shadow(p_queue text, p_to text, p_share real = 100, p_tenant text = null)
returns int
language sql
as $$
  select (millrace.shadow_begin(p_queue, millrace.move_target(p_to) ->> 'place', p_to, p_share, p_tenant) ->> 'move')::int
$$;
create function t.origin(p_to text)
returns text
language sql
as $$
  select m.origin_name from millrace.move m where m.place_queue = p_to
$$;
-- Copies all there is, in batches of p_max.
create procedure t.copy(p_move int, p_to text, p_max int = 1000)
language plpgsql
as $$
declare
  v_batch millrace.move_batch;
begin
  loop
    commit;
    v_batch := millrace.move_take(p_move, p_max);
    commit;
    exit when v_batch.jobs = '{}';
    perform millrace.move_done(p_move, v_batch.batch,
                               millrace.move_arrive(v_batch.origin, v_batch.batch, p_to, v_batch.jobs, v_batch.args, v_batch.meta, v_batch.state, v_batch.blob));
    commit;
  end loop;
end $$;
create procedure t.check_all(p_origin text)
language plpgsql
as $$
begin
  loop
    exit when (millrace.shadow_check(p_origin, 100) ->> 'checked')::int = 0;
    commit;
  end loop;
end $$;
create function t.found(p_to text)
returns jsonb
language sql
as $$
  select millrace.shadow_story(t.origin(p_to)) - 'mismatches'
$$;

-- What was there before is not copied; what comes is, whoever claims it here, and once.
select count(*) from millrace.enqueue_many('before', '{1,2,3}', 'q');
select t.shadow('q', 'copy') as shadow
\gset
select count(*) from millrace.enqueue_many('packed', array(select jsonb_build_object('i', i) from generate_series(1, 100) i), 'q');
select millrace.enqueue('full', '{"a": null}', 'q', 7, tenant => 't', ref => 'r', meta => '{"m": 1}', state => '\x00', blob => '', unique_key => 'u', expires_in => '1 hour');
select millrace.enqueue('later', '{}', 'q', delay => '1 millisecond');
select count(*) from millrace.claim('q', 'w', 50);
select count(*) from millrace.claim('q', 'w', 50);
call t.copy(:shadow, 'copy', 30);
select is((select count(*) from millrace.jobs j where j.queue = 'copy' and j.kind = 'packed'), 100::bigint, 'a pack is copied, whether it was claimed or not');
select is((select count(*) from millrace.jobs j where j.queue = 'copy' and j.kind = 'before'), 0::bigint, 'what was there before is not');
select is((select j.source from millrace.jobs j where j.queue = 'copy' and j.kind = 'full'), 'shadow', 'copies say what they are');
select is((select count(*) from millrace.jobs j where j.queue = 'q' and j.status = 'moved'), 0::bigint, 'the jobs stay');
select is((select count(*) from millrace.jobs j where j.queue = 'q' and j.status = 'running'), 51::bigint, 'and run where they are');
-- A job given back, or failed, is in the log once more, and no copy is made of it.
select millrace.release(c.lease) from (select c.lease from millrace.claim('q', 'w', 1) c) c;
select millrace.fail(c.lease, c.id, 'no', '1 millisecond') from millrace.claim('q', 'w', 1) c;
do $$
begin
  for i in 1..300 loop
    perform millrace.maintain();
    commit;
    exit when not exists (select from millrace.delayed d);
    perform pg_sleep(0.1);
  end loop;
end $$;
call t.copy(:shadow, 'copy', 30);
select is((select count(*) from millrace.job j where j.job_source = 'shadow'), 102::bigint, 'each is copied once: when it first stands in the log');
select is(t.found('copy') - 'missing', '{"arrived": 102, "equal": 0, "different": 0, "out_of_order": 0, "extra": 0, "waiting": 102}', 'all have arrived');
call t.check_all(t.origin('copy'));
select is(t.found('copy'), '{"arrived": 102, "equal": 102, "different": 0, "out_of_order": 0, "extra": 0, "waiting": 0, "missing": 0}', 'all are equal, and none is missing');
select is((select count(*) from millrace.mirror), 0::bigint, 'nothing is kept of those');
select is(millrace.depth('copy'), 0::bigint, 'they were completed');

-- Mismatches.
select count(*) from millrace.enqueue_many('k', array(select jsonb_build_object('i', i) from generate_series(1, 10) i), 'q');
call t.copy(:shadow, 'copy');
update millrace.job j set payload_args = '{"i": "another"}' where j.job_source = 'shadow' and j.payload_args = '{"i": 5}' and j.job_kind = 'k';
select millrace.enqueue('stranger', '{}', 'copy');
select is(millrace.cancel(j.job_id), 'cancelled', 'one is taken away') from millrace.job j where j.job_source = 'shadow' and j.payload_args = '{"i": 7}' and j.job_kind = 'k';
call t.check_all(t.origin('copy'));
select is(t.found('copy'), '{"arrived": 112, "equal": 110, "different": 1, "out_of_order": 0, "extra": 1, "waiting": 1, "missing": 1}', 'each sort is found');
select is(array(select m ->> 'what' from jsonb_array_elements(millrace.shadow_story(t.origin('copy')) -> 'mismatches') m order by 1), '{different,extra}', 'and listed');
select is(millrace.job((m ->> 'copied_id')::bigint) -> 'args', '{"i": 5}', 'with the id of the job that it is a copy of')
  from jsonb_array_elements(millrace.shadow_story(t.origin('copy')) -> 'mismatches') m where m ->> 'what' = 'different';
-- Out of order: of two copies the first is put off.
select count(*) from millrace.enqueue_many('o', '{1,2}', 'q');
call t.copy(:shadow, 'copy');
select millrace.change_job(min(j.job_id), '{"priority": 99}') from millrace.job j where j.job_source = 'shadow' and j.job_kind = 'o';
select millrace.change_job(min(j.job_id), '{"priority": 50}') from millrace.job j where j.job_source = 'shadow' and j.job_kind = 'o';
call t.check_all(t.origin('copy'));
select is((t.found('copy') ->> 'out_of_order')::int, 1, 'one that comes behind the one after it');

-- Once, as with a move.
select count(*) from millrace.enqueue_many('once', '{1,2,3}', 'q');
create table t.one as select (millrace.move_take(:shadow, 2)).*;
create table t.two as select (millrace.move_take(:shadow, 3)).*;
select results_eq('table t.one', 'table t.two', 'a batch that has not arrived is handed out again');
select is((select count(*) from millrace.job_list l where l.kind = 'once' and l.status = 'available'), 3::bigint, 'and its jobs are what they were');
select is(millrace.cancel(max(l.id)), 'cancelled', 'they can be cancelled') from millrace.job_list l where l.kind = 'once' and l.queue = 'q';
call t.copy(:shadow, 'copy');
select is((select count(*) from millrace.job j where j.job_source = 'shadow' and j.job_kind = 'once'), 3::bigint, 'all arrive');

-- A share of the tenants, always the same ones; and one tenant.
select t.shadow('tenants', 'share', 30) as shadow from millrace.set_queue('tenants', '{}')
\gset
select millrace.enqueue('k', '{}', 'tenants', tenant => 'tenant ' || i % 100) as id from generate_series(1, 400) i
\g /dev/null
call t.copy(:shadow, 'share');
select is(array(select count(*)::int from millrace.job j where j.job_source = 'shadow' and j.lane >> 12 = (select q.queue_id from millrace.queue q where q.queue_name = 'share') group by j.job_tenant having count(*) <> 4), '{}',
          'all jobs of a tenant, or none');
select ok(c between 15 and 45, format('%s of 100 tenants are 30 %%', c))
  from (select count(distinct j.job_tenant) as c from millrace.job j where j.job_source = 'shadow' and j.lane >> 12 = (select q.queue_id from millrace.queue q where q.queue_name = 'share')) c;
select t.shadow('tenants', 'one', 100, 'tenant 7') as shadow
\gset
select millrace.enqueue('k', '{}', 'tenants', tenant => 'tenant ' || i % 10) from generate_series(1, 50) i
\g /dev/null
call t.copy(:shadow, 'one');
select is((select string_agg(distinct j.tenant, ',') || ' ' || count(*) from millrace.jobs j where j.queue = 'one'), 'tenant 7 5', 'one tenant alone');

-- Late commits: a transaction that was open when others were copied. And a shadow that is so late that the log is gone says so, and goes on.
select is(millrace.shadow_begin('q', millrace.place(), 'copy') ->> 'cut', '0', 'nothing was cut');
update millrace.segment g set truncated = true, closed_xid = (pg_current_xact_id()::text::bigint + 1000)::text::xid8 where g.seg = 0;
call t.copy(:shadow, 'one');
select is(millrace.shadow_begin('tenants', millrace.place(), 'one', 100, 'tenant 7') ->> 'cut', '1', 'a segment that went with rows behind the cursor is noticed');
update millrace.segment g set closed_xid = '3' where g.seg = 0;
select millrace.enqueue('after', '{}', 'tenants', tenant => 'tenant 7');
call t.copy(:shadow, 'one');
select is((select count(*) from millrace.jobs j where j.queue = 'one' and j.kind = 'after'), 1::bigint, 'and what comes then is copied');

-- bad input
select throws_ok('select millrace.shadow_begin(''q'', millrace.place())', '22023', 'queue ''q'' cannot be its own shadow', 'the same queue');
select throws_ok('select millrace.shadow_begin(''nowhere'', millrace.place())', 'MR003', 'queue ''nowhere'' does not exist', 'an unknown queue');
select throws_ok('select millrace.shadow_begin(''q'', millrace.place(), ''x'', 0)', '22023', 'share_percent must be above 0 and at most 100, not 0', 'no share');
select throws_ok('select millrace.shadow_begin(''q'', ''?'', ''x'')', '22023', 'place ''?'' is none', 'no place');
select throws_ok('select millrace.shadow_check(''x'', 0)', '22023', 'max_jobs must be from 1 to 10000, not 0', 'no jobs');
select is(millrace.shadow_check('nobody') ->> 'checked', '0', 'an origin that nothing came from');
select * from finish();
