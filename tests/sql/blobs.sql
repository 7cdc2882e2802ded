-- SPDX-License-Identifier: PostgreSQL
-- Payloads that are away in a blob store: the protocol between SQL and who carries the bytes. The store is a table here.
\ir lib/helpers.psql
select no_plan();

create table t.store (object_name text primary key, body bytea);

-- Carries out what is to be moved, as a daemon does; returns how many parts were stored and how many of the objects nobody needed.
create function t.carry_out(p_now timestamptz)
returns text
language plpgsql
as $$
declare
  v_stored jsonb;
  v_spare  int;
begin
  with took as (
    select * from millrace.offload_take_at(p_now, 0, 1000, 1000000000)),
  put as (
    insert into t.store select k.object_name, k.body from took k)
  select coalesce(jsonb_agg(jsonb_build_object('place', k.place, 'id', k.id, 'part', k.part, 'key', k.object_name, 'sha256', encode(sha256(k.body), 'hex'))), '[]')
    into v_stored
    from took k;
  with spare as (
    delete from t.store s
     where s.object_name in (select * from millrace.offload_done_at(p_now, v_stored))
    returning 1)
  select count(*) into v_spare from spare;
  return format('%s stored, %s spare', jsonb_array_length(v_stored), v_spare);
end $$;

-- Carries back what is due.
create function t.carry_back(p_now timestamptz, p_ahead interval = '5 seconds')
returns text
language plpgsql
as $$
declare
  v_done record;
begin
  select r.*
    into v_done
    from (select array_agg(d.id) as ids, array_agg(d.part) as parts, array_agg(d.object_name) as keys, array_agg(s.body) as bodies,
                 array_agg(case when s.object_name is null then 'missing' else '' end) as errors
            from millrace.offload_due_at(p_now, p_ahead, 1000, 1000000000) d
            left join t.store s on s.object_name = d.object_name) d
   cross join lateral millrace.offload_restore_at(p_now, d.ids, d.parts, d.keys, d.bodies, d.errors) r;
  return format('%s restored, %s buried', coalesce(v_done.restored, 0), coalesce(v_done.buried, 0));
end $$;

-- Removes what is doomed.
create function t.carry_away()
returns int
language plpgsql
as $$
declare
  v_nos bigint[];
begin
  with gone as (
    delete from t.store s
     using millrace.offload_doomed() d
     where s.object_name = d.object_name
    returning d.no)
  select array_agg(g.no) into v_nos from gone g;
  return millrace.offload_removed(v_nos);
end $$;

create function t.bytes(p_text text, p_n int)
returns bytea
language sql
immutable
as $$
  select convert_to(repeat(p_text, p_n), 'UTF8')
$$;

create function t.later(p_queue text, p_delay interval, p_state bytea = t.bytes('state', 400), p_blob bytea = t.bytes('blob', 300), p_at interval = '0 s')
returns bigint
language sql
as $$
  select millrace.enqueue_at(t.at(p_at), 'k', '{"a": 1}', p_queue, 50, null, p_delay, null, null, null, null, null, null, null, null, p_state, p_blob, null)
$$;

create function t.away(p_id bigint)
returns boolean
language sql
as $$
  select exists (select from millrace.delayed d where d.job_id = p_id and d.away_due is not null)
$$;
create function t.objects()
returns bigint
language sql
as $$
  select count(*) from t.store
$$;

-- ---- settings ----
select lives_ok($$select millrace.set_queue('q', '{"offload_delay": "10 seconds", "offload_dead": true}')$$, 'settings of a queue');
select is((select (q.settings ->> 'offload_delay') from millrace.queues q where q.queue = 'q'), '00:00:10', 'are shown');
select t.refused($$select millrace.set_queue('q', '{"offload_delay": "1 second"}')$$, '22023', 'setting offload_delay must be from 10');
select t.refused($$select millrace.set_queue('q', '{"offload_dead": 7}')$$, '22023', 'setting offload_dead does not accept');
select millrace.set_queue('plain', '{}');

-- ---- out ----
select t.later('q', '1 hour') as a \gset
select t.later('q', '9 seconds') as soon \gset
select t.later('q', '1 hour', t.bytes('s', 100), null) as small \gset
select t.later('plain', '1 hour') as plain \gset
select is((select count(*) from millrace.offload_take_at(t.at('1 s'), 0, 100, 1000000)), 2::bigint, 'both parts of the job that waits for long, and no others');
select is((select array_agg(part order by part) from millrace.offload_take_at(t.at('1 s'), 0, 100, 1000000)), array['blob', 'state'], 'by their names');
select ok((select bool_and(object_name ~ ('^[0-9a-f]{16}/20300101/' || :a || '-(state|blob)-[0-9a-f]{16}$')) from millrace.offload_take_at(t.at('1 s'), 0, 100, 1000000)), 'names of objects: database, day, job, part');
select is((select count(*) from millrace.offload_take_at(t.at('1 s'), (select max(no) from millrace.offload_take_at(t.at('1 s'), 0, 100, 1000000)), 100, 1000000)), 0::bigint, 'nothing behind the last number');
select is((select count(distinct id) from millrace.offload_take_at(t.at('59 min 56 s'), 0, 100, 1000000)), 0::bigint, 'a job that is due within seconds stays');
select is(t.carry_out(t.at('1 s')), '2 stored, 0 spare', 'carried out');
select ok(t.away(:a), 'the job is away');
select ok((select octet_length(d.payload_state) < 400 and octet_length(d.payload_blob) < 400 from millrace.delayed d where d.job_id = :a), 'its row is small');
select is((select array[encode(substr(d.payload_state, 1, 9), 'hex'), (('x' || encode(substr(d.payload_state, 10, 8), 'hex'))::bit(64)::bigint)::text] from millrace.delayed d where d.job_id = :a), array['894d52500d0a1a0a6f', '2000'],
          'the reference has the signature, the coding and the size');
select is((select count(*) from millrace.blob_object o where o.job_id = :a), 2::bigint, 'the ledger knows both objects');
select is(t.carry_out(t.at('2 s')), '0 stored, 0 spare', 'nothing is left to carry');
select is((millrace.job_story(:a)) ->> 'status', 'scheduled', 'to others it is scheduled as before');
select is((select count(*) from millrace.offload_due_at(t.at('2 s'), '5 s', 100, 1000000)), 0::bigint, 'it is not due');

-- ---- back ----
select is((select count(*) from millrace.offload_due_at(t.at('59 min 56 s'), '5 s', 100, 1000000)), 2::bigint, 'it is fetched ahead');
select is((select count(*) from millrace.offload_due_at(t.at('59 min 56 s'), '5 s', 100, 10)), 2::bigint, 'with little room at least one job');
select is(t.carry_back(t.at('59 min 56 s')), '1 restored, 0 buried', 'carried back');
select is((select array[d.payload_state, d.payload_blob] from millrace.delayed d where d.job_id = :a), array[t.bytes('state', 400), t.bytes('blob', 300)], 'byte for byte');
select is((select d.due_at from millrace.delayed d where d.job_id = :a), t.at('1 hour'), 'it is due when it was');
select ok(not t.away(:a), 'and not away');
select is(t.carry_out(t.at('59 min 57 s')), '0 stored, 0 spare', 'it does not go out again');
select is((select count(*) from millrace.blob_object o where o.job_id = :a), 0::bigint, 'the ledger has forgotten its objects');
select is((select count(*) from millrace.blob_doomed), 2::bigint, 'they are doomed');
select is((select count(*) from millrace.offload_unknown(array(select object_name from t.store))), 0::bigint, 'and known until they are removed');
select is(t.carry_away(), 2, 'removed');
select is(t.objects(), 0::bigint, 'the store is empty');
select is((millrace.metrics() -> 'removed_total' ->> 'objects')::int, 2, 'and they are counted');
select is((select count(*) from millrace.offload_doomed()), 0::bigint, 'nothing is doomed any more');
select millrace.promote(t.at('1 hour 1 s'), 1000);
select is(t.claim_all('a', t.at('1 hour 1 s'), 'q'), array[:soon, :a, :small]::bigint[], 'all of the queue are delivered in their order');
select is((select g.state from t.got g where g.id = :a), t.bytes('state', 400), 'with the payload inside');

-- ---- retries ----
select t.later('q', '1 s', p_at => '2 hours') as r \gset
select millrace.promote(t.at('2 hours 2 s'), 1000);
select is(t.claim_all('r', t.at('2 hours 2 s'), 'q'), array[:r]::bigint[], 'claimed');
select millrace.fail_at(t.at('2 hours 3 s'), t.lease('r'), :r, 'broken', '5 minutes', true, null);
select is(t.carry_out(t.at('2 hours 4 s')), '2 stored, 0 spare', 'the payload of a retry that waits for long is carried out');
select is(t.carry_back(t.at('2 hours 5 min 1 s')), '1 restored, 0 buried', 'and back');
select millrace.promote(t.at('2 hours 5 min 4 s'), 1000);
select is(t.claim_all('r2', t.at('2 hours 5 min 4 s'), 'q'), array[:r]::bigint[], 'the retry runs');
select is((select g.blob from t.got g where g.tag = 'r2'), t.bytes('blob', 300), 'with its payload');
select is(millrace.finish_at(t.at('2 hours 6 min'), t.lease('r2'), jsonb_build_array(jsonb_build_object('id', :r, 'outcome', 'failed', 'error', 'again', 'retry_in', '5 minutes', 'state', encode(t.bytes('new', 300), 'base64')))) > 0, true, 'failed by finish, with a new state');
select is(t.carry_out(t.at('2 hours 6 min 1 s')), '2 stored, 0 spare', 'goes out, too');
select is((select count(*) from t.store where body = t.bytes('new', 300)), 1::bigint, 'with the new state');
select is(t.carry_back(t.at('2 hours 11 min 1 s')), '1 restored, 0 buried', 'and back');
select t.carry_away();

-- ---- bulk ----
select count(*) from millrace.enqueue_many_at(t.at('3 hours'), 'k', array_fill('{}'::jsonb, array[5]), 'q', 50, t.at('4 hours'), array_fill(t.bytes('m', 600), array[5]), null);
select count(*) from millrace.enqueue_jobs_at(t.at('3 hours'), jsonb_build_array(jsonb_build_object('kind', 'k', 'queue', 'q', 'delay', '1 hour', 'blob', encode(t.bytes('j', 600), 'base64'))));
select is(t.carry_out(t.at('3 hours 1 s')), '6 stored, 0 spare', 'jobs that came in bulk');
select is(t.carry_back(t.at('3 hours 59 min 58 s')), '6 restored, 0 buried', 'and back');
select millrace.promote(t.at('4 hours 1 s'), 1000);
select t.claim_all('bulk', t.at('4 hours 1 s'), 'q');
select is((select count(*) from t.got g where g.tag = 'bulk' and (g.state = t.bytes('m', 600) or g.blob = t.bytes('j', 600))), 6::bigint, 'all with what they had');
select t.carry_away();

-- ---- promotion waits for the payload, and for nobody else ----
select t.later('q', '1 minute', p_at => '5 hours') as late \gset
select t.carry_out(t.at('5 hours 1 s'));
select t.later('q', '1 minute', null, null, p_at => '5 hours') as other \gset
select millrace.promote(t.at('5 hours 1 min 1 s'), 1000);
select is(t.claim_all('p1', t.at('5 hours 1 min 1 s'), 'q'), array[:other]::bigint[], 'a job without payload is delivered, the one that is away is not');
select is((select d.due_at from millrace.delayed d where d.job_id = :late), t.at('5 hours 1 min 3 s'), 'it is put off by two seconds');
select is((select d.away_due from millrace.delayed d where d.job_id = :late), t.at('5 hours 1 min'), 'and its time is kept');
select millrace.promote(t.at('5 hours 1 min 31 s'), 100);
select is((select d.due_at from millrace.delayed d where d.job_id = :late), t.at('5 hours 2 min 2 s'), 'then by as long as it is late');
select millrace.promote(t.at('5 hours 30 min'), 100);
select is((select d.due_at from millrace.delayed d where d.job_id = :late), t.at('5 hours 31 min'), 'at most by a minute');
select is((select h.status from millrace.health_at(t.at('5 hours 30 min')) h where h.queue = 'q'), 'WARNING', 'health warns');
select ok((select h.message from millrace.health_at(t.at('5 hours 30 min')) h where h.queue = 'q') ~ '1 jobs are due and their payload is still in the blob store', 'and says why');
select is(t.carry_back(t.at('5 hours 30 min 57 s')), '1 restored, 0 buried', 'the store is back');
select is((select d.due_at from millrace.delayed d where d.job_id = :late), t.at('5 hours 30 min 57 s'), 'the job is due at once');
select millrace.promote(t.at('5 hours 30 min 59 s'), 1000);
select is(t.claim_all('p2', t.at('5 hours 30 min 59 s'), 'q'), array[:late]::bigint[], 'and is delivered');
select is((select h.status from millrace.health_at(t.at('5 hours 31 min')) h where h.queue = 'q'), 'OK', 'health is well again');
select t.carry_away();

-- ---- an object that is missing or damaged ----
select t.later('q', '1 minute', p_at => '6 hours') as gone \gset
select t.later('q', '1 minute', p_at => '6 hours') as bad \gset
select t.later('q', '1 minute', p_at => '6 hours') as good \gset
select t.carry_out(t.at('6 hours 1 s'));
delete from t.store s where s.object_name like '%/' || :gone || '-state-%';
update t.store s set body = body || 'x' where s.object_name like '%/' || :bad || '-blob-%';
select is(t.carry_back(t.at('6 hours 1 min')), '1 restored, 2 buried', 'each job has its own fate');
select ok((select d.failure ~ '^object .*-state-[0-9a-f]+ of state: missing$' and d.cause = 'damaged' from millrace.dead d where d.job_id = :gone), 'missing: a dead letter that says so');
select ok((select d.failure ~ '^object .*-blob-[0-9a-f]+ of blob is damaged: its SHA-256 is another one$' and d.cause = 'damaged' from millrace.dead d where d.job_id = :bad), 'damaged: a dead letter that says so');
select millrace.promote(t.at('6 hours 1 min 1 s'), 1000);
select is(t.claim_all('g', t.at('6 hours 1 min 1 s'), 'q'), array[:good]::bigint[], 'the other one runs');
select is((select count(*) from millrace.offload_take_at(t.at('6 hours 2 min'), 0, 100, 1000000)), 0::bigint, 'their references are not carried out again');
-- brought back to life once the object is there again
update t.store s set body = t.bytes('blob', 300) where s.object_name like '%/' || :bad || '-blob-%';
select is(millrace.dead_replay(t.at('6 hours 3 min'), array[:bad]), 1::bigint, 'replayed');
select ok(t.away(:bad), 'it waits for its payload');
select is(t.carry_back(t.at('6 hours 3 min')), '1 restored, 0 buried', 'which comes back');
select millrace.promote(t.at('6 hours 3 min 4 s'), 1000);
select is(t.claim_all('b2', t.at('6 hours 3 min 4 s'), 'q'), array[:bad]::bigint[], 'and it runs');
select is((select g.blob from t.got g where g.tag = 'b2'), t.bytes('blob', 300), 'whole');
select t.carry_away();

-- ---- steering while away ----
select t.later('q', '1 hour', p_at => '7 hours') as now_one \gset
select t.later('q', '1 hour', p_at => '7 hours') as moved \gset
select t.later('q', '1 hour', p_at => '7 hours') as paused \gset
select t.carry_out(t.at('7 hours 1 s'));
select millrace.run_now_at(t.at('7 hours 1 min'), :now_one);
select millrace.promote(t.at('7 hours 1 min'), 1000);
select is(t.claim_all('n0', t.at('7 hours 1 min'), 'q'), '{}'::bigint[], 'run_now of a job whose payload is away delivers nothing yet');
select is(t.carry_back(t.at('7 hours 1 min')), '1 restored, 0 buried', 'but lets it come back at once');
select millrace.promote(t.at('7 hours 1 min 4 s'), 1000);
select is(t.claim_all('n1', t.at('7 hours 1 min 4 s'), 'q'), array[:now_one]::bigint[], 'then it runs');
select millrace.change_job_at(t.at('7 hours 2 min'), :moved, '{"delay": "10 minutes", "priority": 20}');
select ok(t.away(:moved), 'change_job leaves the payload where it is');
select is((select (d.lane >> 5) & 127 from millrace.delayed d where d.job_id = :moved), 20, 'and changes what it should');
select is((select d.away_due from millrace.delayed d where d.job_id = :moved), t.at('7 hours 12 min'), 'the time, too');
select millrace.pause_job_at(t.at('7 hours 3 min'), :paused);
select is(t.carry_back(t.at('9 hours')), '1 restored, 0 buried', 'a paused job stays away');
select ok(t.away(:paused), 'though its time is over');
select millrace.resume_job_at(t.at('9 hours 1 min'), :paused);
select is(t.carry_back(t.at('9 hours 1 min')), '1 restored, 0 buried', 'resumed, it comes back');
select millrace.promote(t.at('9 hours 2 min'), 1000);
select is(t.claim_all('n2', t.at('9 hours 2 min'), 'q'), array[:moved, :paused]::bigint[], 'both run');
select is((select count(*) from t.got g where g.tag = 'n2' and g.state = t.bytes('state', 400)), 2::bigint, 'with their payload');
select t.carry_away();

-- ---- cancelled: the object goes with the job's row ----
select t.later('q', '1 hour', p_at => '10 hours') as cancel2 \gset
select t.carry_out(t.at('10 hours 1 s'));
select is(millrace.cancel_at(t.at('10 hours 1 min'), :cancel2, 'no'), 'cancelled', 'cancelled while away');
select millrace.promote(t.at('12 hours'), 1000);
select is(t.claim_all('c', t.at('12 hours'), 'q'), '{}'::bigint[], 'nothing is delivered');
select is(t.duty(t.at('12 hours'), 'objects'), 0::bigint, 'while the log has the job, its objects stay');
select is((select count(*) from millrace.blob_object o where o.job_id = :cancel2), 2::bigint, 'both');
select ok((select min(o.look_at) > t.at('13 hours') from millrace.blob_object o where o.job_id = :cancel2), 'they are looked at later');
select pg_sequence_last_value('millrace.seg_seq'::regclass) as seg \gset
select t.duty(t.at('13 hours'), 'rotate');
select t.wait_sealed();
select t.duty(t.at('14 hours'), 'rotate');
call t.retire(t.at('60 hours'), :seg);
select is(millrace.objects_look(t.at('90 hours'), 100), 2::bigint, 'a look, a day later at most, finds that nobody names them');
select is((select count(*) from millrace.blob_object o where o.job_id = :cancel2), 0::bigint, 'when its segment is gone, they are doomed');
select ok(t.carry_away() >= 2, 'and removed');

-- ---- purge ----
select t.later('q', '30 days', p_at => '62 hours') as purged \gset
select t.carry_out(t.at('62 hours 1 s'));
select ok(t.objects() >= 2, 'objects are there');
select millrace.purge_at(t.at('62 hours 1 min'), q) from millrace.queue q where q.queue_name = 'q' and q.parent_id is null;
select t.carry_away();
select is((select count(*) from t.store s where s.object_name like '%/' || :purged || '-%'), 0::bigint, 'purge removes objects');

-- ---- dead letters ----
create function t.dead(p_queue text, p_at interval)
returns bigint
language plpgsql
as $$
declare
  v_id bigint;
begin
  v_id := millrace.enqueue_at(t.at(p_at), 'k', '{}', p_queue, 50, null, null, null, null, null, null, 1, null, null, null, t.bytes('state', 400), t.bytes('b', 20), null);
  return v_id;
end $$;
select t.dead('q', '70 hours') as d1 \gset
select millrace.promote(t.at('70 hours 1 s'), 1000);
select t.claim_all('d1', t.at('70 hours 1 s'), 'q');
select millrace.fail_at(t.at('70 hours 2 s'), t.lease('d1'), :d1, 'broken', null, true, null);
select is((select d.bytes > 2000 from millrace.dead d where d.job_id = :d1), true, 'a dead letter has its payload');
select is(t.carry_out(t.at('70 hours 3 s')), '1 stored, 0 spare', 'which is moved: the large part of it');
select is((select d.bytes < 1000 and d.payload_blob = t.bytes('b', 20) and millrace.is_away(d.payload_state) from millrace.dead d where d.job_id = :d1), true, 'the letter is small then');
select is(millrace.dead_replay(t.at('70 hours 1 min'), array[:d1]), 1::bigint, 'replayed');
select is((millrace.job_story(:d1)) ->> 'status', 'scheduled', 'it waits for its payload');
select is(t.carry_back(t.at('70 hours 1 min')), '1 restored, 0 buried', 'which comes back');
select millrace.promote(t.at('70 hours 1 min 3 s'), 1000);
select is(t.claim_all('d2', t.at('70 hours 1 min 3 s'), 'q'), array[:d1]::bigint[], 'it runs');
select is((select array[g.state, g.blob] from t.got g where g.tag = 'd2'), array[t.bytes('state', 400), t.bytes('b', 20)], 'whole');
select millrace.fail_at(t.at('70 hours 2 min'), t.lease('d2'), :d1, 'broken', null, true, null);
select t.carry_out(t.at('70 hours 2 min'));
select is(millrace.purge_dead('q') > 0, true, 'purged');
select t.carry_away();
select is((select count(*) from t.store s where s.object_name like '%/' || :d1 || '-%'), 0::bigint, 'with its object');
select t.dead('q', '71 hours') as d3 \gset
select millrace.promote(t.at('71 hours 1 s'), 1000);
select t.claim_all('d3', t.at('71 hours 1 s'), 'q');
select millrace.fail_at(t.at('71 hours 2 s'), t.lease('d3'), :d3, 'broken', null, true, null);
select t.carry_out(t.at('71 hours 3 s'));
select is(millrace.dead_retain(t.at('90 days'), 100) > 0, true, 'a letter whose time is over is removed');
select t.carry_away();
select is((select count(*) from t.store s where s.object_name like '%/' || :d3 || '-%'), 0::bigint, 'with its object, too');

-- ---- a row that changed while its bytes were carried ----
select t.later('q', '1 hour', p_at => '100 hours') as c1 \gset
select jsonb_agg(jsonb_build_object('place', k.place, 'id', k.id, 'part', k.part, 'key', k.object_name, 'sha256', encode(sha256(k.body), 'hex'))) as stored
  from millrace.offload_take_at(t.at('100 hours 1 s'), 0, 100, 1000000) k where k.id = :c1 \gset
update millrace.delayed d set payload_state = t.bytes('other', 400) where d.job_id = :c1;
select is((select count(*) from millrace.offload_done_at(t.at('100 hours 2 s'), :'stored')), 2::bigint, 'a part that changed: nobody needs the objects');
select is((select d.payload_state from millrace.delayed d where d.job_id = :c1), t.bytes('other', 400), 'and the row is as it was');
select is((select count(*) from millrace.blob_object o where o.job_id = :c1), 0::bigint, 'the ledger, too');
update millrace.delayed d set payload_state = t.bytes('state', 400) where d.job_id = :c1;
select is((select count(*) from millrace.offload_done_at(t.at('100 hours 3 s'), :'stored')), 0::bigint, 'as it was stored it is accepted');
select is((select count(*) from millrace.offload_done_at(t.at('100 hours 3 s'), :'stored')), 0::bigint, 'told again, it does not say that the objects are of no use');
select is((select count(*) from millrace.blob_object o where o.job_id = :c1), 2::bigint, 'and they are in the ledger once');
select is((select r.restored + r.buried from millrace.offload_restore_at(t.at('101 hours'), array[:c1], array['state'], array['somewhere/else'], array[t.bytes('x', 10)], null) r), 0, 'bytes of another object are not taken');
select is((select r.restored + r.buried from millrace.offload_restore_at(t.at('101 hours'), array[:c1], array['state'], array['somewhere/else'], null, array['missing']) r), 0, 'nor is what is said of another object');
select is((select count(*) from millrace.offload_done_at(t.at('100 hours'), '[{"place": "nowhere", "id": 1, "part": "state", "key": "k", "sha256": ""}, {"place": "dead", "id": 1, "part": "state", "key": "l", "sha256": ""}]')), 2::bigint, 'what is nowhere is not needed');

-- ---- how long objects are needed ----
select is(millrace.offload_span() >= 30, true, 'for as long as dead letters are kept, where they are moved');
select millrace.set_queue('q', '{"dead_retention": "90 days"}');
select is(millrace.offload_span() >= 90, true, 'the longest counts');

-- ---- whose turn ----
select ok(millrace.offload_turn_at(t.at('100 hours'), 'one') ~ '^[0-9a-f]{16}$', 'one has the turn');
select is(millrace.offload_turn_at(t.at('100 hours 1 s'), 'two'), null, 'two has not');
select ok(millrace.offload_turn_at(t.at('100 hours 20 s'), 'one') is not null, 'one keeps it');
select is(millrace.offload_turn_at(t.at('100 hours 40 s'), 'two'), null, 'by asking');
select is(millrace.offload_turn_at(t.at('100 hours 41 s'), 'two', true), null, 'two gives back what it has not');
select ok(millrace.offload_turn_at(t.at('100 hours 51 s'), 'two') is not null, 'and loses it by not asking');
select is(millrace.offload_turn_at(t.at('100 hours 52 s'), 'one'), null, 'then it is two''s');
select is(millrace.offload_turn_at(t.at('100 hours 53 s'), 'two', true), null, 'two gives it back');
select ok(millrace.offload_turn_at(t.at('100 hours 54 s'), 'one') is not null, 'and one has it at once');

-- ---- bad input ----
select t.refused($$select millrace.offload_turn('')$$, '22023', 'worker must not be empty');
select t.refused($$select millrace.offload_take(0, 0)$$, '22023', 'max_jobs must be from 1');
select t.refused($$select millrace.offload_due('1 s', 1, 0)$$, '22023', 'max_bytes must be from 1');
select t.refused($$select millrace.offload_done('{}')$$, '22023', 'stored must be an array');
select t.refused($$select millrace.offload_restore('{1}', '{}', '{}', '{}')$$, '22023', 'ids, parts and keys must have an element for each part');
select is((select count(*) from millrace.offload_unknown(array['a', 'b'])), 2::bigint, 'objects that nobody knows');
select is((select count(*) from millrace.offload_unknown('{}')), 0::bigint, 'none asked, none answered');
select * from finish();
