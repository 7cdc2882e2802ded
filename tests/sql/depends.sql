-- SPDX-License-Identifier: PostgreSQL
-- Jobs that wait for others.
\ir lib/helpers.psql
select no_plan();

create function t.one(p_now timestamptz, p_queue text, p_needs bigint[] = null, p_run_at timestamptz = null, p_key text = null, p_expires interval = null)
returns bigint
language sql
as $$
  select millrace.enqueue_at(p_now, 'k', '{}', p_queue, 50, p_run_at, null, p_key, null, null, null, null, null, p_expires, null, null, null, null,
                             p_depends_on => p_needs)
$$;

create function t.status(p_id bigint)
returns text
language sql
as $$
  select millrace.job(p_id) ->> 'status'
$$;

-- Claims one job and completes it; returns its id.
create function t.do_one(p_now timestamptz, p_queue text)
returns bigint
language plpgsql
as $$
declare
  v_job record;
begin
  select c.lease, c.id into v_job from millrace.claim_at(p_now, p_queue, 'w', 1, null, true) c;
  perform millrace.complete_at(p_now, v_job.lease, null, null);
  return v_job.id;
end $$;

-- ---- a job waits for two others ----
select t.one(t.at('0'), 'q') as a, t.one(t.at('0'), 'q', null, t.at('1 hour')) as b
\gset
select t.one(t.at('1 second'), 'q', array[:a, :b, :a]::bigint[]) as c
\gset
select is(t.status(:c), 'waiting', 'it waits');
select is(millrace.job(:c) -> 'needs', jsonb_build_array(:a, :b), 'for two');
select is(millrace.job(:a) -> 'needed_by', jsonb_build_array(:c), 'which know of it');
select is((select s.scheduled from millrace.stats_at(t.at('1 second'), 'q') s), 2::bigint, 'it is counted among those that are scheduled');
select is((j.status, j.run_at)::text, ('waiting', null::timestamptz)::text, 'the view shows it') from millrace.jobs j where j.id = :c;
select is(t.duty(t.at('2 seconds'), 'depend'), 0::bigint, 'nothing happens yet');
select is(t.do_one(t.at('3 seconds'), 'q'), :a::bigint, 'the first of them completes');
select t.claim('none', t.at('3 seconds'), 'q');
select is(t.ids('none'), '{}', 'the job is not delivered');
select t.duty(t.at('4 seconds'), 'depend');
select is(millrace.job(:c) -> 'needs', jsonb_build_array(:b), 'it waits for the other');
select t.duty(t.at('1 hour'), 'promote');
select is(t.do_one(t.at('1 hour'), 'q'), :b::bigint, 'which completes, too');
select is(t.duty(t.at('1 hour 1 second'), 'depend'), 1::bigint, 'upkeep lets it go on');
select is(t.status(:c), 'available', 'it is available');
select is(millrace.job(:c) ? 'needs', false, 'and needs nothing');
select is(t.do_one(t.at('1 hour 2 seconds'), 'q'), :c::bigint, 'it is delivered');
select is(t.duty(t.at('1 hour 3 seconds'), 'depend'), 0::bigint, 'once');
select is((select count(*) from millrace.dependency), 0::bigint, 'nothing is left of it');

-- ---- met already; the time of the job's own; expiry ----
select t.one(t.at('2 hours'), 'r', array[:a, :c]::bigint[]) as d
\gset
select is(t.status(:d), 'available', 'needs that have completed are met');
select t.one(t.at('2 hours'), 'r', '{}') as e
\gset
select is(t.status(:e), 'available', 'so are none');
select t.one(t.at('2 hours'), 'r', array[:d]::bigint[], t.at('3 hours')) as f
\gset
select is((j.status, j.run_at)::text, ('waiting', t.at('3 hours'))::text, 'one that has a time of its own') from millrace.jobs j where j.id = :f;
select is(t.do_one(t.at('2 hours'), 'r'), :d::bigint, 'its need completes');
select is(t.duty(t.at('2 hours 1 second'), 'depend'), 1::bigint, 'it goes on');
select is((j.status, j.run_at)::text, ('scheduled', t.at('3 hours'))::text, 'to that time') from millrace.jobs j where j.id = :f;
select t.one(t.at('2 hours'), 'x') as g
\gset
select t.one(t.at('2 hours'), 'x', array[:g]::bigint[], null, null, '1 minute') as h
\gset
select t.do_one(t.at('2 hours'), 'x');
select t.duty(t.at('2 hours 5 minutes'), 'depend');
select t.claim('h', t.at('2 hours 5 minutes'), 'x');
select is(t.ids('h'), '{}', 'expires_in counts from the enqueue');
select is(t.status(:h), 'expired', 'it has expired');

-- ---- a need that ends badly: cancelled, and those behind it ----
select t.one(t.at('3 hours'), 'bad') as a
\gset
select t.one(t.at('3 hours'), 'bad', array[:a]::bigint[]) as b
\gset
select t.one(t.at('3 hours'), 'bad', array[:b]::bigint[]) as c
\gset
select t.claim('bad', t.at('3 hours'), 'bad');
select millrace.fail_at(t.at('3 hours'), t.lease('bad'), :a, 'no', null, false, null);
select t.duty(t.at('3 hours 1 second'), 'depend');
select is(t.status(:b), 'cancelled', 'it is cancelled');
select is(millrace.job(:b) ->> 'reason', format('job %s, which it needed, ended as dead', :a), 'the reason names the need');
select t.duty(t.at('3 hours 2 seconds'), 'depend');
select is(millrace.job(:c) ->> 'reason', format('job %s, which it needed, ended as cancelled', :b), 'those behind it go the same way');
select is(t.status(t.one(t.at('3 hours 3 seconds'), 'bad', array[:a]::bigint[])), 'waiting', 'a need that has ended badly is no error');
select is(t.duty(t.at('3 hours 4 seconds'), 'depend'), 1::bigint, 'the next look cancels it');
select t.one(t.at('3 hours'), 'exp', null, null, null, '1 minute') as a
\gset
select t.one(t.at('3 hours'), 'exp', array[:a]::bigint[]) as b
\gset
select t.duty(t.at('3 hours 2 minutes'), 'depend');
select is(millrace.job(:b) ->> 'reason', format('job %s, which it needed, ended as expired', :a), 'a need that has expired, seen by no claim');
select t.one(t.at('3 hours'), 'pur') as a, t.one(t.at('3 hours'), 'pur2') as z
\gset
select t.one(t.at('3 hours'), 'pur2', array[:a]::bigint[]) as b, t.one(t.at('3 hours'), 'pur', array[:z]::bigint[]) as c
\gset
select millrace.purge('pur');
select t.duty(t.at('3 hours 2 minutes'), 'depend');
select is(t.status(:b), 'cancelled', 'a need that was purged');
select t.do_one(t.at('3 hours 2 minutes'), 'pur2');
select t.duty(t.at('3 hours 3 minutes'), 'depend');
select is((select count(*) from millrace.dependency d where d.job_id = :c), 0::bigint, 'one that waits and is purged is forgotten');

-- ---- steering ----
select t.one(t.at('4 hours'), 's') as a
\gset
select t.one(t.at('4 hours'), 's', array[:a]::bigint[], null, 'key') as b
\gset
select t.refused(format('select millrace.%s', f), '22023', 'job \d+ is waiting', f)
  from (select format(c, :b) from unnest(array['run_now(%s)', 'pause_job(%s)', 'resume_job(%s)', 'change_job(%s, ''{"priority": 1}'')']) c) x(f);
select is(t.status(:b), 'waiting', 'it stays as it is');
select is(millrace.enqueue_at(t.at('4 hours'), 'k', '{"n": 2}', 's', 50, t.at('5 hours'), null, 'key', null, null, null, null, null, null, null, null, null, null, 'replace'), :b::bigint, 'replaced by its key');
select is((j.status, j.args, j.run_at)::text, ('waiting', '{"n": 2}'::jsonb, t.at('5 hours'))::text, 'it waits with new args and time') from millrace.jobs j where j.id = :b;
select t.one(t.at('4 hours'), 's', array[:b]::bigint[]) as c
\gset
select is(millrace.cancel_at(t.at('4 hours'), :b, 'changed my mind'), 'cancelled', 'it can be cancelled');
select is(millrace.job(:b) ? 'needs', false, 'and needs nothing any more');
select t.duty(t.at('4 hours'), 'depend');
select is(t.status(:c), 'cancelled', 'which is passed on');
select is((select count(*) from millrace.unique_key u where u.unique_name = 'key' and u.free_at is null), 0::bigint, 'its key is free');

-- ---- depend ----
select t.one(t.at('5 hours'), 'd') as a, t.one(t.at('5 hours'), 'd') as b, t.one(t.at('5 hours'), 'd', null, t.at('6 hours')) as c, t.one(t.at('5 hours'), 'd') as e
\gset
select millrace.depend_at(t.at('5 hours'), :b, array[:a]::bigint[]);
select is(t.status(:b), 'waiting', 'an available job is made to wait');
select millrace.depend_at(t.at('5 hours'), :c, array[:a, :b]::bigint[]);
select is((j.status, j.run_at)::text, ('waiting', t.at('6 hours'))::text, 'a scheduled one keeps its time') from millrace.jobs j where j.id = :c;
select millrace.depend_at(t.at('5 hours'), :b, array[:e]::bigint[]);
select is(millrace.job(:b) -> 'needs', jsonb_build_array(:a, :e), 'more needs are added');
select millrace.depend_at(t.at('5 hours'), :b, '{}');
select is(t.status(:b), 'waiting', 'none leave it as it is');
select t.refused(format('select millrace.depend(%s, array[%s])', :a, :a), '22023', format('^dependencies must not form a cycle: %s needs %s$', :a, :a), 'a job that needs itself');
select t.refused(format('select millrace.depend(%s, array[%s])', :a, :b), '22023', format('cycle: %s needs %s needs %s$', :a, :b, :a), 'a cycle of two');
select t.refused(format('select millrace.depend(%s, array[%s, %s])', :e, :a, :c), '22023', format('cycle: %s needs %s needs %s needs %s$', :e, :c, :b, :e), 'a cycle of three');
create function t.chain(p_n int, out first bigint, out last bigint)
language plpgsql
as $$
begin
  first := millrace.enqueue('k', queue => 'long chain');
  last := first;
  for i in 2 .. p_n loop
    last := millrace.enqueue('k', queue => 'long chain', depends_on => array[last]);
  end loop;
end $$;
select c.first, c.last from t.chain(40) c
\gset long_
select t.refused(format('select millrace.depend(%s, array[%s])', :long_first, :long_last), '22023', format('cycle: %s needs \.\.\.( needs \d+){19} needs %s$', :long_first, :long_first), 'of a long cycle the end is named');
select millrace.purge('long chain')
\gset
select is(t.do_one(t.at('5 hours'), 'd'), :a::bigint, 'the first is delivered');
select is(t.do_one(t.at('5 hours'), 'd'), :e::bigint, 'then the one that was not made to wait');
select is(t.duty(t.at('5 hours'), 'depend'), 1::bigint, 'one goes on');
select millrace.depend_at(t.at('5 hours'), :b, array[:a, :e]::bigint[]);
select is(t.status(:b), 'available', 'made to wait for what has completed it stays available');
select is(t.do_one(t.at('5 hours'), 'd'), :b::bigint, 'and is delivered');
select t.duty(t.at('5 hours'), 'depend');
select is(t.status(:c), 'scheduled', 'the last one is due at its time');
select millrace.depend_at(t.at('5 hours'), :c, array[:a]::bigint[]);
select is((j.status, j.run_at)::text, ('scheduled', t.at('6 hours'))::text, 'which stays') from millrace.jobs j where j.id = :c;
select millrace.pause_job_at(t.at('5 hours'), :c);
select t.refused(format('select millrace.depend(%s, ''{}'')', x), '22023', m, m)
  from (values (:c::bigint, 'job \d+ is paused'), (:a::bigint, 'job \d+ is completed')) v(x, m);

-- ---- many in one call, by place ----
select array(select * from millrace.enqueue_jobs_at(t.at('7 hours'), jsonb_build_array(jsonb_build_object('kind', 'a', 'queue', 'g'), jsonb_build_object('kind', 'b', 'queue', 'g', 'depends_on', array[-1]),
  jsonb_build_object('kind', 'c', 'queue', 'g', 'depends_on', array[-1, :a]), jsonb_build_object('kind', 'd', 'queue', 'g', 'depends_on', array[-2, -3], 'delay', '1 hour'),
  jsonb_build_object('kind', 'e', 'queue', 'g', 'depends_on', '[]'::jsonb), jsonb_build_object('kind', 'f', 'queue', 'g', 'depends_on', array[:a])))) as ids
\gset
select is((select string_agg(j.kind || ' ' || j.status, ', ' order by j.id) from millrace.jobs j where j.queue = 'g'),
          'a available, b waiting, c waiting, d waiting, e available, f available', 'a small graph');
select is(millrace.job((:'ids'::bigint[])[3]) -> 'needs', jsonb_build_array((:'ids'::bigint[])[1]), 'places are jobs of the call, and what has completed is left out');
select is(array[t.do_one(t.at('7 hours'), 'g'), t.do_one(t.at('7 hours'), 'g'), t.do_one(t.at('7 hours'), 'g')], array[(:'ids'::bigint[])[1], (:'ids'::bigint[])[5], (:'ids'::bigint[])[6]], 'those that need nothing run');
select is(t.duty(t.at('7 hours'), 'depend'), 2::bigint, 'two go on');
select is(array[t.do_one(t.at('7 hours'), 'g'), t.do_one(t.at('7 hours'), 'g')], (:'ids'::bigint[])[2:3], 'in order');
select is(t.duty(t.at('7 hours 1 second'), 'depend'), 1::bigint, 'and the last');
select is((j.status, j.run_at)::text, ('scheduled', t.at('8 hours'))::text, 'at its time') from millrace.jobs j where j.id = (:'ids'::bigint[])[4];
select is((select count(*) from millrace.enqueue_jobs_at(t.at('7 hours'), '[{"kind": "k", "queue": "g2", "unique_key": "u"}, {"kind": "k", "queue": "g2", "unique_key": "u", "depends_on": [-1]}, {"kind": "k", "queue": "g2", "depends_on": [-2]}]')), 3::bigint, 'with keys');
select is((select string_agg(j.status, ' ' order by j.id) from millrace.jobs j where j.queue = 'g2'), 'available waiting', 'a job that is there already gets no needs');

-- ---- a member of a batch that waits; without a daemon; a thousand needs; limits of a look ----
select millrace.batch_begin() as b
\gset
select array(select * from millrace.batch_add_at(t.at('8 hours'), :b, '[{"kind": "k", "queue": "h"}, {"kind": "k", "queue": "h", "depends_on": [-1]}]')) as ids
\gset
select millrace.batch_seal_at(t.at('8 hours'), :b);
select is(millrace.cancel_at(t.at('8 hours'), (:'ids'::bigint[])[1], null), 'cancelled', 'a member is cancelled');
select setval('millrace.upkeep_clock', 0);
select t.claim('slice', t.at('8 hours'), 'h');
select is(t.status((:'ids'::bigint[])[2]), 'cancelled', 'a claim looks');
select t.duty(t.at('8 hours'), 'batch');
select is(millrace.batch(:b) ->> 'status', 'failed', 'the batch has ended');
select t.put(t.at('9 hours'), 'wide', 1000) as ids
\gset
select t.one(t.at('9 hours'), 'wide2', :'ids'::bigint[]) as w
\gset
select is(jsonb_array_length(millrace.job(:w) -> 'needs'), 1000, 'a thousand needs');
select t.claim_all('wide', t.at('9 hours'), 'wide');
select is((select sum(millrace.complete_at(t.at('9 hours'), l.lease, null, null)) from (select distinct g.lease from t.got g where g.tag = 'wide') l), 1000::bigint, 'complete');
select millrace.depends_look(t.at('9 hours'), 300);
select is(jsonb_array_length(millrace.job(:w) -> 'needs') between 700 and 999, true, 'a look takes some of them');
select millrace.depends_look(t.at('9 hours') + make_interval(secs => i), 300) from generate_series(1, 8) i;
select is(t.status(:w), 'available', 'in the end it goes on');
select is(cardinality(array(select millrace.enqueue('k', queue => 'fan', depends_on => array[n.id]) from (select t.one(t.at('9 hours'), 'fan') as id) n cross join generate_series(1, 500) g)), 500, 'five hundred wait for one');
select t.do_one(clock_timestamp(), 'fan');
select is(millrace.depends_look(clock_timestamp() + make_interval(secs => i), 200) between 0 and 200, true, 'some at a time') from generate_series(1, 5) i;
select is((select count(*) from millrace.jobs j where j.queue = 'fan' and j.status = 'available'), 500::bigint, 'go on');
select millrace.purge(q) from unnest(array['fan', 'g', 'g2', 's', 'd', 'q']) q;
select t.duty(t.at('10 hours'), 'depend');
select is((select count(*) from millrace.dependency d where not exists (select from millrace.delayed w where w.job_id = d.job_id)), 0::bigint, 'nothing is left over');
delete from millrace.dependency;
select is(millrace.hint('millrace.depend_hint'), 1::bigint, 'upkeep looks');
select setval('millrace.clean_clock', 0);
select t.duty(t.at('10 hours 2 minutes'), 'clean');
select is(millrace.hint('millrace.depend_hint'), 0::bigint, 'nobody looks any more');

-- ---- bad input ----
select t.one(t.at('11 hours'), 'z') as a
\gset
select t.all_rows() as before
\gset
select t.refused(r.sql, r.state, r.message)
  from (values ('select millrace.enqueue(''k'', depends_on => array[0])', 'MR003', '^there is no job 0 to depend on$'),
               ('select millrace.enqueue(''k'', depends_on => array[-1])', 'MR003', '^there is no job -1 to depend on$'),
               ('select millrace.enqueue(''k'', depends_on => array[9223372036854775807])', 'MR003', '^there is no job 9'),
               ('select millrace.enqueue(''k'', depends_on => array[null]::bigint[])', '22023', 'none of them null'),
               ('select millrace.enqueue(''k'', depends_on => array[[1, 2]])', '22023', 'may depend on 1000 others'),
               ('select millrace.enqueue(''k'', depends_on => array(select g::bigint from generate_series(1, 1001) g))', '22023', 'may depend on 1000 others'),
               ('select count(*) from millrace.enqueue_jobs(''[{"kind": "k", "depends_on": [-1]}]'')', '22023', '^job 1: depends_on -1 is not a job before it$'),
               ('select count(*) from millrace.enqueue_jobs(''[{"kind": "k"}, {"kind": "k", "depends_on": [-3]}]'')', '22023', '^job 2: depends_on -3 is not a job before it$'),
               ('select count(*) from millrace.enqueue_jobs(''[{"kind": "k"}, {"kind": "k", "depends_on": [-1, null]}]'')', '22023', '^job 2: .*none of them null'),
               ('select count(*) from millrace.enqueue_jobs(''[{"kind": "k"}, {"kind": "k", "depends_on": [0]}]'')', 'MR003', '^job 2: there is no job 0 to depend on$'),
               ('select count(*) from millrace.enqueue_jobs(''[{"kind": "k", "depends_on": 1}]'')', '22023', 'wrong type'),
               ('select count(*) from millrace.enqueue_jobs(''[{"kind": "k", "depends_on": {}}]'')', '22023', 'wrong type'),
               ('select count(*) from millrace.enqueue_jobs(''[{"kind": "k", "depends_on": ["x"]}]'')', '22023', 'wrong type'),
               ('select millrace.depend(null, ''{}'')', 'MR003', '^there is no job null$'),
               ('select millrace.depend(0, ''{}'')', 'MR003', '^there is no job 0$'),
               ('select millrace.depend(' || :a || ', null)', '22023', '^needs must not be null$'),
               ('select millrace.depend(' || :a || ', array[0])', 'MR003', '^there is no job 0 to depend on$'),
               ('select millrace.depend(' || :a || ', array[null]::bigint[])', '22023', 'none of them null')) r(sql, state, message);
select is(t.all_rows(), :'before', 'what is refused changes nothing');
select * from finish();
