-- SPDX-License-Identifier: PostgreSQL
-- examples/cyclotron/cyclotron.sql: Cyclotron's words. Locks that are not good, the four parts set and cleared one by one, states, what the view tells.
\ir lib/helpers.psql
\ir ../../examples/cyclotron/cyclotron.sql
select no_plan();

select millrace.set_queue('hog', '{"lease": "1 hour"}')
\g /dev/null
-- A job as the view tells it.
create function t.shown(p_id bigint)
returns text
language sql
as $$
  select concat_ws(' ', j.queue_name, j.state, j.priority, encode(j.vm_state, 'escape'), encode(j.blob, 'escape'), j.parameters, j.metadata) from cyclotron.jobs j where j.id = p_id
$$;
create function t.create_one()
returns bigint
language sql
as $$
  select cyclotron.create_job(7, '6f9619ff-8b86-4011-b42d-00c04fc964ff', 'hog', 10, null, 'vm', 'body', '{"url": "/x"}', '{"a": 1}', '11111111-1111-4111-8111-111111111111')
$$;

-- ---- creating ----
select t.create_one() as id
\gset
select is(t.shown(:id), 'hog available 10 vm body {"url": "/x"} {"a": 1}', 'a job in its words');
select is((select (j.ref, j.team_id, j.function_id, j.lock_id is null, j.last_heartbeat is null, j.janitor_touch_count, j.transition_count, j.last_transition = j.created, j.scheduled = j.created)::text
             from cyclotron.jobs j where j.id = :id),
          '(11111111-1111-4111-8111-111111111111,7,6f9619ff-8b86-4011-b42d-00c04fc964ff,t,t,0,0,t,t)', 'the caller''s UUID, team and function; nothing has happened to it');
select is((cyclotron.get_job(:id)).id, :id::bigint, 'one job');
select t.refused('select cyclotron.get_job(-1)', 'MR003', '^there is no job -1$');
select array_agg(b) as ids from cyclotron.bulk_create_jobs((select jsonb_agg(jsonb_build_object('team_id', i, 'function_id', md5(i::text)::uuid, 'queue_name', 'bulk', 'priority', 100 - i,
                                                                'ref', md5('r' || i)::uuid, 'vm_state', encode(convert_to('vm' || i, 'UTF8'), 'base64'), 'metadata', i)) from generate_series(1, 5) i), 2) b
\gset
select is(cardinality(:'ids'::bigint[]), 5, 'five in chunks of two');
select is((select array_agg(g.team_id order by o) from unnest(:'ids'::bigint[]) with ordinality i(id, o) cross join lateral cyclotron.get_job(i.id) g), array[1, 2, 3, 4, 5], 'ids in the order of the array');
select is((select (g.ref, g.function_id, g.priority, encode(g.vm_state, 'escape'), g.metadata)::text from cyclotron.get_job((:'ids'::bigint[])[3]) g),
          format('(%s,%s,97,vm3,3)', md5('r3')::uuid, md5('3')::uuid), 'each as it was given');
select ok((cyclotron.get_job(cyclotron.create_job(1, md5('f')::uuid, 'bulk'))).ref::uuid is not null, 'without a UUID of its own it gets one');
select is((select count(*) from cyclotron.bulk_create_jobs('[]')), 0::bigint, 'none is fine');
select is((select count(*) from cyclotron.bulk_create_jobs('[{"team_id": 1, "function_id": "6f9619ff-8b86-4011-b42d-00c04fc964ff", "queue_name": "bulk"}]', 0)), 1::bigint, 'a chunk has at least one');
select throws_ok($$select cyclotron.bulk_create_jobs('[{"team_id": 1, "function_id": "f", "queue_name": "bulk"}]')$$, '22P02', null, 'a function is known by its UUID');
select millrace.set_queue('tight', '{"depth_limit": 1}'), cyclotron.create_job(1, md5('f')::uuid, 'tight')
\g /dev/null
select t.refused($$select cyclotron.create_job(1, md5('f')::uuid, 'tight')$$, 'MR002', '^queue ''tight'' is full');

-- ---- dequeuing ----
select lock_id, vm_state is null as without, encode(blob, 'escape') as blob, team_id from cyclotron.dequeue_jobs('hog', 'w1', 10)
\gset
select is(concat_ws(' ', :'without', :'blob', :team_id), 't body 7', 'without vm_state, with everything else');
select is(cyclotron.get_vm_state(:id, :'lock_id'), 'vm'::bytea, 'which can be had later');
select is((select (j.state, j.transition_count, j.lock_id is not null, j.last_heartbeat between j.last_transition and clock_timestamp())::text from cyclotron.jobs j where j.id = :id), '(running,1,t,t)', 'running');
select is((select count(*) from cyclotron.dequeue_jobs('hog', 'w2', 10)), 0::bigint, 'nobody else gets it');
select ok(cyclotron.heartbeat(:'lock_id') > clock_timestamp() + interval '59 minutes', 'a sign of life');

-- ---- locks that are not good: refused, and nothing changes ----
create function t.every_call(p_id bigint, p_lock text)
returns table (call text)
language sql
as $$
  select format(f, p_id, quote_nullable(p_lock))
    from unnest(array['cyclotron.set_state(%s, %s, ''completed'')', 'cyclotron.set_queue(%s, %s, ''other'')', 'cyclotron.set_priority(%s, %s, 1)', 'cyclotron.set_scheduled_at(%s, %s, now())',
                      'cyclotron.set_vm_state(%s, %s, ''x'')', 'cyclotron.set_blob(%s, %s, null)', 'cyclotron.set_parameters(%s, %s, ''{}'')', 'cyclotron.set_metadata(%s, %s, null)',
                      'cyclotron.get_vm_state(%s, %s)', 'cyclotron.flush_job(%s, %s)', 'cyclotron.release(%s, %s)', 'cyclotron.heartbeat(%2$s)']) f
$$;
select t.refused('select ' || c.call, 'MR001', '^lease .* is lost$', c.call)
  from unnest(array['1.2.3.4', '1.4416.1.533c4f6e-ed34-4eec-9200-3f91209b8bc7', '', null]) l cross join lateral t.every_call(:id, l) c;
select t.refused('select ' || c.call, 'MR003', '^job \d+ is not in lease', c.call) from t.every_call((:'ids'::bigint[])[1], :'lock_id') c where c.call not like '%heartbeat%';
select is((select count(*) from cyclotron.collected), 0::bigint, 'none of it was noted');
select is(t.shown(:id), 'hog running 10 vm body {"url": "/x"} {"a": 1}', 'and none of it done');

-- ---- collecting and flushing ----
select t.refused(format('select cyclotron.flush_job(%s, %L)', :id, :'lock_id'), '22023', '^job \d+ was not given its next state$');
select t.refused(format('select cyclotron.set_state(%s, %L, %L)', :id, :'lock_id', x), '22023', '^a worker cannot set the state', coalesce(x, 'null')) from unnest(array['running', 'dead', null]) x;
select cyclotron.set_state(:id, :'lock_id', 'available'), cyclotron.set_priority(:id, :'lock_id', 100)
\g /dev/null
select is(t.shown(:id), 'hog running 10 vm body {"url": "/x"} {"a": 1}', 'what was set waits for the flush');
select t.refused(format('select cyclotron.flush_job(%s, %L)', :id, :'lock_id'), '22023', '^priority must be from 0 to 99, not 100');
select is(t.shown(:id), 'hog running 10 vm body {"url": "/x"} {"a": 1}', 'a flush that is refused does nothing');
select cyclotron.set_priority(:id, :'lock_id', 3)
\g /dev/null
select lives_ok(format('select cyclotron.flush_job(%s, %L)', :id, :'lock_id'), 'the last one counts');
select is(t.shown(:id), 'hog available 3 vm body {"url": "/x"} {"a": 1}', 'flushed');
select t.refused('select ' || c.call, 'MR001', '^lease .* is lost$', 'flushed: ' || c.call) from t.every_call(:id, :'lock_id') c;

-- Sets or clears one part, and leaves the others as they are.
create procedure t.part(p_call text)
language plpgsql
as $$
declare
  v_job cyclotron.dequeued;
begin
  select * into v_job from cyclotron.dequeue_with_vm_state('hog', 'w', 1);
  commit;
  execute format(p_call, v_job.id, v_job.lock_id);
  perform cyclotron.set_state(v_job.id, v_job.lock_id, 'available');
  perform cyclotron.flush_job(v_job.id, v_job.lock_id);
  commit;
end $$;
call t.part($$select cyclotron.set_vm_state(%s, %L, 'vm2')$$);
select is(t.shown(:id), 'hog available 3 vm2 body {"url": "/x"} {"a": 1}', 'vm_state alone');
call t.part($$select cyclotron.set_vm_state(%s, %L, null)$$);
select is(t.shown(:id), 'hog available 3 body {"url": "/x"} {"a": 1}', '... cleared');
call t.part($$select cyclotron.set_blob(%s, %L, 'body2')$$);
select is(t.shown(:id), 'hog available 3 body2 {"url": "/x"} {"a": 1}', 'blob alone');
call t.part($$select cyclotron.set_blob(%s, %L, null)$$);
select is(t.shown(:id), 'hog available 3 {"url": "/x"} {"a": 1}', '... cleared');
call t.part($$select cyclotron.set_metadata(%s, %L, '{"b": 2}')$$);
select is(t.shown(:id), 'hog available 3 {"url": "/x"} {"b": 2}', 'metadata alone');
call t.part($$select cyclotron.set_metadata(%s, %L, null)$$);
select is(t.shown(:id), 'hog available 3 {"url": "/x"}', '... cleared');
call t.part($$select cyclotron.set_parameters(%s, %L, '{"url": "/y"}')$$);
select is(t.shown(:id), 'hog available 3 {"url": "/y"}', 'parameters alone');
call t.part($$select cyclotron.set_parameters(%s, %L, null)$$);
select is(t.shown(:id), 'hog available 3', '... cleared');
select is((select (g.team_id, g.function_id, g.ref)::text from cyclotron.get_job(:id) g), '(7,6f9619ff-8b86-4011-b42d-00c04fc964ff,11111111-1111-4111-8111-111111111111)', 'team, function and UUID have stayed');
call t.part($$select cyclotron.set_vm_state(%1$s, %2$L, null), cyclotron.set_vm_state(%1$s, %2$L, 'again'), cyclotron.set_parameters(%1$s, %2$L, '{"u": 1}'), cyclotron.set_parameters(%1$s, %2$L, null),
                     cyclotron.set_blob(%1$s, %2$L, 'b'), cyclotron.set_metadata(%1$s, %2$L, '[]')$$);
select is(t.shown(:id), 'hog available 3 again b []', 'several at once; what was set last counts');
call t.part($$select cyclotron.set_queue(%1$s, %2$L, 'hogoverflow'), cyclotron.set_scheduled_at(%1$s, %2$L, now() + interval '1 hour')$$);
select is(t.shown(:id), 'hogoverflow available 3 again b []', 'another queue');
select ok((cyclotron.get_job(:id)).scheduled > now() + interval '59 minutes', '... and time');
select is((cyclotron.get_job(:id)).transition_count, 22::bigint, 'eleven times it was taken and given back');

-- ---- the other states ----
select t.create_one() as id
\gset
select lock_id from cyclotron.dequeue_jobs('hog', 'w', 1)
\gset
select cyclotron.set_state(:id, :'lock_id', 'paused'), cyclotron.set_vm_state(:id, :'lock_id', 'p')
\g /dev/null
select cyclotron.flush_job(:id, :'lock_id')
\g /dev/null
select is(t.shown(:id), 'hog paused 10 p body {"url": "/x"} {"a": 1}', 'paused, with what was set');
select is((select count(*) from cyclotron.dequeue_jobs('hog', 'w', 10)), 0::bigint, 'nobody gets it');
select millrace.resume_job(:id)
\g /dev/null
select lock_id, encode(vm_state, 'escape') as vm from cyclotron.dequeue_with_vm_state('hog', 'w', 1)
\gset
select is(:'vm'::text, 'p', 'resumed, it is dequeued with its vm_state');
select cyclotron.set_vm_state(:id, :'lock_id', 'not this')
\g /dev/null
select cyclotron.release(:id, :'lock_id')
\g /dev/null
select is(t.shown(:id), 'hog available 10 p body {"url": "/x"} {"a": 1}', 'released as it was');
select is((select count(*) from cyclotron.collected), 0::bigint, 'and what was set is forgotten');
select lock_id from cyclotron.dequeue_jobs('hog', 'w', 1)
\gset
select cyclotron.set_state(:id, :'lock_id', 'failed'), cyclotron.set_vm_state(:id, :'lock_id', 'last')
\g /dev/null
select cyclotron.flush_job(:id, :'lock_id')
\g /dev/null
select is(t.shown(:id), 'hog failed 10 last body {"url": "/x"} {"a": 1}', 'failed, a dead letter with its last vm_state');
select is((select d.error from millrace.dead_letters d where d.id = :id), 'failed by its worker', 'which says why');
select t.create_one() as id
\gset
select lock_id from cyclotron.dequeue_jobs('hog', 'w', 1)
\gset
select cyclotron.set_state(:id, :'lock_id', 'completed')
\g /dev/null
select cyclotron.flush_job(:id, :'lock_id')
\g /dev/null
select is((select (g.state, g.transition_count, g.lock_id)::text from cyclotron.get_job(:id) g), '(completed,2,)', 'completed');

-- ---- the janitor ----
select t.create_one() as id
\gset
select lock_id from cyclotron.dequeue_jobs('hog', 'gone', 1)
\gset
select cyclotron.set_priority(:id, :'lock_id', 1)
\g /dev/null
select is((select count(*) from cyclotron.run_janitor() m where m.duty = 'rescue' and m.done > 0), 0::bigint, 'a worker that is there is left alone');
select is((select count(*) from cyclotron.collected), 1::bigint, '... and its notes');
select millrace.heartbeat(:'lock_id', '1 millisecond'), pg_sleep(0.01)
\g /dev/null
select is((select m.done from cyclotron.run_janitor() m where m.duty = 'rescue'), 1::bigint, 'the job of one that is gone is taken back');
select is((select count(*) from cyclotron.collected), 0::bigint, '... and its notes thrown away');
select is((select (g.state, g.janitor_touch_count, g.transition_count, g.priority)::text from cyclotron.get_job(:id) g), '(available,1,2,10)', 'touched once');
select t.refused('select ' || c.call, 'MR001', '^lease .* is lost$', 'expired: ' || c.call) from t.every_call(:id, :'lock_id') c;
select is((select (g.state, g.priority)::text from cyclotron.get_job(:id) g), '(available,10)', 'nothing has changed');
select millrace.cancel(:id)
\g /dev/null
select is((cyclotron.get_job(:id)).state, 'failed', 'cancelled is failed, here');
select * from finish();
