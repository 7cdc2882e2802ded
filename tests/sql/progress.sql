-- SPDX-License-Identifier: PostgreSQL
-- Reports of progress, results, and what came of a job: progress, outcome, and both in job.
\ir lib/helpers.psql
select no_plan();

create function t.told(p_id bigint)
returns text
language sql
as $$
  select concat_ws(' ', j ->> 'status', j ->> 'progress', j ->> 'progress_note', (j ->> 'progress_at')::timestamptz - t.at('0')) from millrace.job_story(p_id) j
$$;

create function t.outcome(p_now timestamptz, p_id bigint)
returns text
language sql
as $$
  select concat_ws(' ', o.status, o.result, o.failure, o.finished_at - t.at('0'), o.progress, o.progress_note) from millrace.outcome_at(p_now, p_id) o
$$;

create function t.open_seg()
returns int
language sql
as $$
  select pg_sequence_last_value('millrace.seg_seq'::regclass)::int
$$;

-- Rotates once the open segment is old enough.
create function t.rotate(p_now timestamptz)
returns int
language sql
as $$
  select t.open_seg() from millrace.maintain_at(p_now) m where m.duty = 'rotate'
$$;

-- ---- reports ----
select t.put(t.at('0'), 'far', 3) as ids
\gset
select (:'ids'::bigint[])[1] as one, (:'ids'::bigint[])[2] as two, (:'ids'::bigint[])[3] as three
\gset
select is(t.told(:one), 'available', 'a job that waits has made no progress');
select t.claim('far', t.at('1 s'), 'far', 3)
\gset
select is(t.told(:one), 'running', 'nor has one that has just begun');
select t.all_rows() as before
\gset
select lives_ok(format('select millrace.progress_at(t.at(''2 s''), %L, %s, 10, null)', t.lease('far'), :one), 'a report');
select isnt(t.all_rows(), :'before', 'is a row');
select is(t.told(:one), 'running 10 00:00:02', 'and shown');
select is(t.told(:two), 'running', 'of its job alone');
select millrace.progress_at(t.at('3 s'), t.lease('far'), :one, 33.25, 'page 2 of 6')
\gset
select is(t.told(:one), 'running 33.25 page 2 of 6 00:00:03', 'the newest one counts, with its note');
select millrace.progress_at(t.at('4 s'), t.lease('far'), :one, 20, null)
\gset
select is(t.told(:one), 'running 20 00:00:04', 'also when it is less, and without a note');
select millrace.progress_at(t.at('5 s'), t.lease('far'), :two, 0, ''), millrace.progress_at(t.at('5 s'), t.lease('far'), :three, 100, E'ünïcode\nand a line')
\gset
select is(t.told(:two), 'running 0  00:00:05', 'nothing is a progress');
select is(t.told(:three), E'running 100 ünïcode\nand a line 00:00:05', 'all of it is not the end');
select is((select count(*) from millrace.report), 5::bigint, 'every call is a row');
select is((select count(*) from millrace.claim k where k.status = 'r' and k.open_n = 3), 1::bigint, 'the claim is as it was');
select is(millrace.job_story(:one) -> 'attempts' -> 0, jsonb_build_object('attempt', 1, 'worker', 'w', 'claimed_at', t.at('1 s'), 'outcome', 'running', 'progress', 20, 'progress_at', t.at('4 s')),
          'an attempt has its report');

-- ---- what is refused ----
select t.all_rows() as before
\gset
select t.refused(format('select millrace.progress(%L, %s, %s)', t.lease('far'), :one, x), '22023', '^percent must be from 0 to 100, not ', 'percent ' || x)
  from unnest(array['null', '-0.001', '100.001', '101', '''NaN''', '''infinity''', '''-infinity''', '1e300']) x;
select t.refused(format('select millrace.progress(%L, %s, 1, repeat(''x'', 1001))', t.lease('far'), :one), '22023', '^note is 1001 bytes long, the limit is 1000$');
select t.refused(format('select millrace.progress(%L, %s, 1, repeat(''ü'', 501))', t.lease('far'), :one), '22023', '^note is 1002 bytes long, the limit is 1000$');
select t.refused(format('select millrace.progress(%L, %s, 1, repeat(''x'', 100000000))', t.lease('far'), :one), '22023', '^note is 100000000 bytes long');
select t.refused(format('select millrace.progress(%L, null, 1)', t.lease('far')), 'MR003', '^job null is not in lease ');
select t.refused(format('select millrace.progress(%L, %s, 1)', t.lease('far'), :three + 1000), 'MR003', '^job \d+ is not in lease ');
select t.refused(format('select millrace.progress(%L, -1, 1)', t.lease('far')), 'MR003', '^job -1 is not in lease ');
select t.refused(format('select millrace.progress(%L, %s, 1)', x, :one), 'MR001', '^lease .* is lost$', 'lease ' || left(coalesce(x, 'null'), 20))
  from unnest(array[null, '', 'x', '1.2.3.4', replace(t.lease('far'), '-', '_'), repeat('9', 1000000), overlay(t.lease('far') placing '0' from length(t.lease('far'))), t.lease('far') || '0']) x
 where x is distinct from t.lease('far');
select is(t.all_rows(), :'before', 'nothing of it was written');
select lives_ok(format('select millrace.progress(%L, %s, 1, repeat(''x'', 1000))', t.lease('far'), :one), 'a thousand bytes are fine');

-- ---- the end of a job is the end of its reports ----
select is(millrace.complete_at(t.at('10 s'), t.lease('far'), array[:two]::bigint[], '{"sum": 5}'), 1, 'one completes');
select is(t.told(:two), 'completed 0  00:00:05', 'its last report stays with it');
select t.refused(format('select millrace.progress(%L, %s, 50)', t.lease('far'), :two), 'MR001', '^lease .* is lost$', 'a job that has ended makes no progress');
select lives_ok(format('select millrace.progress_at(t.at(''11 s''), %L, %s, 50, null)', t.lease('far'), :three), 'the others of its lease do');
select is(millrace.fail_at(t.at('12 s'), t.lease('far'), :three, 'no luck', null, false, null), 'dead', 'one dies');
select is(t.told(:three), 'dead 50 00:00:11', 'a dead letter tells how far it came');
select is(millrace.complete_at(t.at('13 s'), t.lease('far'), null, null), 1, 'the last one completes');
select t.refused(format('select millrace.progress(%L, %s, 50)', t.lease('far'), :one), 'MR001', '^lease .* is lost$', 'a lease that is over takes no report');

-- An expired lease that nobody has rescued is still one; rescued it is lost.
select t.put(t.at('20 s'), 'slow', 1) as ids
\gset
select (:'ids'::bigint[])[1] as id
\gset
select t.claim('slow', t.at('21 s'), 'slow', 1, '10 s')
\gset
select lives_ok(format('select millrace.progress_at(t.at(''40 s''), %L, %s, 70, ''late'')', t.lease('slow'), :id), 'an expired lease reports');
select is(millrace.rescue(t.at('41 s'), 100), 1::bigint, 'until it is rescued');
select t.refused(format('select millrace.progress(%L, %s, 80)', t.lease('slow'), :id), 'MR001', '^lease .* is lost$', 'then it is lost');
select is(t.told(:id), 'available', 'a job that is available again shows no progress');
select is(millrace.job_story(:id) -> 'attempts' -> 0 ->> 'progress', '70', 'its attempt does');
select t.claim('slow1', t.at('42 s'), 'slow', 1)
\gset
select millrace.progress_at(t.at('42 s'), t.lease('slow1'), :id, 80, null), millrace.fail_at(t.at('43 s'), t.lease('slow1'), :id, 'once more', '10 minutes', true, null)
\gset
select is(t.told(:id), 'scheduled', 'nor does one that waits for another attempt');
select is(t.outcome(t.at('43 s'), :id), 'scheduled', 'in outcome neither');
select is(millrace.promote(t.at('30 minutes'), 100), 1::bigint, 'its time comes');
select t.claim('slow2', t.at('1 hour 1 s'), 'slow', 1, '10 days')
\gset
select is(t.told(:id), 'running', 'the next attempt begins anew');
select is(t.outcome(t.at('1 hour 2 s'), :id), 'running', 'outcome says so, too');
select millrace.progress_at(t.at('1 hour 2 s'), t.lease('slow2'), :id, 5, null)
\gset
select is(t.told(:id), 'running 5 01:00:02', 'with reports of its own');
select is((select array_agg(a ->> 'progress') from jsonb_array_elements(millrace.job_story(:id) -> 'attempts') a), array['70', '80', '5'], 'each attempt keeps its own');

-- ---- a rotation between two reports, and what is truncated ----
select t.open_seg() as seg
\gset
select is(t.rotate(t.at('3 hours')), :seg + 1, 'the log rotates');
select millrace.progress_at(t.at('3 hours'), t.lease('slow2'), :id, 6, 'in the next segment')
\gset
select is((select array_agg(r.slot::int order by r.reported_at) from millrace.report r where r.job_id = :id), array[:seg, :seg, :seg, :seg + 1], 'a report goes to the open segment');
select is(t.told(:id), 'running 6 in the next segment 03:00:00', 'and is found there');
select t.rotate(t.at('6 hours')) as next_seg
\gset
select is(t.open_seg(), :seg + 2, 'a segment with nothing but reports is rotated, too');
call t.retire(t.at('28 hours'), :seg);
select is((select count(*) from millrace.report r where r.slot = :seg % 16), 0::bigint, 'reports go with their segment');
select is(t.told(:id), 'running 6 in the next segment 03:00:00', 'a long lease keeps those of later ones');
select millrace.progress_at(t.at('30 hours'), t.lease('slow2'), :id, 7, 'parked')
\gset
select is(t.told(:id), 'running 7 parked 1 day 06:00:00', 'and reports on');
select is(t.outcome(t.at('30 hours'), :id), 'running 7 parked', 'outcome finds a job that is parked');
select is(millrace.complete_at(t.at('31 hours'), t.lease('slow2'), null, '"done"'), 1, 'until it completes');
select is(t.outcome(t.at('31 hours'), :id), 'completed "done" 1 day 07:00:00 7 parked', 'with its result');

-- ---- what came of a job ----
select millrace.enqueue_at(t.at('40 h'), 'k', '{}', 'ends', 50, t.at('50 h'), null, null, null, null, null, null, null, null, null, null, null, null) as id
\gset
select is(t.outcome(t.at('40 h'), :id), 'scheduled', 'a scheduled job');
select millrace.pause_job_at(t.at('40 h'), :id)
\gset
select is(t.outcome(t.at('40 h'), :id), 'paused', 'a paused one');
select millrace.cancel_at(t.at('40 h 1 s'), :id, 'no need')
\gset
select is(t.outcome(t.at('41 h'), :id), 'cancelled no need 1 day 16:00:01', 'a cancelled one, with the reason');
select is(t.claim('none', t.at('41 h'), 'ends', 5), '{}', 'a claim passes over it');
select is(t.outcome(t.at('41 h'), :id), 'cancelled no need 1 day 17:00:00', 'and the reason is kept');
select t.put(t.at('42 h'), 'ends', 5) as ids
\gset
select is(t.outcome(t.at('42 h'), u.id), 'available', 'an available job, in a pack or not') from unnest(:'ids'::bigint[]) u(id);
select t.claim('ends', t.at('42 h 1 s'), 'ends', 4)
\gset
select is(t.outcome(t.at('42 h 1 s'), u.id), case when u.ord < 5 then 'running' else 'available' end, 'running or not: ' || u.ord) from unnest(:'ids'::bigint[]) with ordinality u(id, ord);
select millrace.finish_at(t.at('42 h 2 s'), t.lease('ends'), jsonb_build_array(
  jsonb_build_object('id', (t.ids('ends'))[1], 'outcome', 'completed', 'result', '{"a": [1, null]}'::jsonb),
  jsonb_build_object('id', (t.ids('ends'))[2], 'outcome', 'completed'),
  jsonb_build_object('id', (t.ids('ends'))[3], 'outcome', 'failed', 'error', 'bad luck', 'retry', false),
  jsonb_build_object('id', (t.ids('ends'))[4], 'outcome', 'failed', 'error', 'once more')))
\gset
select is(array(select t.outcome(t.at('42 h 3 s'), u.id) from unnest(t.ids('ends')) with ordinality u(id, ord) order by u.ord),
          array['completed {"a": [1, null]} 1 day 18:00:02', 'completed 1 day 18:00:02', 'dead bad luck 1 day 18:00:02', 'scheduled'], 'how they ended');
select millrace.enqueue_at(t.at('43 h'), 'k', '{}', 'stale', 50, null, null, null, null, null, null, null, null, '1 minute', null, null, null, null) as id
\gset
select is(t.outcome(t.at('43 h'), :id), 'available', 'a job in time');
select is(t.outcome(t.at('43 h 2 min'), :id), 'expired', 'and too late');
select is(t.claim('stale', t.at('43 h 2 min'), 'stale', 1), '{}', 'nobody gets it');
select is(t.outcome(t.at('43 h 2 min'), :id) like 'expired%', true, 'expired it stays');
-- A job that runs and is cancelled.
select t.put(t.at('44 h'), 'stop', 1) as ids
\gset
select t.claim('stop', t.at('44 h'), 'stop', 1)
\gset
select millrace.cancel_at(t.at('44 h 1 s'), (t.ids('stop'))[1], 'stop it')
\gset
select is(t.outcome(t.at('44 h 1 s'), (t.ids('stop'))[1]), 'running', 'one that was told to stop still runs');
select millrace.fail_at(t.at('44 h 2 s'), t.lease('stop'), (t.ids('stop'))[1], 'stopped', null, true, null)
\gset
select is(t.outcome(t.at('44 h 3 s'), (t.ids('stop'))[1]), 'cancelled stop it 1 day 20:00:02', 'until it does not');
select t.refused('select millrace.outcome(' || x || ')', 'MR003', '^there is no job ', 'outcome of ' || x)
  from unnest(array['null', '0', '-1', '123456789012', '9223372036854775807', '-9223372036854775808']) x;
select is((select (o.status, o.failure)::text from millrace.outcome((t.ids('ends'))[3]) o), '(dead,"bad luck")', 'by its own clock');

-- ---- results are kept for the retention: in the log, and in the archive of a queue that keeps its jobs longer ----
select millrace.set_queue('short', '{"retention": "2 hours"}'), millrace.set_queue('long', '{"retention": "10 days"}'), millrace.set_queue('late', '{"retention": "10 days"}')
\gset
select t.put(t.at('100 h'), 'late', 2) as late
\gset
select t.put(t.at('100 h'), 'short', 1) || t.put(t.at('100 h'), 'long', 3) as ids
\gset
select t.claim('short', t.at('100 h'), 'short', 5), t.claim('long', t.at('100 h'), 'long', 5)
\gset
select millrace.progress_at(t.at('100 h'), t.lease('long'), (t.ids('long'))[1], 90, 'nearly')
\gset
select millrace.complete_at(t.at('100 h 1 s'), t.lease('short'), null, '{"by": "short"}'), millrace.complete_at(t.at('100 h 1 s'), t.lease('long'), (t.ids('long'))[1:2], '{"by": "long"}')
\gset
select millrace.cancel_at(t.at('100 h 2 s'), (t.ids('long'))[3], 'enough'), millrace.release_at(t.at('100 h 3 s'), t.lease('long'), null)
\gset
select t.open_seg() as seg
\gset
select is(array(select t.outcome(t.at('101 h'), u.id) from unnest(t.ids('short') || t.ids('long')) with ordinality u(id, ord) order by u.ord),
          array['completed {"by": "short"} 4 days 04:00:01', 'completed {"by": "long"} 4 days 04:00:03 90 nearly', 'completed {"by": "long"} 4 days 04:00:03', 'cancelled enough 4 days 04:00:03'],
          'results while the log has them');
select is(t.rotate(t.at('101 h')), :seg + 1, 'the log rotates');
select t.put(t.at('101 h'), 'short', 1)
\gset
select is(array(select millrace.job_story(u.id) -> 'result' ->> 'by' from unnest(t.ids('short') || (t.ids('long'))[1:2]) u(id)), array['short', 'long', 'long'], 'a closed segment has them');
-- Jobs of a segment that is about to go, which end last of all: their results lie in another leaf.
select is(t.claim('late', t.at('102 h'), 'late', 2, '10 days'), :'late'::bigint[], 'jobs that waited for long');
select millrace.complete_at(t.at('103 h'), t.lease('late'), (t.ids('late'))[1:1], '{"by": "late"}')
\gset
call t.retire(t.at('104 h'), :seg);
select millrace.complete_at(t.at('104 h'), t.lease('late'), null, '{"by": "parked"}')
\gset
select is(array(select t.outcome(t.at('105 h'), u.id) from unnest(t.ids('late')) with ordinality u(id, ord) order by u.ord),
          array['completed {"by": "late"} 4 days 08:00:00', 'completed {"by": "parked"} 4 days 08:00:00'], 'a job that is parked with its lease, or ended beside one that is, keeps its result');
select is((select count(*) from millrace.result r where r.slot = :seg % 16), 0::bigint, 'the leaf of the results is truncated');
select is(array(select t.outcome(t.at('105 h'), u.id) from unnest(t.ids('long')) with ordinality u(id, ord) order by u.ord),
          array['completed {"by": "long"} 4 days 04:00:03', 'completed {"by": "long"} 4 days 04:00:03', 'cancelled enough 4 days 04:00:03'], 'the archive has those of the queue that keeps them');
select is(array(select millrace.job_story(u.id) -> 'result' ->> 'by' from unnest((t.ids('long'))[1:2]) u(id)), array['long', 'long'], 'their story, too');
select is(millrace.job_story((t.ids('long'))[3]) ->> 'reason', 'enough', 'and the reason of the cancelled one');
select t.put(t.at('106 h'), 'short', 1), t.rotate(t.at('107 h')) as rotated
\gset
call t.retire(t.at('110 h'), t.open_seg() - 2);
select millrace.unpark(t.at('110 h'))
\gset
select is((select count(*) from millrace.job j where j.job_id = any (t.ids('late'))), 0::bigint, 'their rows go, too');
select is(array(select t.outcome(t.at('111 h'), u.id) from unnest(t.ids('late')) with ordinality u(id, ord) order by u.ord),
          array['completed {"by": "late"} 4 days 08:00:00', 'completed {"by": "parked"} 4 days 08:00:00'], 'the results stay, in the archive');
select t.refused(format('select millrace.outcome_at(t.at(''105 h''), %s)', (t.ids('short'))[1]), 'MR003', '^there is no job ', 'the other queue has forgotten its own');
select t.refused(format('select millrace.outcome_at(t.at(''341 h''), %s)', (t.ids('long'))[1]), 'MR003', '^there is no job ', 'after its retention the archive has nothing to say');

select * from finish();
