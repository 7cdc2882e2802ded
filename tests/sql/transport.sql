-- SPDX-License-Identifier: PostgreSQL
-- The transport of a queue, and jobs whose worker a relay reports as gone. What relays do is in tests/integration/relay.bats.
\ir lib/helpers.psql
select no_plan();

-- ---- the setting ----
select is(millrace.transport('none'), 'direct', 'an unknown queue is direct');
select millrace.set_queue('hog', '{}')
\gset
select is(millrace.transport('hog'), 'direct', 'and so is a new one');
select millrace.set_queue('hog', '{"transport": "redis"}')
\gset
select is(millrace.transport('hog'), 'redis', 'by way of a relay');
select is((select q.settings ->> 'transport' from millrace.queues q where q.queue = 'hog'), 'redis', 'the view shows it');
select t.refused(format('select millrace.set_queue(%L, %L)', 'hog', r.settings), '22023', r.message)
  from (values ('{"transport": "pigeon"}', 'setting transport does not accept ''pigeon'''),
               ('{"transport": 1}', 'setting transport does not accept ''1'''),
               ('{"transport": ""}', 'setting transport does not accept'),
               ('{"ordered": true}', 'setting transport redis and ordered exclude each other')) r(settings, message);
select t.refused('select millrace.set_queue(''line'', ''{"ordered": true, "transport": "redis"}'')', '22023', 'exclude each other');
select is(millrace.transport('hog'), 'redis', 'what was refused has changed nothing');

-- ---- lost ----
select millrace.set_queue('hog', '{"poison_limit": 1}')
\gset
select t.put(t.at('0'), 'hog', 3) as ids
\gset
select is(t.claim('c', t.at('1 s'), 'hog', 3, '1 hour'), :'ids', 'somebody claims by SQL all the same');
select (:'ids'::bigint[])[1] as first, (:'ids'::bigint[])[2] as second
\gset
-- one has ended since: the fleet is well
select is(millrace.finish_at(t.at('2 s'), t.lease('c'), jsonb_build_array(jsonb_build_object('id', (:'ids'::bigint[])[3], 'outcome', 'completed'))), 1, 'one is done');
select is(millrace.finish_at(t.at('3 s'), t.lease('c'), jsonb_build_array(jsonb_build_object('id', :first, 'outcome', 'lost'))), 1, 'one is lost');
select is(t.claim('again', t.at('4 s'), 'hog', 3, '1 hour'), array[:first]::bigint[], 'it is back at once, and alone');
select is((select g.attempt from t.got g where g.tag = 'again'), 2, 'as another attempt');
select is(millrace.finish_at(t.at('5 s'), t.lease('c'), jsonb_build_array(jsonb_build_object('id', :second, 'outcome', 'completed'))), 1,
          'the lease holds for the others');
select t.refused(format('select millrace.finish_at(t.at(''5 s''), %L, %L)', t.lease('c'), jsonb_build_array(jsonb_build_object('id', :first, 'outcome', 'completed'))),
                 'MR001', '', 'and is void for the one that was lost');
select is(millrace.finish_at(t.at('6 s'), t.lease('again'), jsonb_build_array(jsonb_build_object('id', :first, 'outcome', 'lost'))), 1, 'lost again');
select is((select (d.cause, d.lost, d.error)::text from millrace.dead_letters d where d.id = :first), ('poison', 2, 'its worker was lost 2 times in a row')::text,
          'beyond the limit it is a dead letter');

-- A stall: nobody has ended anything since, and the job is not blamed.
select (t.put(t.at('1 hour'), 'hog', 1))[1] as alone
\gset
select t.claim('s1', t.at('1 hour 1 s'), 'hog', 1, '1 hour') is not null as claimed
\gset
select is(millrace.finish_at(t.at('1 hour 2 s'), t.lease('s1'), jsonb_build_array(jsonb_build_object('id', :alone, 'outcome', 'lost'))), 1, 'lost in a stall');
select is(t.claim('s2', t.at('1 hour 3 s'), 'hog', 1, '1 hour'), array[:alone]::bigint[], 'it is back');
select is(millrace.finish_at(t.at('1 hour 4 s'), t.lease('s2'), jsonb_build_array(jsonb_build_object('id', :alone, 'outcome', 'lost'))), 1, 'lost once more');
select is((select count(*) from millrace.dead_letters d where d.id = :alone), 0::bigint, 'and no dead letter');
select finish();
