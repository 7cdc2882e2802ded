-- SPDX-License-Identifier: PostgreSQL
-- Routes: jobs of some tenants, or of a share of them, go to another queue, by every way in.
\ir lib/helpers.psql
select no_plan();

-- Where the jobs of a call are, in its order, each by the name of its queue.
create function t.where_are(variadic p_ids bigint[])
returns text[]
language sql
as $$
  select array(select millrace.job(i) ->> 'queue' from unnest(p_ids) with ordinality u(i, ord) order by u.ord)
$$;

create function t.tenants_of(p_queue text)
returns text[]
language sql
as $$
  select array(select distinct j.tenant from millrace.jobs j where j.queue = p_queue and j.tenant is not null order by 1)
$$;

-- ---- settings ----
select millrace.set_queue('s', '{"route": "other", "route_share": 10, "route_tenants": "acme,a b"}');
select is((select (q.settings ->> 'route', q.settings -> 'route_share', q.settings ->> 'route_tenants')::text from millrace.queues q where q.queue = 's'),
          '(other,10,"acme,a b")', 'they are shown');
select is((select count(*) from millrace.queues q where q.queue = 'other'), 0::bigint, 'the other queue need not be there');
select millrace.set_queue('s', '{"route_tenants": 42}');
select is((select q.settings ->> 'route_tenants' from millrace.queues q where q.queue = 's'), '42', 'a number is a name');
select t.all_rows() as before
\gset
select t.refused(format('select millrace.set_queue(%L, %L)', 's', v), '22023', m)
  from (values ('{"route": "s"}', 'queue ''s'' cannot be its own route'),
               ('{"route": 1}', 'setting route does not accept 1'),
               ('{"route": ["a"]}', 'setting route does not accept'),
               ('{"route": ""}', 'route must not be empty'),
               ('{"route_share": -1}', 'setting route_share must be from 0 to 100, not -1'),
               ('{"route_share": 101}', 'setting route_share must be from 0 to 100, not 101'),
               ('{"route_share": "10%"}', 'setting route_share does not accept ''10%'''),
               ('{"route_share": 0.5}', 'setting route_share does not accept ''0.5'''),
               ('{"route_tenants": ""}', 'setting route_tenants does not accept'),
               ('{"route_tenants": "a, b"}', 'setting route_tenants does not accept ''a, b'''),
               ('{"route_tenants": "a,,b"}', 'setting route_tenants does not accept'),
               ('{"route_tenants": ",a"}', 'setting route_tenants does not accept'),
               ('{"route_tenants": ["a"]}', 'setting route_tenants does not accept'),
               (jsonb_build_object('route_tenants', repeat('x', 10001))::text, 'setting route_tenants does not accept')) r(v, m);
select is(t.all_rows(), :'before', 'what was refused has changed nothing');
select millrace.set_queue('s', '{"route": null, "route_share": null, "route_tenants": null}');
select is((select (q.settings -> 'route', q.settings -> 'route_share', q.settings -> 'route_tenants')::text from millrace.queues q where q.queue = 's'),
          '(null,0,null)', 'and null switches them off');

-- ---- tenants by name, by every way in ----
select millrace.set_queue('hog', '{"route": "hog_redis", "route_tenants": "acme,globex"}');
select millrace.set_queue('hog_redis', '{"transport": "redis", "route": "hog", "route_share": 100}');
select is(t.where_are(millrace.enqueue('k', queue => 'hog', tenant => 'acme'), millrace.enqueue('k', queue => 'hog', tenant => 'initech'),
                      millrace.enqueue('k', queue => 'hog')), '{hog_redis,hog,hog}', 'enqueue: those that are named, and no route of the route''s');
select is(t.where_are(millrace.enqueue('k', queue => 'hog', tenant => 'acm'), millrace.enqueue('k', queue => 'hog', tenant => 'acme,globex'),
                      millrace.enqueue('k', queue => 'hog', tenant => '')), '{hog,hog,hog}', 'whole names');
select is(t.where_are(millrace.enqueue('k', queue => 'hog', tenant => 'globex', delay => '1 hour')), '{hog_redis}', 'a job for later');
create function t.jobs(p_queue text)
returns jsonb
language sql
as $$
  select jsonb_agg(jsonb_build_object('kind', 'k', 'queue', p_queue, 'tenant', u.tenant) order by u.ord)
    from unnest(array['initech', 'acme', null, 'globex']) with ordinality u(tenant, ord)
$$;
select is(t.where_are(variadic array(select millrace.enqueue_jobs(t.jobs('hog')))), '{hog,hog_redis,hog,hog_redis}', 'enqueue_jobs, in its order');
select is(t.where_are(variadic array(select jsonb_array_elements_text(millrace.enqueue_once('once', t.jobs('hog')) -> 'ids')::bigint)),
          '{hog,hog_redis,hog,hog_redis}', 'enqueue_once');
select millrace.batch_begin() as batch
\gset
select is(t.where_are(variadic array(select millrace.batch_add(:batch, t.jobs('hog')))), '{hog,hog_redis,hog,hog_redis}', 'batch_add');
select is(t.where_are(variadic array(select millrace.enqueue_many('k', '{1,2,3}', 'hog'))), '{hog,hog,hog}', 'enqueue_many has no tenants');
select millrace.bridge_apply('b', 's', 'g', array['1-1', '1-2'], array['{"team": "acme"}', '{"team": "initech"}']::jsonb[],
                             settings => '{"queue": "hog", "kind": "bridged", "tenant_from": "team"}') is not null as applied
\gset
select is((select array_agg(j.queue order by j.ref) from millrace.jobs j where j.kind = 'bridged'), '{hog_redis,hog}', 'a bridge');

-- ---- what stays where it is ----
select i as id from millrace.enqueue('fails', queue => 'hog', tenant => 'acme', max_attempts => 2) i
\gset
create function t.until(p_id bigint, p_queue text)
returns text
language plpgsql
as $$
declare
  v_one record;
begin
  for i in 1..200 loop
    for v_one in select c.lease, c.id from millrace.claim(p_queue, 'w', 1) c loop
      if v_one.id = p_id then
        return v_one.lease;
      end if;
      perform millrace.complete(v_one.lease);
    end loop;
  end loop;
end $$;
select t.until(:id, 'hog_redis') as lease
\gset
select millrace.set_queue('hog', '{"route_tenants": null}');
select millrace.fail(:'lease', :id, 'no', retry_in => '1 hour') as failed
\gset
select is(t.where_are(:id), '{hog_redis}', 'a retry stays, whatever became of the route');
select millrace.run_now(:id) is not null as called
\gset
select t.until(:id, 'hog_redis') as lease
\gset
select millrace.fail(:'lease', :id, 'no', retry => false) as failed
\gset
select is((select d.queue from millrace.dead_letters d where d.id = :id), 'hog_redis', 'a dead letter is of the queue that had it');
select millrace.set_queue('hog', '{"route_tenants": "acme"}');
select millrace.replay(:id) is not null as replayed
\gset
select is(t.where_are(:id), '{hog_redis}', 'and its replay');
select t.until(:id, 'hog_redis') as lease
\gset
select millrace.requeue(:'lease', :id, '{"queue": "hog"}') is not null as requeued
\gset
select is(t.where_are(:id), '{hog}', 'a worker that names a queue means it');

-- ---- a share of the tenants ----
select millrace.set_queue('many', '{"route": "many_there", "route_share": 10}');
select count(*) as made from millrace.enqueue_jobs((select jsonb_agg(jsonb_build_object('kind', 'k', 'queue', 'many', 'tenant', 'tenant ' || i)) from generate_series(1, 1000) i))
\gset
select is(t.tenants_of('many_there'), array(select 'tenant ' || i from generate_series(1, 1000) i where millrace.shadow_share('tenant ' || i, 0) < 10 order by 1),
          'the tenants are those of a shadow with the same share');
select cmp_ok(cardinality(t.tenants_of('many_there')), '>', 60, 'about a tenth');
select cmp_ok(cardinality(t.tenants_of('many_there')), '<', 140, 'and no more');
select (t.tenants_of('many_there'))[1] as taken
\gset
select is(array(select distinct u from unnest(t.where_are(variadic array(select millrace.enqueue('k', queue => 'many', tenant => :'taken') from generate_series(1, 20)))) u),
          '{many_there}', 'one job at a time has the same answer');
select t.tenants_of('many_there') as tenth
\gset
select millrace.set_queue('many', '{"route_share": 30}');
select count(*) as made from millrace.enqueue_jobs((select jsonb_agg(jsonb_build_object('kind', 'k', 'queue', 'many', 'tenant', 'tenant ' || i)) from generate_series(1, 1000) i))
\gset
select is(t.tenants_of('many_there') @> :'tenth'::text[], true, 'a larger share has the tenants of the smaller one');
select millrace.set_queue('all', '{"route": "all_there", "route_share": 100}');
select is(t.where_are(millrace.enqueue('k', queue => 'all'), millrace.enqueue('k', queue => 'all', tenant => 'acme')), '{all_there,all_there}', 'a hundred is everybody');
select millrace.set_queue('all', '{"route_share": 0}');
select is(t.where_are(millrace.enqueue('k', queue => 'all'), millrace.enqueue('k', queue => 'all', tenant => 'acme')), '{all,all}', 'none is nobody');

-- ---- jobs without a tenant ----
select millrace.set_queue('bulk', '{"route": "bulk_there", "route_share": 25}');
create function t.spread(p_kind text)
returns bigint[]
language sql
as $$
  select array[count(*) filter (where j.queue = 'bulk_there'), count(*)] from millrace.jobs j where j.kind = p_kind
$$;
select count(*) as made from millrace.enqueue_many('quarter', array(select to_jsonb(i) from generate_series(1, 4000) i), 'bulk')
\gset
select is(t.spread('quarter'), '{1000,4000}', 'enqueue_many: a quarter of them');
create table t.made as select * from millrace.enqueue_many('turn', '{10,20,30,40}', 'bulk') with ordinality i(id, ord);
select is((select array_agg((j.args)::text::int order by i.ord) from t.made i join millrace.jobs j on j.id = i.id), '{10,20,30,40}', 'ids come in the order of the args');
truncate t.made;
insert into t.made select * from millrace.enqueue_many('part', '{1,2,3,4}', 'bulk', state => '[2:5]={a,b,c,d}'::bytea[]) with ordinality;
select is((select array_agg(q.queue_name || ' ' || encode(j.payload_state, 'escape') order by i.ord)
             from t.made i
             join millrace.job j on j.job_id = i.id
             join millrace.queue q on q.queue_id = j.lane >> 12), '{"bulk_there a","bulk b","bulk c","bulk d"}', 'with their state');
select count(*) as made from millrace.enqueue_many('later', '{1,2,3,4}', 'bulk', run_at => clock_timestamp() + interval '1 hour')
\gset
select is(t.spread('later'), '{1,4}', 'for later');
select is((select count(*) from millrace.enqueue_many('k', '{}', 'bulk')), 0::bigint, 'an empty one');
select count(millrace.enqueue('single', queue => 'bulk')) as made from generate_series(1, 1000)
\gset
select cmp_ok((t.spread('single'))[1], '>', 150::bigint, 'one at a time about a quarter');
select cmp_ok((t.spread('single'))[1], '<', 350::bigint, 'and no more');
create table t.orders (id int, note text);
select millrace.capture('t.orders', 'bulk', 'captured');
insert into t.orders select i, 'x' from generate_series(1, 400) i;
select is(t.spread('captured'), '{100,400}', 'a captured table');
select millrace.set_queue('ticks', '{"route": "ticks_there", "route_share": 100}');
select millrace.schedule('tick', '@daily', 'k', queue => 'ticks');
select is(t.where_are(millrace.schedule_run('tick')), '{ticks_there}', 'a schedule');

-- ---- unique keys are those of the queue that was named ----
select millrace.set_queue('once', '{"route": "once_there", "route_share": 0}');
select millrace.enqueue('k', queue => 'once', unique_key => 'u', tenant => 'acme') as here
\gset
select millrace.set_queue('once', '{"route_share": 100}');
select is(millrace.enqueue('k', queue => 'once', unique_key => 'u', tenant => 'acme'), :here::bigint, 'a key that is held here is held when the route takes its tenant');
select is(array(select millrace.enqueue_jobs('[{"kind": "k", "queue": "once", "unique_key": "u"}, {"kind": "k", "queue": "once", "unique_key": "v"}, {"kind": "k", "queue": "once", "unique_key": "v"}]')),
          array[:here::bigint, i.v, i.v], 'in bulk, too')
  from (select millrace.enqueue('k', queue => 'once', unique_key => 'v') as v) i;
select is(t.where_are(millrace.enqueue('k', queue => 'once', unique_key => 'v')), '{once_there}', 'a new one goes there');
select millrace.set_queue('once', '{"route_share": 0}');
select is(t.where_are(millrace.enqueue('k', queue => 'once', unique_key => 'v')), '{once_there}', 'and is held when the route is off again');
select is((select count(*) from millrace.jobs j where j.queue in ('once', 'once_there')), 2::bigint, 'there are two');
select millrace.enqueue('k', '{"new": 1}', queue => 'once', unique_key => 'v', on_conflict => 'replace') as v
\gset
select is((select c.args from millrace.claim('once_there', 'w') c), '{"new": 1}', 'the newest args are told to the job there');
select millrace.cancel(:v) as cancelled
\gset
select millrace.complete(c.lease) from millrace.claim('once', 'w') c;
select isnt(millrace.enqueue('k', queue => 'once', unique_key => 'u'), :here::bigint, 'the end of its job gives a key back');
create table t.keyed (id int primary key, note text);
select millrace.set_queue('keyed', '{"route": "keyed_there", "route_share": 50}');
select millrace.capture('t.keyed', 'keyed', 'k', events => '{insert,update}', unique_on => '{id}', on_conflict => 'replace');
insert into t.keyed select i, 'first' from generate_series(1, 100) i;
update t.keyed set note = 'second';
select is((select array[count(*) filter (where j.queue = 'keyed_there'), count(*)] from millrace.jobs j where j.queue like 'keyed%'), '{50,100}', 'a captured row has one job, wherever it is');
select is((select count(*) from millrace.jobs j where j.queue like 'keyed%' and j.args -> 'new' ->> 'note' = 'second'), 100::bigint, 'with the newest args');

-- ---- ordering keys stay together: in the queue that was named ----
select millrace.set_queue('line', '{"ordered": true, "route": "line_there", "route_share": 100}');
select is(t.where_are(millrace.enqueue('k', queue => 'line', ordering_key => 'a', tenant => 'acme'), millrace.enqueue('k', queue => 'line', tenant => 'acme')),
          '{line,line_there}', 'enqueue');
select is(t.where_are(variadic array(select millrace.enqueue_jobs('[{"kind": "k", "queue": "line", "ordering_key": "a"}, {"kind": "k", "queue": "line"}]'))), '{line,line_there}', 'enqueue_jobs');

-- ---- limits are those of the queue that takes the job ----
select millrace.set_queue('full', '{"depth_limit": 1, "route": "full_there", "route_tenants": "acme"}');
select millrace.set_queue('full_there', '{"depth_limit": 2, "overflow": "spill", "max_args": 100}');
select count(millrace.enqueue('k', queue => 'full', tenant => 'acme')) as made from generate_series(1, 2)
\gset
select is(t.where_are(millrace.enqueue('k', queue => 'full', tenant => 'acme'), millrace.enqueue('k', queue => 'full')), '{spill,full}', 'the overflow of the route');
select t.refused('select millrace.enqueue(''k'', queue => ''full'')', 'MR002', 'queue ''full'' is full');
select is(t.where_are(variadic array(select millrace.enqueue_jobs('[{"kind": "k", "queue": "full", "tenant": "acme"}]'))), '{spill}', 'enqueue_jobs');
select millrace.set_queue('full_there', '{"overflow": null}');
select t.refused('select millrace.enqueue(''k'', queue => ''full'', tenant => ''acme'')', 'MR002', 'queue ''full_there'' is full');
select millrace.set_queue('full_there', '{"depth_limit": null}');
select t.refused(format('select millrace.enqueue(''k'', %L, queue => ''full'', tenant => ''acme'')', jsonb_build_object('a', repeat('x', 200))), '22023', 'args is 217 bytes long, the limit is 100');

-- ---- fair queues on both sides ----
select millrace.set_queue('turns', '{"fair": true, "route": "turns_there", "route_tenants": "acme"}');
select millrace.set_queue('turns_there', '{"fair": true}');
select is(t.where_are(millrace.enqueue('k', queue => 'turns', tenant => 'acme'), millrace.enqueue('k', queue => 'turns', tenant => 'globex')), '{turns_there,turns}', 'enqueue');
select is(t.where_are(variadic array(select millrace.enqueue_jobs(t.jobs('turns')))), '{turns,turns_there,turns,turns}', 'enqueue_jobs');
select is((select array_agg(c.tenant) from millrace.claim('turns_there', 'w', 10) c), '{acme,acme}', 'a claim there gives them');
select finish();
