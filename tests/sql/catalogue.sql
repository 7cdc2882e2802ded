-- SPDX-License-Identifier: PostgreSQL
-- The catalogue: privileges, search paths, comments, names, signatures, and the invariants of the layout.
\ir lib/helpers.psql
select no_plan();

-- The public functions, the role that may call each (those above it in the hierarchy too), and a call with the required arguments
-- only. One list, written here: a function that is missing or too many fails.
create table t.public_function (role_name text, function_name text, call text);
insert into t.public_function values
  ('millrace_reader',   'depth',            'millrace.depth(''default'')'),
  ('millrace_reader',   'transport',        'millrace.transport(''default'')'),
  ('millrace_reader',   'stats',            'millrace.stats()'),
  ('millrace_reader',   'tenant_stats',     'millrace.tenant_stats(''shared'')'),
  ('millrace_reader',   'health',           'millrace.health()'),
  ('millrace_reader',   'doctor',           'millrace.doctor()'),
  ('millrace_reader',   'job',              'millrace.job(t.job())'),
  ('millrace_reader',   'outcome',          'millrace.outcome(t.job())'),
  ('millrace_reader',   'job_by_ref',       'millrace.job_by_ref(''default'', ''ref'')'),
  ('millrace_reader',   'cron_next',        'millrace.cron_next(''@daily'')'),
  ('millrace_reader',   'cron_times',       'millrace.cron_times(''@daily'')'),
  ('millrace_reader',   'batch',            'millrace.batch(t.batch())'),
  ('millrace_reader',   'overview',         'millrace.overview()'),
  ('millrace_reader',   'history',          'millrace.history()'),
  ('millrace_reader',   'list_jobs',        'millrace.list_jobs()'),
  ('millrace_reader',   'list_dead',        'millrace.list_dead()'),
  ('millrace_reader',   'dead_groups',      'millrace.dead_groups()'),
  ('millrace_reader',   'queue_story',      'millrace.queue_story(''default'')'),
  ('millrace_reader',   'system',           'millrace.system()'),
  ('millrace_reader',   'metrics',          'millrace.metrics()'),
  ('millrace_reader',   'list_schedules',   'millrace.list_schedules()'),
  ('millrace_reader',   'schedule_story',   'millrace.schedule_story(''spare'')'),
  ('millrace_reader',   'list_batches',     'millrace.list_batches()'),
  ('millrace_reader',   'list_workers',     'millrace.list_workers()'),
  ('millrace_reader',   'part_coding',      'millrace.part_coding(''x'')'),
  ('millrace_reader',   'part_size',        'millrace.part_size(''x'')'),
  ('millrace_reader',   'payload_policy',   'millrace.payload_policy(''default'')'),
  ('millrace_reader',   'shard',            'millrace.shard()'),
  ('millrace_reader',   'shard_open',       'millrace.shard_open()'),
  ('millrace_producer', 'shard_holds',      'millrace.shard_holds(''default'')'),
  ('millrace_admin',    'shard_join',       'millrace.shard_join(t.unshard(), 0, ''{0}'')'),
  ('millrace_admin',    'shard_change',     'millrace.shard_change()'),
  ('millrace_admin',    'shard_leave',      'millrace.shard_leave()'),
  ('millrace_producer', 'enqueue_once',     'millrace.enqueue_once(''key'', ''[]'')'),
  ('millrace_worker',   'claim_json',       'millrace.claim_json()'),
  ('millrace_producer', 'capture',          'millrace.capture(''t.own'', ''q'', ''k'')'),
  ('millrace_producer', 'uncapture',        'millrace.uncapture(t.captured(), ''q'')'),
  ('millrace_producer', 'capture_disable',  'millrace.capture_disable(t.captured(), ''q'')'),
  ('millrace_producer', 'capture_enable',   'millrace.capture_enable(t.captured(), ''q'')'),
  ('millrace_producer', 'batch_begin',      'millrace.batch_begin()'),
  ('millrace_producer', 'batch_add',        'millrace.batch_add(t.batch(), ''[]'')'),
  ('millrace_producer', 'batch_seal',       'millrace.batch_seal(t.batch())'),
  ('millrace_producer', 'depend',           'millrace.depend(t.job(), ''{}'')'),
  ('millrace_producer', 'enqueue',          'millrace.enqueue(''k'')'),
  ('millrace_producer', 'enqueue_many',     'millrace.enqueue_many(''k'', ''{}'')'),
  ('millrace_producer', 'enqueue_jobs',     'millrace.enqueue_jobs(''[]'')'),
  ('millrace_reader',    'cache_stats',       'millrace.cache_stats()'),
  ('millrace_producer',  'cache_set',         'millrace.cache_set(''k'', ''1'', ''1 minute'')'),
  ('millrace_producer',  'cache_get',         'millrace.cache_get(''k'')'),
  ('millrace_producer',  'cache_get_many',    'millrace.cache_get_many(''{k}'')'),
  ('millrace_producer',  'cache_delete',      'millrace.cache_delete(''k'')'),
  ('millrace_producer',  'cache_delete_like', 'millrace.cache_delete_like(''k%'')'),
  ('millrace_producer',  'rate_limit',        'millrace.rate_limit(''k'', 1, ''1 minute'')'),
  ('millrace_producer',  'lock',              'millrace.lock(''k'')'),
  ('millrace_producer',  'try_lock',          'millrace.try_lock(''k'')'),
  ('millrace_producer',  'unlock',            'millrace.unlock(''k'')'),
  ('millrace_producer',  'lock_guard',        'millrace.lock_guard()'),
  ('millrace_producer',  'lock_lease',        'millrace.lock_lease(''k'', ''me'', ''1 minute'')'),
  ('millrace_producer',  'unlock_lease',      'millrace.unlock_lease(''k'', ''me'')'),
  ('millrace_admin',     'set_cache',         'millrace.set_cache(''{}'')'),
  ('millrace_worker',   'claim',            'millrace.claim()'),
  ('millrace_worker',   'claim_batch',      'millrace.claim_batch()'),
  ('millrace_worker',   'claim_packs',      'millrace.claim_packs()'),
  ('millrace_worker',   'complete',         'millrace.complete(t.lease())'),
  ('millrace_worker',   'complete_many',    'millrace.complete_many(array[t.lease()])'),
  ('millrace_worker',   'fail',             'millrace.fail(t.lease(), t.held(), ''error'')'),
  ('millrace_worker',   'finish',           'millrace.finish(t.lease(), ''[]'')'),
  ('millrace_worker',   'requeue',          'millrace.requeue(t.lease(), t.held())'),
  ('millrace_worker',   'release',          'millrace.release(t.lease())'),
  ('millrace_worker',   'heartbeat',        'millrace.heartbeat(t.lease())'),
  ('millrace_worker',   'fetch_state',      'millrace.fetch_state(t.lease(), t.held())'),
  ('millrace_worker',   'progress',         'millrace.progress(t.lease(), t.held(), 50)'),
  ('millrace_worker',   'wait_channel',     'millrace.wait_channel(''default'', ''w'')'),
  ('millrace_worker',   'maintain',         'millrace.maintain()'),
  ('millrace_worker',   'bridge_admit',     'millrace.bridge_admit(''b'', ''s'', ''g'', ''{}'')'),
  ('millrace_worker',   'bridge_apply',     'millrace.bridge_apply(''b'', ''s'', ''g'', ''{}'', ''{}'')'),
  ('millrace_worker',   'bridge_begin',     'millrace.bridge_begin(''b'', ''s'', ''g'', ''1-1'')'),
  ('millrace_worker',   'bridge_bury',      'millrace.bridge_bury(''b'', ''s'', ''g'', ''1-1'', ''spare'', ''k'', ''{}'', ''error'')'),
  ('millrace_worker',   'bridge_floor',     'millrace.bridge_floor(''b'', ''s'', ''g'', ''1-1'')'),
  ('millrace_reader',   'offload_span',     'millrace.offload_span()'),
  ('millrace_worker',   'offload_turn',     'millrace.offload_turn(''w'')'),
  ('millrace_worker',   'offload_take',     'millrace.offload_take()'),
  ('millrace_worker',   'offload_done',     'millrace.offload_done(''[]'')'),
  ('millrace_worker',   'offload_due',      'millrace.offload_due()'),
  ('millrace_worker',   'offload_restore',  'millrace.offload_restore(''{}'', ''{}'', ''{}'', ''{}'')'),
  ('millrace_worker',   'offload_doomed',   'millrace.offload_doomed()'),
  ('millrace_worker',   'offload_removed',  'millrace.offload_removed(''{}'')'),
  ('millrace_worker',   'offload_unknown',  'millrace.offload_unknown(''{}'')'),
  ('millrace_admin',    'bridge_forget',    'millrace.bridge_forget(''b'')'),
  ('millrace_admin',    'move_target',      'millrace.move_target(''spare'')'),
  ('millrace_admin',    'move_begin',       'millrace.move_begin(''spare'', ''1.1'')'),
  ('millrace_admin',    'move_take',        'millrace.move_take(t.move())'),
  ('millrace_admin',    'move_done',        'millrace.move_done(t.move(), 0)'),
  ('millrace_admin',    'move_arrive',      'millrace.move_arrive(''1.1.1'', 1, ''spare'', array[t.moving()], ''{"{}"}'', ''{null}'', ''{null}'', ''{null}'')'),
  ('millrace_admin',    'move_give_back',   'millrace.move_give_back(''spare'')'),
  ('millrace_admin',    'shadow_begin',     'millrace.shadow_begin(''spare'', ''1.1'')'),
  ('millrace_admin',    'shadow_check',     'millrace.shadow_check(''1.1.1'')'),
  ('millrace_admin',    'shadow_story',     'millrace.shadow_story(''1.1.1'')'),
  ('millrace_admin',    'set_queue',        'millrace.set_queue(''default'', ''{}'')'),
  ('millrace_admin',    'drop_queue',       'millrace.drop_queue(''spare'')'),
  ('millrace_admin',    'purge',            'millrace.purge(''spare'')'),
  ('millrace_admin',    'set_retry',        'millrace.set_retry(''k'')'),
  ('millrace_admin',    'pause',            'millrace.pause(''default'')'),
  ('millrace_admin',    'resume',           'millrace.resume(''default'')'),
  ('millrace_admin',    'cancel',           'millrace.cancel(t.job())'),
  ('millrace_admin',    'pause_job',        'millrace.pause_job(t.job())'),
  ('millrace_admin',    'resume_job',       'millrace.resume_job(t.paused())'),
  ('millrace_admin',    'run_now',          'millrace.run_now(t.job())'),
  ('millrace_admin',    'change_job',       'millrace.change_job(t.job(), ''{}'')'),
  ('millrace_admin',    'schedule',         'millrace.schedule(''spare'', ''@daily'', ''k'')'),
  ('millrace_admin',    'schedule_run',     'millrace.schedule_run(''spare'')'),
  ('millrace_admin',    'schedule_disable', 'millrace.schedule_disable(''spare'')'),
  ('millrace_admin',    'schedule_enable',  'millrace.schedule_enable(''spare'')'),
  ('millrace_admin',    'unschedule',       'millrace.unschedule(''spare'')'),
  ('millrace_admin',    'replay',           'millrace.replay(t.letter())'),
  ('millrace_admin',    'replay_all',       'millrace.replay_all(''default'')'),
  ('millrace_admin',    'replay_completed', 'millrace.replay_completed(''default'', now() - interval ''1 hour'', now())'),
  ('millrace_admin',    'purge_dead',       'millrace.purge_dead(''default'')');
-- The toolbox is for workers, too.
create table t.worker_too as
select p.function_name
  from t.public_function p
 where p.function_name ~ '^(cache_(set|get|delete)|rate_limit|(try_|un)?lock)'
   and p.role_name = 'millrace_producer';
-- Called by views only, by functions that run with their callers' rights, and by triggers: nobody calls them by hand.
create table t.view_function (role_name text, function_name text);
insert into t.view_function values
  ('millrace_reader',   'job_standing'), ('millrace_reader', 'job_logged'), ('millrace_reader', 'worker_list'), ('millrace_reader', 'capture_list'),
  ('millrace_producer', 'capture_plan'), ('millrace_producer', 'capture_change'), ('millrace_producer', 'capture_run'), ('millrace_producer', 'capture_put');
-- Those that run with their callers' rights.
create table t.invoker_function (function_name text);
insert into t.invoker_function values ('capture'), ('uncapture'), ('capture_enable'), ('capture_disable'), ('capture_run'), ('bridge_apply');
create table t.role_rank (role_name text, above text[]);
insert into t.role_rank values
  ('millrace_reader',   array['millrace_reader', 'millrace_producer', 'millrace_worker', 'millrace_admin']),
  ('millrace_producer', array['millrace_producer', 'millrace_admin']),
  ('millrace_worker',   array['millrace_worker', 'millrace_admin']),
  ('millrace_admin',    array['millrace_admin']);
create view t.fn as
select p.oid, p.proname::text as name, p.prosecdef, p.proconfig, p.proargnames, p.proargmodes, p.pronargs, p.oid::regprocedure::text as signature
  from pg_proc p
 where p.pronamespace = 'millrace'::regnamespace;

-- ---- privileges ----
select is(array(select f.signature from t.fn f where has_function_privilege('public', f.oid, 'execute') order by 1), '{}', 'nothing is executable by public');
select is(array(select f.signature from t.fn f where f.prosecdef and not coalesce('search_path=pg_catalog, pg_temp' = any (f.proconfig), false) order by 1), '{}',
          'every security definer function pins its search_path, with pg_temp last');
select is(array(select f.name from t.fn f where f.prosecdef order by 1),
          array(select x from (select p.function_name as x from t.public_function p
                                union all
                               select v.function_name from t.view_function v) s
                 where x not in (select i.function_name from t.invoker_function i)
                 order by 1),
          'the security definer functions are the public ones and those of the views and triggers, no other');
select is(array(select r.role_name || ' ' || f.name
                  from (select unnest(rr.above) as role_name, p.function_name as name from t.public_function p join t.role_rank rr on rr.role_name = p.role_name
                         union
                        select unnest(rr.above), w.function_name from t.worker_too w join t.role_rank rr on rr.role_name = 'millrace_worker'
                         union
                        select unnest(rr.above), v.function_name from t.view_function v join t.role_rank rr on rr.role_name = v.role_name) f
                 cross join lateral (select f.role_name) r
                 order by 1),
          array(select r.role_name || ' ' || f.name
                  from t.fn f
                 cross join t.role_rank r
                 where has_function_privilege(r.role_name, f.oid, 'execute')
                 order by 1), 'each role may call exactly its functions');
select is(array(select c.relname || ' ' || r.role_name || ' ' || v.privilege
                  from pg_class c
                 cross join (select r.role_name from t.role_rank r union all select 'public') r
                 cross join unnest(array['insert', 'update', 'delete', 'truncate', 'references', 'trigger']) v(privilege)
                 where c.relnamespace = 'millrace'::regnamespace
                   and c.relkind in ('r', 'p', 'v')
                   and has_table_privilege(r.role_name, c.oid, v.privilege)
                 order by 1), '{}', 'no table is writable by the four roles or public');
select is(array(select c.relname || ' ' || r.role_name
                  from pg_class c
                 cross join t.role_rank r
                 where c.relnamespace = 'millrace'::regnamespace
                   and c.relkind in ('r', 'p', 'v')
                   and has_table_privilege(r.role_name, c.oid, 'select')
                 order by 1),
          array(select v || ' ' || r.role_name
                  from unnest(array['jobs', 'queues', 'dead_letters', 'workers', 'retries', 'schedules', 'batches', 'bridges', 'captures', 'schema_migration', 'schema_functions']) v
                 cross join t.role_rank r
                 order by 1), 'readable are the views and what migrate wrote down, for all four roles');
select is(array(select a.attrelid::regclass::text || '.' || a.attname
                  from pg_attribute a
                  join pg_class c on c.oid = a.attrelid
                 where c.relnamespace = 'millrace'::regnamespace
                   and a.attacl is not null), '{}', 'no privileges on single columns');
select is(array(select c.relname::text
                  from pg_class c
                 cross join (select r.role_name from t.role_rank r union all select 'public') r
                 where c.relnamespace = 'millrace'::regnamespace
                   and c.relkind = 'S'
                   and (has_sequence_privilege(r.role_name, c.oid, 'usage') or has_sequence_privilege(r.role_name, c.oid, 'select') or has_sequence_privilege(r.role_name, c.oid, 'update'))), '{}',
          'no sequence may be used');
select is(array(select r.role_name from t.role_rank r where has_schema_privilege(r.role_name, 'millrace', 'create')), '{}', 'nobody creates in the schema');
select is(has_schema_privilege('public', 'millrace', 'usage'), false, 'public does not see the schema');
select is(array(select r.role_name from t.role_rank r where has_schema_privilege(r.role_name, 'millrace', 'usage') order by 1),
          array['millrace_admin', 'millrace_producer', 'millrace_reader', 'millrace_worker'], 'the four roles do');
select is(array(select m.roleid::regrole || ' > ' || m.member::regrole from pg_auth_members m where m.roleid::regrole::text like 'millrace%' order by 1),
          array['millrace_producer > millrace_admin', 'millrace_reader > millrace_producer', 'millrace_reader > millrace_worker', 'millrace_worker > millrace_admin'],
          'reader < producer, worker < admin');
select is(array(select r.rolname::text from pg_roles r where r.rolname like 'millrace%' and (r.rolcanlogin or r.rolsuper or r.rolcreaterole or r.rolcreatedb or r.rolbypassrls)), '{}', 'the roles have no other powers');

-- ---- names, comments, signatures ----
select is(array(select p.function_name from t.public_function p where (select count(*) from t.fn f where f.name = p.function_name) <> 1), '{}', 'each public function has one signature');
select is(array(select p.function_name from t.public_function p join t.fn f on f.name = p.function_name where coalesce(obj_description(f.oid, 'pg_proc'), '') = ''), '{}',
          'every public function has a comment');
select is(array(select c.relname::text
                  from pg_class c
                 where c.relnamespace = 'millrace'::regnamespace
                   and c.relkind in ('r', 'p', 'v')
                   and not c.relispartition
                   and coalesce(obj_description(c.oid, 'pg_class'), '') = ''
                 order by 1), '{}', 'every table and view has a comment');
select is(array(select distinct format('%s of %s is a column of %s', u.arg, f.name, c.relname)
                  from t.public_function p
                  join t.fn f on f.name = p.function_name
                 cross join lateral unnest(f.proargnames[1:f.pronargs]) u(arg)
                  join pg_attribute a on a.attname = u.arg and a.attnum > 0 and not a.attisdropped
                  join pg_class c on c.oid = a.attrelid
                 where c.relnamespace = 'millrace'::regnamespace
                   and c.relkind in ('r', 'p')
                   and c.relname not like 'schema\_%'
                 order by 1), '{}', 'no column has the name of a public parameter');
select is(array(select f.signature || ' ' || u.arg
                  from t.fn f
                 cross join lateral unnest(f.proargnames[1:f.pronargs]) u(arg)
                 where f.name not in (select p.function_name from t.public_function p)
                   and u.arg not like 'p\_%'
                 order by 1), '{}', 'parameters of internal functions begin with p_');

-- ---- every public function with its required arguments only, as a role that may; and as one that may not ----
create function t.job() returns bigint language sql security definer as $$ select max(j.job_id) from millrace.job j join millrace.queue q on q.queue_id = j.lane >> 12 where q.queue_name = 'default' $$;
create function t.batch() returns bigint language sql security definer as $$ select max(b.batch_id) from millrace.batch b $$;
create function t.move() returns int language sql security definer as $$ select max(m.move_id) from millrace.move m $$;
create function t.moving() returns jsonb language sql security definer as $$ select millrace.move_facts(1, 50 << 5, 'a', null, now(), null, null, null, 1, 0, 3, 'k', null, null, null, null, null, null) $$;
create function t.paused() returns bigint language sql security definer as $$ select max(d.job_id) from millrace.delayed d where d.why = 'p' $$;
create function t.letter() returns bigint language sql security definer as $$ select max(d.job_id) from millrace.dead d $$;
create function t.lease() returns text language sql security definer as $$ select max(g.lease) from t.got g where g.tag = 'held' $$;
create function t.held() returns bigint language sql security definer as $$ select max(g.id) from t.got g where g.tag = 'held' $$;
create function t.unshard() returns uuid language sql security definer as $$ delete from millrace.shard_place; select gen_random_uuid() $$;
-- What the calls need, fresh for each of them.
create function t.prepare()
returns void
language plpgsql
as $$
begin
  perform millrace.pause_job(millrace.enqueue('k', queue => 'paused'));
  perform millrace.batch_begin();
  perform millrace.set_queue('spare', '{}');
  insert into millrace.shard_place (set_uuid, shard_no, member_nos) values (gen_random_uuid(), 0, '{0}') on conflict do nothing;
  perform millrace.set_queue('shared', '{"fair": true}');
  perform millrace.schedule('spare', '@daily', 'k');
  perform millrace.move_begin('spare', '1.1');
  perform millrace.bridge_begin('b', 's', 'g', '1-1');
  insert into millrace.dead (died_at, job_id, created_at, queue_id, lane, bytes, slot, attempt, lost, attempts_limit, cause, job_kind)
  select now(), nextval('millrace.pos_seq'), now(), q.queue_id, q.queue_id << 12, 200, 0, 1, 0, 1, 'failed', 'k' from millrace.queue q where q.queue_name = 'default';
end $$;
create function t.captured() returns regclass language plpgsql as $$
begin
  perform millrace.capture('t.own', 'q', 'k');
  return 't.own'::regclass;
end $$;
grant usage on schema t to public;
select millrace.enqueue('k', ref => 'ref')
\gset
-- Returns the SQLSTATE of a call made as a role; all it did is undone.
create function t.state_of(p_role text, p_call text)
returns text
language plpgsql
as $$
declare
  v_state text := 'fine';
begin
  begin
    perform t.prepare();
    execute format('create table t.own (i int); alter table t.own owner to %1$I; grant create on schema t to %1$I', p_role);
    execute format('set local role %I', p_role);
    execute format('select %s', p_call);
    raise exception using errcode = 'TT000';
  exception when others then
    v_state := case sqlstate when 'TT000' then 'fine' else sqlstate || ' ' || sqlerrm end;
  end;
  return v_state;
end $$;
-- One job that is held, to work on, and one that waits.
insert into t.got select 'held', 1, c.* from millrace.claim() c;
select millrace.enqueue('k')
\gset
select is(t.state_of(p.role_name, p.call),
          'fine', format('%s as %s', p.call, p.role_name))
  from t.public_function p;
select is(t.state_of('millrace_admin', p.call),
          'fine', format('%s as millrace_admin', p.call))
  from t.public_function p;
select is(t.state_of('millrace_reader', p.call), '42501 permission denied for function ' || p.function_name, format('%s as millrace_reader', p.call))
  from t.public_function p
 where p.role_name <> 'millrace_reader';
select is(t.state_of('millrace_producer', 'millrace.claim()'), '42501 permission denied for function claim', 'a producer does not claim');
select is(t.state_of('millrace_worker', 'millrace.enqueue(''k'')'), '42501 permission denied for function enqueue', 'a worker does not enqueue');
select is(t.state_of('millrace_worker', 'millrace.purge(''spare'')'), '42501 permission denied for function purge', 'a worker does not purge');
select is(t.state_of('millrace_reader', format('(select count(*) from millrace.%I)', v)), 'fine', format('a reader reads millrace.%s', v))
  from unnest(array['jobs', 'queues', 'dead_letters', 'workers', 'retries', 'schedules', 'batches', 'bridges', 'captures', 'schema_migration', 'schema_functions']) v;
select is(t.state_of('millrace_admin', format('(select count(*) from millrace.%I)', v)), '42501 permission denied for table ' || v, format('not even an admin reads millrace.%s', v))
  from unnest(array['job', 'claim', 'delayed', 'dead', 'queue', 'archive', 'job_0', 'claim_parked']) v;
-- Internal functions are closed to all roles: the clock, and with it every lease, is not the caller's.
select is(t.state_of('millrace_admin', 'millrace.claim_at(now(), ''default'', ''w'', 1, null, true)'), '42501 permission denied for function claim_at', 'internal functions are closed');
-- A hostile schema in front of the caller's path changes nothing.
create schema evil;
grant usage on schema evil to public;
create function evil.now() returns timestamptz language plpgsql as $$ begin raise exception 'evil'; end $$;
create function evil.clock_timestamp() returns timestamptz language plpgsql as $$ begin raise exception 'evil'; end $$;
create function evil.octet_length(text) returns int language plpgsql as $$ begin raise exception 'evil'; end $$;
set search_path = evil, public, pg_catalog;
select ok(millrace.enqueue('k', queue => 'evil') > 0, 'a function in front of the search_path is not called');
select is((select count(*) from millrace.claim('evil')), 1::bigint, 'by claim neither');
reset search_path;

-- ---- invariants of the layout ----
select is((select s.seqcache from pg_sequence s where s.seqrelid = 'millrace.pos_seq'::regclass), 1::bigint, 'pos_seq has cache 1');
select is((select s.seqcache from pg_sequence s where s.seqrelid = 'millrace.seg_seq'::regclass), 1::bigint, 'seg_seq has cache 1');
select is(array(select i.inhrelid::regclass::text from pg_inherits i where i.inhparent = 'millrace.job'::regclass order by 1),
          array(select 'millrace.job_' || x from (select generate_series(0, 15)::text as x union all select 'parked') s order by 1), 'job has sixteen leaves and the parked one');
select is((select count(*) from pg_inherits i where i.inhparent = 'millrace.claim'::regclass), 17::bigint, 'claim too');
select is((select count(*) from pg_inherits i where i.inhparent = 'millrace.result'::regclass), 16::bigint, 'result has sixteen');
select is((select count(*) from pg_inherits i where i.inhparent = 'millrace.report'::regclass), 16::bigint, 'report, too');
select is((select count(*) from pg_inherits i where i.inhparent = 'millrace.tally'::regclass), 16::bigint, 'tally too');
select is((select a.attname::text from pg_attribute a where a.attrelid = 'millrace.job'::regclass and a.attnum = 1), 'xid', 'xid is the first column of job');
select is((select min(a.attname::text) from pg_inherits i join pg_attribute a on a.attrelid = i.inhrelid and a.attnum = 1 where i.inhparent = 'millrace.job'::regclass having count(distinct a.attname) = 1), 'xid', 'in every leaf');
select ok((select pg_get_expr(d.adbin, d.adrelid) from pg_attrdef d where d.adrelid = 'millrace.job'::regclass and d.adnum = 1) = 'pg_current_xact_id()', 'its default assigns the xid before seg is read');
select is(array(select pg_get_expr(d.adbin, d.adrelid) ~ '^\(?pg_sequence_last_value\(''millrace\.seg_seq''' from pg_attrdef d
                  join pg_attribute a on a.attrelid = d.adrelid and a.attnum = d.adnum
                 where d.adrelid = 'millrace.job'::regclass and a.attname in ('seg', 'slot')), array[true, true], 'seg and slot come from the sequence, not from a snapshot');
select is(array(select concat_ws(' ', c.relname, t.tgname) from pg_trigger t join pg_class c on c.oid = t.tgrelid where c.relnamespace = 'millrace'::regnamespace order by 1),
          '{lane queue_changes,queue queue_changes}', 'there are no triggers but those that say that a queue was changed');
select is(array(select c.conname::text from pg_constraint c where c.connamespace = 'millrace'::regnamespace and c.contype = 'f'), '{}', 'nor foreign keys');
select is(array(select f.name
                  from t.public_function p
                  join t.fn f on f.name = p.function_name
                 where f.name not in (select i.function_name from t.invoker_function i)
                   and not f.proconfig @> array['plan_cache_mode=force_generic_plan', 'enable_seqscan=off', 'enable_bitmapscan=off', 'jit=off']
                 order by 1), '{}', 'public functions pin their plans');

-- Vacuum at work on a leaf, or on what lies out of line of it, would keep it from being truncated.
select is((select count(*) filter (where c.reloptions @> '{autovacuum_vacuum_insert_threshold=-1,autovacuum_vacuum_threshold=2147483647}'
                                     and (t.oid is null or t.reloptions @> '{autovacuum_vacuum_insert_threshold=-1,autovacuum_vacuum_threshold=2147483647}'))
             from pg_class c
             left join pg_class t on t.oid = c.reltoastrelid
            where c.relnamespace = 'millrace'::regnamespace
              and c.relname ~ '^(job|claim|result|report|tally)_\d+$'
              and c.relkind = 'r'), 80::bigint, 'autovacuum leaves the ring alone');
select is((select count(*)
             from pg_attribute a
             join pg_class c on c.oid = a.attrelid
            where c.relnamespace = 'millrace'::regnamespace
              and c.relkind in ('r', 'p')
              and a.attname ~ '^payload_|^trail$'
              and a.attcompression <> case when 'lz4' = any (s.enumvals) then 'l' else '' end::"char"), 0::bigint, 'payloads are compressed with lz4')
  from pg_settings s
 where s.name = 'default_toast_compression';
select * from finish();
