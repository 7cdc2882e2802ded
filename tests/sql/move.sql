-- SPDX-License-Identifier: PostgreSQL
-- Moving a queue: what leaves, what arrives, once each, with everything a job has. Both queues are in one database here, which is as good as two: all that
-- goes from one side to the other goes through the caller. Two servers and a mover that is killed: integration/move.bats.
\ir lib/helpers.psql
select no_plan();

create function t.begin(p_queue text, p_to text)
returns int
language sql
as $$
  select (millrace.move_begin(p_queue, millrace.move_target(p_to) ->> 'place', p_to) ->> 'move')::int
$$;
create function t.origin(p_move int)
returns text
language sql
as $$
  select m.origin_name from millrace.move m where m.move_id = p_move
$$;
-- Moves all there is, each step a transaction of its own.
create table t.carried (id bigint, place_id bigint);
create table t.refused (to_queue text, code text, message text);
create procedure t.carry(p_queue text, p_to text, p_max int = 1000, p_dead boolean = false)
language plpgsql
as $$
declare
  v_move  int := t.begin(p_queue, p_to);
  v_batch record;
  v_came  jsonb;
begin
  loop
    commit;
    v_batch := millrace.move_take(v_move, p_max, p_dead);
    commit;
    exit when v_batch.jobs = '{}';
    begin
      v_came := millrace.move_arrive(v_batch.origin, v_batch.batch, p_to, v_batch.jobs, v_batch.args, v_batch.meta, v_batch.state, v_batch.blob);
    exception when others then
      insert into t.refused values (p_to, sqlstate, sqlerrm);
      v_came := null;
    end;
    commit;
    exit when v_came is null;
    insert into t.carried
    select (v_batch.jobs[i.ord] ->> 'id')::bigint, i.id::bigint
      from jsonb_array_elements_text(v_came -> 'ids') with ordinality i(id, ord);
    perform millrace.move_done(v_move, v_batch.batch, v_came);
    commit;
  end loop;
end $$;
create function t.left(p_queue text, p_to text)
returns jsonb
language sql
as $$
  select millrace.move_begin(p_queue, millrace.place(), p_to) - 'move' - 'origin' - 'ordered' - 'fair'
$$;

-- ---- what a job has ----
select millrace.enqueue('full', '{"a": [1, null, 1.50]}', 'from', 7, tenant => 'acme', ref => 'r-1', max_attempts => 9, timeout => '90 seconds', expires_in => '30 days',
                        meta => '{"m": null}', state => '\x00ff01', blob => '\x89', unique_key => 'u-1', unique_for => '1 hour') as full
\gset
select millrace.enqueue('later', '{"l": 1}', 'from', run_at => now() + interval '40 days 3 seconds') as later
\gset
select count(*) from millrace.enqueue_many('packed', array(select jsonb_build_object('i', i) from generate_series(1, 50) i), 'from');
select count(*) from millrace.enqueue_many('first', array(select jsonb_build_object('i', i) from generate_series(1, 5) i), 'from', 1);
select millrace.enqueue('paused', '{"p": 1}', 'from') as paused
\gset
select millrace.pause_job(:paused);
select millrace.enqueue('cancelled', '{}', 'from') as cancelled
\gset
select millrace.cancel(:cancelled, 'not wanted');
-- One that failed once and waits for its retry, one that runs, one that is dead.
select millrace.enqueue('fails', '{"f": 1}', 'from', 0) as fails
\gset
select lease as lease from millrace.claim('from', 'w', 1)
\gset
select millrace.fail(:'lease', :fails, 'it broke', '1 hour', state => '\x77');
select millrace.enqueue('dies', '{"d": 1}', 'from', 0) as dies
\gset
select lease as lease from millrace.claim('from', 'w', 1)
\gset
select millrace.fail(:'lease', :dies, 'for good', retry => false);
select millrace.enqueue('runs', '{"r": 1}', 'from', 0) as runs
\gset
select lease as lease from millrace.claim('from', 'w', 1)
\gset
create table t.before as
select d.job_id, d.due_at, d.created_at, d.attempt, d.lost, d.attempts_limit, d.why, d.job_kind, d.payload_args, d.stale_at, d.run_limit, d.payload_meta, d.payload_state,
       d.payload_blob, d.job_tenant, d.job_ref, d.trail
  from millrace.delayed d
 union all
select j.job_id, null, j.created_at, j.attempt, j.lost, j.attempts_limit, 'a', j.job_kind, j.payload_args, j.stale_at, j.run_limit, j.payload_meta, j.payload_state,
       j.payload_blob, j.job_tenant, j.job_ref, j.trail
  from millrace.job_rows(:full) j;
select is(t.left('from', 'to'), '{"available": 56, "scheduled": 2, "retrying": 1, "running": 1, "dead": 1, "moved": 0, "merged": 0, "moving": 0}', 'what there is to move');
call t.carry('from', 'to', 20);
select is(t.left('from', 'to'), '{"available": 0, "scheduled": 0, "retrying": 0, "running": 1, "dead": 1, "moved": 59, "merged": 0, "moving": 0}',
          'all that waited has left, what runs and what is dead has not');
select is(millrace.depth('to'), 56::bigint, 'and as many are there');
create table t.after as
select c.id, d.due_at, d.created_at, d.attempt, d.lost, d.attempts_limit, d.why, d.job_kind, d.payload_args, d.stale_at, d.run_limit, d.payload_meta, d.payload_state,
       d.payload_blob, d.job_tenant, d.job_ref, d.trail - -1
  from millrace.delayed d
  join t.carried c on c.place_id = d.job_id
 union all
select c.id, null, j.created_at, j.attempt, j.lost, j.attempts_limit, 'a', j.job_kind, j.payload_args, j.stale_at, j.run_limit, j.payload_meta, j.payload_state,
       j.payload_blob, j.job_tenant, j.job_ref, nullif(j.trail - -1, '[]')
  from t.carried c
 cross join lateral millrace.job_rows(c.place_id) j
 where c.id = :full;
update t.before set trail = '[]' where trail is null and why <> 'a';
select results_eq('table t.before order by 1', 'table t.after order by 1', 'each has all that it had');
select is((select count(*) from t.before), 4::bigint, 'of four that were looked at');
select is(array(select (j.args ->> 'i')::int
                  from t.carried c
                  join millrace.jobs j on j.id = c.place_id
                 where j.kind = 'packed'
                 order by j.id), array(select generate_series(1, 50)), 'jobs of a pack keep their order');
select is((select min(j.priority) || ' ' || max(j.priority) from millrace.jobs j join t.carried c on c.place_id = j.id where j.kind in ('first', 'packed')), '1 50', 'and their priorities');
select is(millrace.job(:full) -> 'status', '"moved"', 'the story of one that left says so');
select is(millrace.job(:full) -> 'moved_to' ->> 'id', (select c.place_id::text from t.carried c where c.id = :full), 'and where it went');
select is(millrace.job_by_ref('from', 'r-1') ->> 'status', 'moved', 'it is found by its ref');
select is((millrace.outcome(:full)).status, 'moved', 'outcome knows');
select is(millrace.cancel(:full), 'moved', 'it cannot be cancelled any more');
select throws_ok(format('select millrace.change_job(%s, ''{}'')', :full), '22023', format('job %s is moved', :full), 'nor changed');
select is(millrace.job(c.place_id) ->> 'source', 'move', 'the story of one that came says how') from t.carried c where c.id = :full;
select is((millrace.job(c.place_id) -> 'history' -> -1) - 'at' - 'from', jsonb_build_object('attempt', 1, 'outcome', 'moved', 'id', :full, 'source', 'sql'), 'and from where')
  from t.carried c where c.id = :full;
select is(millrace.job(c.place_id) ->> 'error', 'it broke', 'an error of an earlier attempt stays its last') from t.carried c where c.id = :fails;
select is(millrace.job(:cancelled) ->> 'status', 'cancelled', 'a cancelled job stays what it is');
select is(millrace.job(:cancelled) ->> 'reason', 'not wanted', 'for the same reason');
select is((select count(*) from t.carried c where c.id in (:cancelled, :runs, :dies)), 0::bigint, 'cancelled, running and dead ones were not carried');
select is(millrace.complete(:'lease'), 1, 'the one that runs ends where it is');
select millrace.enqueue('again', '{}', 'to', unique_key => 'u-1') as held
\gset
select is(:held::bigint, (select c.place_id from t.carried c where c.id = :full), 'the unique key is held there');
select isnt(millrace.enqueue('again', '{}', 'from', unique_key => 'u-1'), :full::bigint, 'and free here');
select is(lease, lease, 'a moved job is claimed') from millrace.claim('to', 'w', 1);
select is((select count(*) from millrace.mark), 0::bigint, 'no mark is left behind');

-- ---- dead letters ----
call t.carry('from', 'to', 20, true);
select is(t.left('from', 'to') ->> 'dead', '0', 'dead letters go when they are asked for');
select is((select row(d.failure, d.cause, d.payload_args)::text from millrace.dead d join t.carried c on c.place_id = d.job_id where c.id = :dies),
          row('for good', 'failed', '{"d": 1}')::text, 'with their error');
select is(t.left('from', 'to') ->> 'merged', '1', 'a job whose unique key is held there was merged with that one');

-- ---- once ----
select count(*) from millrace.enqueue_many('k', array(select jsonb_build_object('i', i) from generate_series(1, 30) i), 'once');
select t.begin('once', 'there') as move
\gset
create table t.batch as select * from millrace.move_take(:move, 10);
create table t.again as select * from millrace.move_take(:move, 25);
select results_eq('table t.batch', 'table t.again', 'a batch that has not arrived is handed out again as it was');
select is((select cardinality(b.jobs) from t.batch b), 10, 'however many are asked for');
select is(t.left('once', 'there') ->> 'moving', '10', 'they are on their way');
select is(millrace.job((b.jobs[1] ->> 'id')::bigint) -> 'moved_to' ->> 'arrived', 'false', 'and their story says that') from t.batch b;
create table t.come as
select millrace.move_arrive(t.origin(:move), b.batch, 'there', b.jobs, b.args, b.meta, b.state, b.blob) as said from t.batch b;
select is((millrace.move_arrive(t.origin(:move), b.batch, 'there', b.jobs, b.args, b.meta, b.state, b.blob)), (select c.said || '{"again": true}' from t.come c), 'twice is once, with the same answer')
  from t.batch b;
select is(millrace.depth('there'), 10::bigint, 'ten are there');
select throws_ok(format('select millrace.move_done(%s, 2)', :move), '22023', format('batch 2 of move %s was not taken', :move), 'a batch that was not taken has not arrived');
select is(millrace.move_done(:move, 1), 10::bigint, 'ten are forgotten');
select is(millrace.move_done(:move, 1), 0::bigint, 'once');
select throws_ok(format('select millrace.move_arrive(%L, 3, ''there'', jobs, args, meta, state, blob) from t.batch', t.origin(:move)), '22023', null, 'a batch out of turn is refused');
select is((millrace.move_arrive(t.origin(:move), 1, 'there', b.jobs, b.args, b.meta, b.state, b.blob) ->> 'again')::boolean, true, 'and a late mover finds its batch there') from t.batch b;
select is(millrace.depth('there'), 10::bigint, 'still ten');
-- Given back where the other side is lost.
select cardinality(jobs) as n, jobs[1] ->> 'id' as id from millrace.move_take(:move, 5)
\gset
select is(millrace.move_give_back('once'), 5::bigint, 'jobs on their way come back');
select is(millrace.job(:id) ->> 'status', 'available', 'with their ids');
select is(millrace.depth('once'), 20::bigint, 'and none is lost');
call t.carry('once', 'there', 7);
select is(millrace.depth('there') || ' ' || millrace.depth('once'), '30 0', 'then they are moved after all');
select is((select count(distinct j.args) from millrace.jobs j where j.queue = 'there'), 30::bigint, 'each once');

-- ---- what stays ----
select millrace.batch_begin() as batch
\gset
select millrace.enqueue('member', '{}', 'stays', batch => :batch) as member
\gset
select millrace.enqueue('needed', '{}', 'stays') as needed
\gset
select millrace.enqueue('waits', '{}', 'stays', depends_on => array[:needed]) as waits
\gset
select millrace.enqueue('free', '{}', 'stays') as free
\gset
call t.carry('stays', 'elsewhere');
select is(array(select j.kind || ' ' || j.status from millrace.jobs j where j.queue = 'stays' order by 1), '{"free moved","member available","needed available","waits waiting"}',
          'members of batches and what others wait for stay, and those that wait');
select is(array(select c.kind from millrace.claim('stays', 'w', 10) c order by 1), '{member,needed}', 'and are claimed');

-- ---- an ordered queue ----
select millrace.set_queue('line', '{"ordered": true}');
select millrace.set_queue('line2', '{"ordered": true}');
select millrace.enqueue('k', jsonb_build_object('key', 'a', 'i', i), 'line', ordering_key => 'a') from generate_series(1, 6) i;
select millrace.enqueue('k', jsonb_build_object('key', 'b', 'i', i), 'line', ordering_key => 'b') from generate_series(1, 3) i;
select t.begin('line', 'line2') as move
\gset
select throws_ok(format('select millrace.move_take(%s)', :move), '22023', 'queue ''line'' is ordered and not paused', 'an ordered queue has to be paused');
-- The first of each key are claimed, the others set aside; one is tried again later, so its key's turn is held by a job that is not in the log.
insert into t.got select 'line', row_number() over (), c.* from millrace.claim('line', 'w', 10) c;
insert into t.got select 'line', row_number() over (), c.* from millrace.claim('line', 'w', 10) c;
select millrace.pause('line');
select throws_ok(format('select millrace.move_take(%s)', :move), '22023', 'queue ''line'' is ordered and some of its jobs still run', 'and nothing of it may run');
select millrace.fail(g.lease, g.id, 'later', '1 hour') from t.got g where g.tag = 'line' and g.args ->> 'key' = 'a';
select millrace.complete(g.lease, array[g.id]) from t.got g where g.tag = 'line' and g.args ->> 'key' = 'b';
select millrace.enqueue('k', jsonb_build_object('key', 'a', 'i', 7), 'line', ordering_key => 'a');
call t.carry('line', 'line2', 2);
select is(millrace.depth('line'), 0::bigint, 'a line is moved in pieces');
select is(array(select (j.args ->> 'i')::int from millrace.jobs j where j.queue = 'line2' and j.args ->> 'key' = 'a' order by j.id), array(select generate_series(1, 7)),
          'in the order of its key, the one that was to be retried first');
select is(array(select (j.args ->> 'i')::int from millrace.jobs j where j.queue = 'line2' and j.args ->> 'key' = 'b' order by j.id), '{2,3}', 'of each');
create procedure t.run_all(p_queue text)
language plpgsql
as $$
declare
  v_job millrace.claimed_job;
begin
  for i in 1..100 loop
    for v_job in select c.* from millrace.claim(p_queue, 'w', 1) c loop
      insert into t.got select p_queue, i, v_job.*;
      perform millrace.complete(v_job.lease);
    end loop;
    commit;
  end loop;
end $$;
call t.run_all('line2');
select is(array(select (g.args ->> 'i')::int from t.got g where g.tag = 'line2' and g.args ->> 'key' = 'a' order by g.ord), array(select generate_series(1, 7)), 'and they run so');
select is((select count(*) from millrace.turn t where t.job_id <> 0), 0::bigint, 'nobody holds a turn');

-- ---- a fair queue, and one with limits for keys ----
select millrace.set_queue('fair', '{"fair": true}');
select millrace.set_queue('fair2', '{"fair": true}');
select millrace.enqueue('k', '{}', 'fair', tenant => 't' || i % 5) from generate_series(1, 20) i;
call t.carry('fair', 'fair2', 3);
select is(array(select s.tenant || ' ' || s.available from millrace.tenant_stats('fair2') s order by 1), '{"t0 4","t1 4","t2 4","t3 4","t4 4"}', 'tenants keep their own');
select millrace.set_queue('keys', '{"concurrency_per_key": 1}');
select millrace.set_queue('keys2', '{"concurrency_per_key": 1}');
select millrace.enqueue('k', '{}', 'keys', ordering_key => 'x') from generate_series(1, 4);
select is((select count(*) from millrace.claim('keys', 'w', 10)), 1::bigint, 'one of a key runs, the others are set aside');
call t.carry('keys', 'keys2');
select is(millrace.depth('keys2'), 3::bigint, 'those that were set aside go');

-- ---- the other queue does not take them ----
select millrace.enqueue('k', '{}', 'keyed', ordering_key => 'x') from millrace.set_queue('keyed', '{"concurrency_per_key": 1}');
call t.carry('keyed', 'plain');
select matches((select r.code || ' ' || r.message from t.refused r where r.to_queue = 'plain'), '^22023 job \d+: .*ordering_key', 'a queue without keys does not take jobs with one');
select is(t.left('keyed', 'plain') ->> 'moving', '1', 'they wait for the mover');
select millrace.set_queue('plain', '{"concurrency_per_key": 1}');
call t.carry('keyed', 'plain');
select is(millrace.depth('plain'), 1::bigint, 'who goes on when the queue takes them');
select millrace.set_queue('small', '{"depth_limit": 5, "overflow": "spill"}');
select count(*) from millrace.enqueue_many('k', array(select '{}'::jsonb from generate_series(1, 12)), 'large');
call t.carry('large', 'small', 4);
select is((select r.code from t.refused r where r.to_queue = 'small'), 'MR002', 'a full queue refuses, and its overflow is not asked');
select is(millrace.depth('small') || ' ' || coalesce(millrace.depth('spill'), 0), '8 0', 'what was let in is there');
select millrace.set_queue('tiny', '{"max_args": 20}');
select millrace.enqueue('k', jsonb_build_object('text', repeat('x', 100)), 'long');
call t.carry('long', 'tiny');
select matches((select r.message from t.refused r where r.to_queue = 'tiny'), '^the largest of args is \d+ bytes long, the limit is 20$', 'a job that is too large is refused');

-- ---- bad input ----
select throws_ok('select millrace.move_begin(''nowhere'', millrace.place())', 'MR003', 'queue ''nowhere'' does not exist', 'an unknown queue');
select throws_ok('select millrace.move_begin(''from'', millrace.place())', '22023', 'queue ''from'' cannot be moved to itself', 'the same queue');
select throws_ok('select millrace.move_begin(''from'', ''here'', ''b'')', '22023', 'place ''here'' is none', 'a place that is none');
select throws_ok('select millrace.move_take(4711)', 'MR003', 'there is no move 4711', 'an unknown move');
select throws_ok(format('select millrace.move_take(%s, 0)', :move), '22023', 'max_jobs must be from 1 to 10000, not 0', 'no jobs');
select throws_ok('select millrace.move_arrive(''x'', 1, ''q'', ''{}'', ''{}'', ''{}'', ''{}'', ''{}'')', '22023', null, 'an empty batch');
select throws_ok('select millrace.move_arrive(''x'', 1, ''q'', ''{"{}"}'', ''{"{}"}'', ''{NULL}'', ''{NULL}'', ''{NULL}'')', '22023', 'job 1 of the batch is incomplete', 'a job that is none');
select throws_ok('select millrace.drop_queue(''large'')', '55006', null, 'a queue with jobs on their way is not dropped');
begin isolation level repeatable read;
select throws_ok(format('select millrace.move_take(%s)', :move), '25000', null, 'at read committed only');
rollback;

-- ---- large jobs are several batches ----
select millrace.enqueue('big', jsonb_build_object('i', i), 'big', state => decode(repeat('ab', 6000000), 'hex')) from generate_series(1, 6) i;
call t.carry('big', 'big2', 100);
select is((select d.batch_no from millrace.departure d join millrace.move m on m.move_id = d.move_id where m.place_queue = 'big2'), 2::bigint, 'of at most 16 MB and the job that passes it');
select is((select count(*) from millrace.jobs j where j.queue = 'big2'), 6::bigint, 'all arrive');
select is((select count(*) from millrace.departure), (select count(distinct d.move_id) from millrace.departure d), 'of departures only the last is kept');
select is((select count(*) from millrace.arrival), (select count(distinct a.origin_name) from millrace.arrival a), 'of arrivals, too');
select * from finish();
