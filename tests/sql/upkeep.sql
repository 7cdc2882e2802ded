-- SPDX-License-Identifier: PostgreSQL
-- Upkeep: promote, rescue, poison, dead letters' retention, rotation, retirement, compaction, long leases, archive. All through the
-- internal forms that take the time. A window moves when a transaction has ended, in whatever database of the server:
-- server: own
\ir lib/helpers.psql
select no_plan();

create function t.open_seg() returns int language sql volatile as $$ select pg_sequence_last_value('millrace.seg_seq'::regclass)::int $$;
create function t.leaf_bytes(p_seg int)
returns bigint
language sql
as $$
  select sum(pg_relation_size(format('millrace.%s_%s', l, p_seg % 16)::regclass))::bigint from unnest(array['job', 'claim', 'result', 'report', 'tally']) l
$$;
create function t.plain(p_now timestamptz, p_queue text, p_delay interval, p_kind text = 'k', p_attempts int = null)
returns bigint
language sql
as $$
  select millrace.enqueue_at(p_now, p_kind, '{}', p_queue, 50, null, p_delay, null, null, null, null, p_attempts, null, null, null, null, null, null)
$$;

-- ---- promote ----
select t.plain(t.at('0'), 'pro', '30 s') as p30, t.plain(t.at('0'), 'pro', '10 s') as p10, t.plain(t.at('0'), 'pro', '20 s') as p20
\gset
select t.plain(t.at('0'), 'pro', '10 s') as p10b, t.plain(t.at('0'), 'pro', '40 days') as p40d, t.plain(t.at('0'), 'pro', '25 hours') as p25h
\gset
select is(t.duty(t.at('9 s'), 'promote'), 0::bigint, 'nothing is due');
select is(t.duty(t.at('31 s'), 'promote'), 4::bigint, 'what is due is promoted');
select is(t.duty(t.at('31 s'), 'promote'), 0::bigint, 'once');
select is(t.claim('pro', t.at('31 s'), 'pro', 10, '90 days'), array[:p10, :p10b, :p20, :p30]::bigint[], 'in the order of due times, then of ids');
select is((select max(j.ready_at) from millrace.job j where j.job_id = :p30), t.at('30 s'), 'it became available when it was due');
select ok(millrace.hint('millrace.promote_hint') between millrace.epoch_ms(t.at('20 s')) and millrace.epoch_ms(t.at('22 s')), 'the hint stands ten seconds back');
-- A transaction that commits long after its job was due: not found from the hint, found by the sweep.
select t.plain(t.at('0'), 'pro', '1 s') as late
\gset
select is(t.duty(t.at('60 s'), 'promote'), 0::bigint, 'a pass from the hint does not walk what is before it');
select is(t.duty(t.at('92 s'), 'promote'), 1::bigint, 'once a minute everything is swept: a late commit is found');
select is(t.claim('pro2', t.at('93 s'), 'pro', 10, '90 days'), array[:late]::bigint[], 'and delivered');
select is(t.duty(t.at('25 hours 1 s'), 'promote'), 1::bigint, 'a day later');
select is(t.claim('pro3', t.at('25 hours 2 s'), 'pro', 10, '90 days'), array[:p25h]::bigint[], 'the next is delivered');
select is(t.duty(t.at('40 days 1 s'), 'promote'), 1::bigint, 'and forty');
select is(t.claim('pro4', t.at('40 days 2 s'), 'pro', 10, '90 days'), array[:p40d]::bigint[], 'the last');
select is((select count(*) from millrace.delayed), 0::bigint, 'nothing is left behind');
-- At most p_limit at a time, the first that are due.
select t.plain(t.at('41 days'), 'lim', make_interval(secs => i)) from generate_series(1, 10) i
\g /dev/null
select is(array[millrace.promote(t.at('41 days 1 hour'), 4), millrace.promote(t.at('41 days 1 hour'), 4), millrace.promote(t.at('41 days 1 hour'), 4)], array[4, 4, 2]::bigint[], 'promote works in slices');
select is((select count(distinct j.job_id) from millrace.job j where j.lane >> 12 = t.qid('lim')), 10::bigint, 'each once');
select is(array(select j.ready_at from millrace.job j where j.lane >> 12 = t.qid('lim') order by j.pos), array(select t.at('41 days') + make_interval(secs => i) from generate_series(1, 10) i), 'in order');

-- ---- rescue ----
select t.put(t.at('50 days'), 'res', 3)
\gset
select t.claim('x1', t.at('50 days'), 'res', 3, '10 s', 'alice')
\gset
select millrace.complete_at(t.at('50 days 1 s'), t.lease('x1'), (t.ids('x1'))[2:2], null)
\gset
select is(t.duty(t.at('50 days 10 s'), 'rescue'), 0::bigint, 'at its very end a lease is good');
select is(t.duty(t.at('50 days 10.001 s'), 'rescue'), 2::bigint, 'after it its open jobs are taken back');
select is(t.duty(t.at('50 days 10.001 s'), 'rescue'), 0::bigint, 'once');
select throws_ok(format('select millrace.complete(%L)', t.lease('x1')), 'MR001', null, 'the token is void');
select is((select (k.status, k.open_n, k.done_n, k.outcome, k.finished_at)::text from millrace.claim k where k.token = t.token('x1')), ('l', 0, 1, 'lcl', t.at('50 days 10.001 s'))::text, 'the claim is lost');
select is(t.claim('x2', t.at('50 days 11 s'), 'res', 3, '10 s', 'bob'), array[(t.ids('x1'))[1], (t.ids('x1'))[3]], 'the first rescue is at once; what was completed does not come again');
select is(array(select (g.attempt, g.max_attempts)::text from t.got g where g.tag = 'x2'), array['(2,4)', '(2,4)'], 'as attempt 2; nothing else finished meanwhile, so the attempt is given back')
 where not millrace.fleet_healthy((select k from millrace.claim k where k.token = t.token('x1')));
select is(millrace.job((t.ids('x1'))[1]) #> '{history,0}' @> '{"attempt": 1, "outcome": "lost", "worker": "alice"}', true, 'the history tells who lost it');
select is(t.duty(t.at('50 days 22 s'), 'rescue'), 2::bigint, 'lost a second time');
select ok(bool_and(d.due_at between t.at('50 days 24 s') and t.at('50 days 26 s') and d.why = 'l' and d.attempt = 3) and count(*) = 2, 'later rescues wait: backoff of a first attempt')
  from millrace.delayed d
 where d.job_id = any (t.ids('x1'));
select is((select s.retrying from millrace.stats_at(t.at('50 days 22 s'), 'res') s), 2::bigint, 'they count as retrying');

-- ---- poison: only in a healthy fleet ----
select millrace.set_queue('poi', '{"poison_limit": 2, "max_attempts": 5}')
\gset
select t.plain(t.at('51 days'), 'poi', null, 'bad') as bad
\gset
-- The job crashes its worker again and again while others finish.
create procedure t.crash(p_tag text, p_now timestamptz, p_healthy boolean)
language plpgsql
as $$
begin
  perform t.duty(p_now, 'promote');
  commit;
  perform t.claim(p_tag, p_now + interval '1 s', 'poi', 1, '10 s');
  commit;
  if p_healthy then
    perform t.put(p_now, 'poi', 1, 99, 'good');
    commit;
    perform t.claim(p_tag || ' good', p_now + interval '2 s', 'poi', 1, '10 s');
    commit;
    perform millrace.complete_at(p_now + interval '3 s', t.lease(p_tag || ' good'), null, null);
    commit;
  end if;
  perform t.duty(p_now + interval '12 s', 'rescue');
end $$;
call t.crash('c1', t.at('51 days'), true);
call t.crash('c2', t.at('51 days 1 minute'), true);
select is((select count(*) from millrace.dead d where d.job_id = :bad), 0::bigint, 'lost twice, limit two: no dead letter yet');
select is((select (d.lost, d.attempt, d.attempts_limit)::text from millrace.delayed d where d.job_id = :bad), '(2,3,5)', 'losses and attempts are counted');
call t.crash('c3', t.at('51 days 2 minutes'), true);
select is(array(select t.ids(x) from unnest(array['c1', 'c2', 'c3']) x), array[array[:bad], array[:bad], array[:bad]]::bigint[], 'it was delivered three times');
select is((select (d.cause, d.lost, d.attempt, d.error)::text from millrace.dead_letters d where d.id = :bad), ('poison', 3, 3, 'its worker was lost 3 times in a row')::text, 'beyond the limit it is a dead letter');
select is((select count(*) from millrace.dead_letters d where d.queue = 'poi'), 1::bigint, 'it alone');
-- A stall: nobody finishes anything.
select t.plain(t.at('52 days'), 'poi', null, 'stalled') as stalled
\gset
call t.crash('s1', t.at('52 days'), false);
call t.crash('s2', t.at('52 days 1 minute'), false);
call t.crash('s3', t.at('52 days 2 minutes'), false);
call t.crash('s4', t.at('52 days 3 minutes'), false);
call t.crash('s5', t.at('52 days 4 minutes'), false);
select is(array(select t.ids(x) from unnest(array['s1', 's2', 's3', 's4', 's5']) x), array_fill(:stalled::bigint, array[5, 1]), 'in a stall the job comes again and again');
select is((select count(*) from millrace.dead d where d.job_id = :stalled), 0::bigint, 'a stall makes no dead letters');
select is((select (d.lost, d.attempt, d.attempts_limit, d.attempts_limit - d.attempt)::text from millrace.delayed d where d.job_id = :stalled), '(1,6,10,4)', 'and gives the attempts back: as many are left as before');
-- A failure in between: lost counts in a row.
call t.crash('s6', t.at('52 days 5 minutes'), true);
select t.duty(t.at('52 days 6 minutes'), 'promote')
\gset
select t.claim('s7', t.at('52 days 6 minutes 1 s'), 'poi', 1, '10 s')
\gset
select millrace.fail_at(t.at('52 days 6 minutes 2 s'), t.lease('s7'), :stalled, 'e', null, true, null)
\gset
select is((select d.lost::int from millrace.delayed d where d.job_id = :stalled), 0, 'a report of the worker, good or bad, ends the row of losses');
select millrace.purge('poi')
\gset

-- ---- counters saturate ----
select t.plain(t.at('53 days'), 'sat', null) as sat
\gset
update millrace.job j set attempt = 32767, lost = 32767, attempts_limit = 32767 where j.job_id = :sat;
select t.claim('sat', t.at('53 days'), 'sat', 1, '1 s')
\gset
select is(t.duty(t.at('53 days 2 s'), 'rescue'), 1::bigint, 'a job whose counters are full is rescued');
select is((select (d.attempt, d.lost, d.attempts_limit)::text from millrace.delayed d where d.job_id = :sat), '(32767,32767,32767)', 'they stay full');
select t.duty(t.at('54 days'), 'promote')
\gset
select is(t.claim('sat2', t.at('54 days'), 'sat', 1, '1 s'), array[:sat]::bigint[], 'and it comes back');
select is(millrace.fail_at(t.at('54 days'), t.lease('sat2'), :sat, 'e', null, true, null), 'dead', 'attempt 32767 of 32767 was the last');
select t.plain(t.at('54 days'), 'sat', null) as sat
\gset
update millrace.job j set attempt = 32766, attempts_limit = 32767, lost = 32766 where j.job_id = :sat;
select t.claim('sat3', t.at('54 days 2 s'), 'sat', 1, '1 hour')
\gset
select is(millrace.fail_at(t.at('54 days 3 s'), t.lease('sat3'), :sat, 'e', '1 s', true, null), 'scheduled', 'one below it');
select is((select (d.attempt, d.lost)::text from millrace.delayed d where d.job_id = :sat), '(32767,0)', 'goes up to the limit');
select millrace.purge('sat')
\gset

-- ---- retention of dead letters: age, count, bytes ----
select millrace.set_queue('dd', '{"dead_retention": "10 days", "dead_max": 4, "dead_max_bytes": 100000}')
\gset
create function t.bury(p_now timestamptz, p_n int, p_kind text = 'k', p_state int = 0)
returns void
language plpgsql
as $$
declare
  v_job millrace.job;
begin
  for i in 1 .. p_n loop
    v_job.job_id := nextval('millrace.pos_seq');
    v_job.created_at := p_now;
    v_job.lane := t.qid('dd') << 12;
    v_job.attempt := 1;
    v_job.lost := 0;
    v_job.attempts_limit := 1;
    v_job.job_kind := p_kind;
    v_job.payload_state := decode(repeat('00', p_state), 'hex');
    perform millrace.job_bury(p_now, v_job, 'failed', 'x');
  end loop;
end $$;
select t.bury(t.at('60 days'), 2, 'old'), t.bury(t.at('65 days'), 2, 'young')
\gset
select is(t.duty(t.at('69 days'), 'dead'), 0::bigint, 'dead letters within age and number stay');
select is(t.duty(t.at('70 days 1 s'), 'dead'), 2::bigint, 'those too old go');
select is((select array_agg(distinct d.job_kind) from millrace.dead d where d.queue_id = t.qid('dd')), array['young'], 'and those only');
select t.bury(t.at('70 days') + make_interval(secs => i), 1, 'n' || i) from generate_series(1, 5) i
\g /dev/null
select is(t.duty(t.at('70 days 20 s'), 'dead'), 3::bigint, 'more than dead_max: the oldest go');
select is((select array_agg(d.job_kind order by d.died_at) from millrace.dead d where d.queue_id = t.qid('dd')), array['n2', 'n3', 'n4', 'n5'], 'the newest stay');
select t.bury(t.at('70 days 30 s'), 1, 'heavy', 70000), t.bury(t.at('70 days 31 s'), 1, 'heavy2', 40000)
\gset
select is(t.duty(t.at('70 days 40 s'), 'dead'), 5::bigint, 'more than dead_max_bytes: what the newest leave no room for goes');
select is((select array_agg(d.job_kind order by d.died_at) from millrace.dead d where d.queue_id = t.qid('dd')), array['heavy2'], 'the newest stays');
select is((select count(*) from millrace.dead_letters d where d.queue = 'sat'), 1::bigint, 'another queue''s dead letters stay');

-- ---- rotation ----
select t.put(t.at('99 days'), 'rot', 1)
\gset
select is(t.duty(t.at('100 days'), 'rotate'), 1::bigint, 'an old segment that was used is closed');
select t.claim_all('rot0', t.at('100 days'), 'rot'), t.open_seg() as seg
\gset
select millrace.complete_many(array(select distinct g.lease from t.got g where g.tag = 'rot0')), millrace.purge('res'), millrace.purge('lim')
\gset
call t.retire(t.at('199 days'), :seg - 1);
call t.retire(t.at('201 days'), t.open_seg() - 1);
select is((select count(*) from millrace.segment g where g.seg < t.open_seg() - 1 and not g.truncated), 0::bigint, 'long after, every closed segment is truncated');
select t.put(t.at('201 days'), 'rot', 1)
\gset
select t.duty(t.at('201 days 2 hours'), 'rotate')
\gset
select t.put(t.at('201 days 2 hours'), 'rot', 1)
\gset
select t.open_seg() as seg
\gset
select is((select g.closed_at from millrace.segment g where g.seg = :seg - 1), t.at('201 days 2 hours'), 'a segment''s row says when it was closed');
select is(t.duty(t.at('201 days 3 hours 42 minutes'), 'rotate'), 0::bigint, 'a segment lives a fourteenth of the retention');
select is(t.duty(t.at('201 days 3 hours 43 minutes'), 'rotate'), 1::bigint, 'then it is closed by age');
select is(t.open_seg(), :seg + 1, 'and the next one is open');
select is((select (g.closed_at, g.truncated, g.closed_xid > '3'::xid8)::text from millrace.segment g where g.seg = :seg), (t.at('201 days 3 hours 43 minutes'), false, true)::text, 'its row says when');
select is(t.duty(t.at('201 days 3 hours 43 minutes'), 'rotate'), 0::bigint, 'once');
select is(millrace.segment_used(t.open_seg()), false, 'a segment that holds nothing but bookkeeping counts as not used');
select is(t.duty(t.at('201 days 8 hours'), 'rotate'), 0::bigint, 'and is not rotated');
begin;
select t.put(t.at('201 days 8 hours'), 'rot', 1)
\gset
select is(t.duty(t.at('201 days 8 hours'), 'rotate'), 0::bigint, 'in a transaction that has written nothing is rotated');
commit;
select is(t.duty(t.at('201 days 8 hours'), 'rotate'), 1::bigint, 'outside of it is');
-- By number of rows.
select t.put(t.at('201 days 8 hours'), 'rot', 1), setval('millrace.pos_seq', nextval('millrace.pos_seq') + 32 * 1000001)
\gset
select is(t.duty(t.at('201 days 8 hours 1 s'), 'rotate'), 1::bigint, 'a segment of more than a million positions is closed');
select t.put(t.at('201 days 8 hours 2 s'), 'rot', 1)
\gset
-- Jobs of all segments are delivered in order.
select is((select array_agg((select j.seg from millrace.job j where j.pos = u.id) order by u.ord)
             from unnest(t.claim_all('rot', t.at('201 days 8 hours 2 s'), 'rot')) with ordinality u(id, ord)),
          array[:seg - 1, :seg, :seg + 1, :seg + 2, :seg + 3], 'a claim goes on over the border of segments');
select millrace.complete_many(array(select distinct g.lease from t.got g where g.tag = 'rot'))
\gset

-- ---- retirement: retention, idle lanes ----
select t.open_seg() as seg
\gset
select t.put(t.at('204 days'), 'idle', 1)
\gset
select t.claim('idle', t.at('204 days'), 'idle', 1)
\gset
select millrace.complete_at(t.at('204 days'), t.lease('idle'), null, '{"r": 1}')
\gset
select t.duty(t.at('204 days 3 hours'), 'rotate')
\gset
select ok((select g.seg = :seg from millrace.segment g order by g.seg desc limit 1), 'the segment is closed');
select t.put(t.at('204 days 3 hours'), 'busy', 1)
\gset
select t.wait_sealed()
\gset
select millrace.maintain_at(t.at('205 days 2 hours'))
\g /dev/null
select ok(t.leaf_bytes(:seg) > 0, 'before its retention is over a leaf keeps its rows');
select is((select j.status from millrace.jobs j where j.id = (t.ids('idle'))[1]), 'completed', 'and the job can be looked up');
call t.retire(t.at('205 days 4 hours'), :seg);
select is(t.leaf_bytes(:seg), 0::bigint, 'after it the leaf is truncated: its files are empty');
select is((select g.truncated from millrace.segment g where g.seg = :seg), true, 'its row says so');
select throws_ok(format('select millrace.job(%s)', (t.ids('idle'))[1]), 'MR003', null, 'the job is forgotten');
select is(t.claim('idle2', t.at('205 days 5 hours'), 'idle', 1), '{}', 'a lane that was idle all the time did not pin it and delivers nothing twice');
select t.put(t.at('205 days 5 hours'), 'idle', 1) as idle
\gset
select is(t.claim('idle3', t.at('205 days 5 hours'), 'idle', 1), :'idle'::bigint[], 'and goes on');
select is(millrace.depth('idle'), 0::bigint, 'with an exact depth');

-- ---- compaction of a paused lane ----
select t.open_seg() as seg
\gset
select t.put(t.at('210 days'), 'pau', 30, 50, 'first') as pau1
\gset
select t.claim('pau0', t.at('210 days'), 'pau', 5, '1 hour')
\gset
select millrace.complete_at(t.at('210 days'), t.lease('pau0'), null, null)
\gset
select millrace.pause('pau')
\gset
select t.duty(t.at('210 days 3 hours'), 'rotate')
\gset
select t.put(t.at('210 days 3 hours'), 'pau', 10, 50, 'second') as pau2
\gset
call t.retire(t.at('212 days'), :seg);
select is(t.leaf_bytes(:seg), 0::bigint, 'the few jobs of a paused queue do not keep a leaf');
select is(millrace.depth('pau'), 35::bigint, 'its depth is what it was');
call t.retire(t.at('214 days'), t.open_seg() - 1);
select is(millrace.depth('pau'), 35::bigint, 'after more rounds too');
select millrace.resume('pau')
\gset
select is(t.claim('pau', t.at('214 days'), 'pau', 100, '1 hour'), (:'pau1'::bigint[])[6:30] || :'pau2'::bigint[], 'every job once, in order, with its old id');
select is((select count(*) from t.got g where g.tag = 'pau' and g.attempt = 1 and g.created_at = t.at('210 days') and g.kind = 'first'), 25::bigint, 'otherwise unchanged');
select is(t.claim('pau9', t.at('214 days'), 'pau', 100), '{}', 'and none twice');
select is(millrace.complete_at(t.at('214 days 1 s'), t.lease('pau'), null, null), 35, 'they complete');

-- ---- long leases are parked ----
select t.open_seg() as seg
\gset
select t.put(t.at('220 days'), 'long', 5) as long
\gset
select t.claim('long', t.at('220 days'), 'long', 5, '90 days', 'patient')
\gset
select t.duty(t.at('220 days 3 hours'), 'rotate')
\gset
call t.retire(t.at('222 days'), :seg);
select is(t.leaf_bytes(:seg), 0::bigint, 'a long lease does not keep its leaf');
select is((select (count(*), min(k.slot), min(k.open_n))::text from millrace.claim k where k.token = t.token('long')), '(1,-1,5)', 'its claim is parked');
select is((select count(*) from millrace.job j where j.slot = -1 and j.job_id = any (:'long'::bigint[])), 5::bigint, 'with its jobs');
select is((select count(*) from millrace.jobs j where j.id = any (:'long'::bigint[]) and j.status = 'running' and j.worker = 'patient'), 5::bigint, 'they are shown as running');
select is((select s.running from millrace.stats_at(t.at('222 days'), 'long') s), 5::bigint, 'and counted as running');
select is((millrace.heartbeat_at(t.at('222 days'), t.lease('long'), '1 day')).lease_until, t.at('223 days'), 'it takes a heartbeat');
select is(millrace.complete_at(t.at('222 days'), t.lease('long'), (t.ids('long'))[1:1], '{"r": 1}'), 1, 'a completion of one');
select is(millrace.fail_at(t.at('222 days'), t.lease('long'), (t.ids('long'))[2], 'e', '1 s', true, null), 'scheduled', 'a failure');
select is(millrace.release_at(t.at('222 days'), t.lease('long'), (t.ids('long'))[3:3]), 1, 'a release');
select is(millrace.job((t.ids('long'))[1]) ->> 'status', 'completed', 'the story goes on');
select is(t.duty(t.at('223 days 1 s'), 'rescue'), 2::bigint, 'and when it expires the rest is rescued');
select is((select (k.status, k.outcome)::text from millrace.claim k where k.token = t.token('long')), ('l', 'cfrll')::text, 'the parked claim tells it all');
select is((select array_agg(i order by i) from unnest(t.claim_all('long2', t.at('223 days 2 s'), 'long', '90 days')) i), (:'long'::bigint[])[2:5], 'what was not completed is delivered again');
select is(millrace.depth('long'), 0::bigint, 'nothing else waits');
-- A claim whose jobs lie in an older segment than itself.
select t.open_seg() as seg
\gset
select t.put(t.at('224 days'), 'cross', 2)
\gset
select millrace.tick(t.at('224 days'))
\gset
select t.duty(t.at('224 days 3 hours'), 'rotate')
\gset
select t.claim('cross', t.at('224 days 3 hours'), 'cross', 2, '90 days')
\gset
call t.retire(t.at('225 days 3 hours 1 s'), :seg);
select is(t.leaf_bytes(:seg), 0::bigint, 'the older leaf goes');
select is((select count(*) from millrace.job j where j.slot = -1 and j.job_id = any (t.ids('cross'))), 2::bigint, 'its jobs are parked');
select is(millrace.complete_at(t.at('226 days'), t.lease('cross'), null, null), 2, 'the claim completes');
select millrace.complete_many(array(select distinct g.lease from t.got g where g.tag = 'long2'))
\gset
select t.put(t.at('226 days'), 'busy', 1)
\gset
select t.duty(t.at('226 days 3 hours'), 'rotate')
\gset
call t.retire(t.at('230 days'), t.open_seg() - 1);
call t.retire(t.at('232 days'), t.open_seg() - 1);
select is((select count(*) from millrace.claim k where k.slot = -1 and k.status <> 'r'), 0::bigint, 'parked claims that ended are removed after their retention');
select is((select count(*) from millrace.job j where j.slot = -1 and not exists (select from millrace.claim k where k.status = 'r' and k.lane = j.lane and j.pos = any (k.positions))), 0::bigint,
          'and so are their jobs');

-- A lease that ends between the count and the retirement of one round: its leaf stays until the ledger knows how it ended.
select t.open_seg() as seg
\gset
select t.put(t.at('232 days 1 hour'), 'late', 4) as late
\gset
select t.claim('hold', t.at('232 days 1 hour'), 'late', 1, '90 days')
\gset
select t.claim('late', t.at('232 days 1 hour'), 'late', 3, '90 days')
\gset
select t.duty(t.at('232 days 4 hours'), 'rotate')
\gset
call t.retire(t.at('233 days 1 hour'), :seg - 1);
do $do$
begin
  for i in 1 .. 3 loop
    perform t.wait_sealed();
    perform millrace.count_all(t.at('233 days 5 hours')), millrace.tick(t.at('233 days 5 hours')), millrace.compact(t.at('233 days 5 hours'));
    commit;
  end loop;
end $do$;
select is(millrace.complete_at(t.at('232 days 5 hours'), t.lease('late'), null, null), 3, 'a lease ends after the count');
select t.wait_sealed()
\gset
select is(millrace.retire(t.at('233 days 5 hours')), 0::bigint, 'its leaf does not go before it was counted');
select is((select (g.parked, g.truncated)::text from millrace.segment g where g.seg = :seg), '(t,f)', 'though all else is done');
select is(array(select j.status from millrace.jobs j where j.id = any (:'late'::bigint[]) order by j.id), array['running', 'completed', 'completed', 'completed'], 'its jobs are shown as what they are');
select is(millrace.job((:'late'::bigint[])[3]) ->> 'status', 'completed', 'and so are their stories');
call t.retire(t.at('233 days 5 hours'), :seg);
select is(t.leaf_bytes(:seg), 0::bigint, 'then it goes');
select is((select s.done_total from millrace.queue q cross join lateral millrace.queue_totals(q) s where q.queue_name = 'late'), 3::bigint, 'and the ledger knows its jobs');

-- ---- archive ----
-- No older segment may be left: compaction would move jobs off it that are to be parked here.
call t.retire(t.at('235 days'), t.open_seg() - 1);
call t.retire(t.at('237 days'), t.open_seg() - 1);
select millrace.set_queue('keep', '{"retention": "60 days"}')
\gset
-- Jobs of a long lease were parked: they are archived from there.
select t.open_seg() as seg
\gset
select t.put(t.at('240 days'), 'keep', 2)
\gset
select t.claim('parked', t.at('240 days'), 'keep', 2, '90 days', 'patient')
\gset
select t.put(t.at('240 days'), 'keep', 1, 60) as cross
\gset
select millrace.tick(t.at('240 days'))
\gset
select t.duty(t.at('240 days 3 hours'), 'rotate')
\gset
select t.claim('apart', t.at('240 days 3 hours'), 'keep', 1, '90 days', 'patient')
\gset
call t.retire(t.at('241 days 3 hours 1 s'), :seg);
select is((select count(*) from millrace.job j where j.slot = -1 and j.job_id = any (t.ids('parked') || t.ids('apart'))), 3::bigint, 'three jobs of long leases are parked');
select millrace.complete_at(t.at('242 days'), t.lease('parked'), (t.ids('parked'))[1:1], '{"r": 2}'), millrace.fail_at(t.at('242 days'), t.lease('parked'), (t.ids('parked'))[2], 'e', null, false, null),
       millrace.complete_at(t.at('242 days'), t.lease('apart'), null, null), t.put(t.at('242 days'), 'busy', 1)
\gset
select t.duty(t.at('242 days 3 hours'), 'rotate')
\gset
call t.retire(t.at('246 days'), t.open_seg() - 1);
call t.retire(t.at('248 days'), t.open_seg() - 1);
select is((select count(*) from millrace.job j where j.slot = -1 and j.job_id = any (t.ids('parked') || t.ids('apart'))), 0::bigint, 'after the log''s retention they are gone from there');
select is((select array_agg((a.job_id, a.outcome, a.finished_at, a.keep_until, a.holder, a.payload_result)::text order by a.job_id) from millrace.archive a where a.queue_id = t.qid('keep')),
          array[((t.ids('parked'))[1], 'c', t.at('242 days'), t.at('302 days'), 'patient', '{"r": 2}'::jsonb)::text, ((t.ids('apart'))[1], 'c', t.at('242 days'), t.at('302 days'), 'patient', null::jsonb)::text],
          'and those that completed are in the archive, once');
select is((select array_agg(j.status order by j.id) from millrace.jobs j where j.id = any (t.ids('parked') || t.ids('apart'))), array['completed', 'dead', 'completed'], 'each is shown once');
-- Again without an older segment: the oldest is archived first.
call t.retire(t.at('250 days'), t.open_seg() - 1);
call t.retire(t.at('252 days'), t.open_seg() - 1);
select t.open_seg() as seg
\gset
select millrace.enqueue_at(t.at('300 days'), 'k', '{"a": 1}', 'keep', 5, null, null, null, null, 'acme', 'ref-k', 7, '9 s', null, '{"m": 1}', '\x01', '\x02', 'src') as kept
\gset
select millrace.enqueue_at(t.at('300 days'), 'other', '{"i": 2}', 'keep', 5, null, null, null, null, null, null, null, null, null, null, null, null, null) as kept2
\gset
select millrace.enqueue_at(t.at('300 days'), 'k', '{}', 'keep', 5, null, null, null, null, null, null, null, null, '1 s', null, null, null, null) as stale
\gset
select t.put(t.at('300 days'), 'busy', 1)
\gset
select is(t.claim('keep', t.at('300 days 2 s'), 'keep', 5, '1 hour', 'arch'), array[:kept, :kept2]::bigint[], 'two are delivered');
select millrace.complete_at(t.at('300 days 3 s'), t.lease('keep'), array[:kept]::bigint[], '{"r": 1}'), millrace.complete_at(t.at('300 days 4 s'), t.lease('keep'), null, null)
\gset
select is(millrace.completed_replay(t.at('300 days 5 s'), (select q from millrace.queue q where q.queue_name = 'keep'), t.at('300 days'), t.at('300 days 4.001 s'), 'other'), 1::bigint, 'replay_completed from the log, of one kind');
select t.claim('rep1', t.at('300 days 6 s'), 'keep', 5, '1 hour')
\gset
select is((select (g.id > :kept2, g.kind, g.args, g.source, g.attempt, g.priority)::text from t.got g where g.tag = 'rep1'), ('t', 'other', '{"i": 2}'::jsonb, 'replay', 1, 5)::text, 'as a new job with source replay');
select millrace.fail_at(t.at('300 days 7 s'), t.lease('rep1'), (t.ids('rep1'))[1], 'e', null, false, null)
\gset
select t.duty(t.at('300 days 3 hours'), 'rotate')
\gset
select t.wait_sealed()
\gset
select millrace.maintain_at(t.at('301 days'))
\g /dev/null
-- The copy is made in a round of its own: for a moment a job is in both.
-- Transactions of other databases, which run beside this test, may hold the segment for a moment.
select set_config('t.kept', :'kept', false)
\gset
do $do$
declare
  v_deadline timestamptz := clock_timestamp() + interval '60 seconds';
begin
  while not exists (select from millrace.archive a where a.job_id = current_setting('t.kept')::bigint) and clock_timestamp() < v_deadline loop
    perform t.wait_sealed();
    perform millrace.count_all(t.at('302 days')), millrace.tick(t.at('302 days')), millrace.compact(t.at('302 days')),
            millrace.archive(t.at('302 days'));
    perform millrace.retire(t.at('302 days')) where not exists (select from millrace.segments_live() g where g.parked);
    commit;
  end loop;
end $do$;
select is((select count(*) from millrace.archive a where a.job_id in (:kept, :kept2)), 2::bigint, 'archive copies');
select is(millrace.archive(t.at('302 days')) , 0::bigint, 'once')
 where (select g.archived from millrace.segment g where g.seg = :seg);
begin;
select is(millrace.completed_replay(t.at('302 days'), (select q from millrace.queue q where q.queue_name = 'keep'), t.at('300 days'), t.at('301 days'), null), 2::bigint,
          'a job that lies in the log and in the archive is replayed once');
rollback;
select is((select count(*) from millrace.jobs j where j.id = :kept), 1::bigint, 'a job that lies in the log and in the archive is shown once');
call t.retire(t.at('302 days'), :seg);
select is(t.leaf_bytes(:seg), 0::bigint, 'the leaf goes after the shortest retention');
select is((select (a.holder, a.claimed_at, a.finished_at, a.keep_until, a.attempt, a.attempts_limit, a.outcome, a.payload_args, a.payload_meta, a.payload_state, a.payload_blob, a.payload_result, a.job_tenant, a.job_ref, a.job_source, a.run_limit)::text
             from millrace.archive a where a.job_id = :kept),
          ('arch', t.at('300 days 2 s'), t.at('300 days 4 s'), t.at('360 days 4 s'), 1, 7, 'c', '{"a": 1}'::jsonb, '{"m": 1}'::jsonb, '\x01'::bytea, '\x02'::bytea, '{"r": 1}'::jsonb, 'acme', 'ref-k', 'src', interval '9 s')::text,
          'the archive has the whole job');
select is((select array_agg(j.status order by j.id) from millrace.jobs j where j.id in (:kept, :kept2, :stale)), array['completed', 'completed', 'expired'], 'finished jobs of the queue are still shown');
select is((select count(*) from millrace.archive a where a.queue_id <> t.qid('keep')), 0::bigint, 'those of other queues are not copied');
select is((select count(*) from millrace.archive a where a.job_id = any (t.ids('rep1'))), 0::bigint, 'nor dead letters');
select is(millrace.job(:kept) -> 'result', '{"r": 1}', 'the story has the result');
select is((millrace.job_by_ref('keep', 'ref-k') ->> 'id')::bigint, :kept::bigint, 'and is found by ref');
select is(millrace.completed_replay(t.at('303 days'), (select q from millrace.queue q where q.queue_name = 'keep'), t.at('300 days'), t.at('301 days'), null), 2::bigint, 'replay_completed from the archive');
select t.claim('rep2', t.at('303 days'), 'keep', 5, '1 hour')
\gset
select is((select (g.id > :kept2, g.attempt, g.max_attempts, g.args, g.meta, g.state, g.blob, g.tenant, g.ref, g.source, g.priority, g.timeout)::text from t.got g where g.tag = 'rep2' and g.kind = 'k'),
          ('t', 1, 7, '{"a": 1}'::jsonb, '{"m": 1}'::jsonb, '\x01'::bytea, '\x02'::bytea, 'acme', 'ref-k', 'replay', 5, interval '9 s')::text, 'with every option');
select is(millrace.completed_replay(t.at('303 days'), (select q from millrace.queue q where q.queue_name = 'keep'), t.at('299 days'), t.at('300 days'), null), 0::bigint, 'only the time asked for');
select millrace.complete_at(t.at('303 days'), t.lease('rep2'), null, null)
\gset
-- After its retention the archive goes, leaf by leaf.
insert into millrace.archive select a.finished_at, a.keep_until, a.job_id + 1000000000 + i, a.created_at, a.queue_id, a.lane, a.slot, a.attempt, a.attempts_limit, a.outcome, a.holder, a.claimed_at, a.job_kind, a.payload_args
  from millrace.archive a cross join generate_series(1, 1000) i where a.job_id = :kept;
select a.slot as arch_slot from millrace.archive a where a.job_id = :kept
\gset
select ok(pg_relation_size(format('millrace.archive_%s', :arch_slot)::regclass) > 65536, 'the archive has grown');
select t.put(t.at('361 days'), 'busy', 1)
\gset
call t.retire(t.at('362 days'), t.open_seg() - 1);
select is(pg_relation_size(format('millrace.archive_%s', :arch_slot)::regclass), 0::bigint, 'after the queue''s retention its leaf is truncated');

-- ---- clean: emptied leaves of delayed ----
select t.plain(t.at('400 days'), 'cle', '30 minutes') from generate_series(1, 2000)
\g /dev/null
select d.slot as slot from millrace.delayed d limit 1
\gset
select ok(pg_relation_size(format('millrace.delayed_%s', :slot)::regclass) > 65536, 'a leaf of delayed has grown');
select is(t.duty(t.at('400 days 20 minutes'), 'clean') >= 0 and pg_relation_size(format('millrace.delayed_%s', :slot)::regclass) > 0, true, 'while jobs wait in it it stays');
select is((select count(*) from millrace.delayed d), 2000::bigint, 'with all of them');
select is(t.duty(t.at('400 days 30 minutes'), 'promote'), 2000::bigint, 'they become due');
do $$
declare
  v_deadline timestamptz := clock_timestamp() + interval '60 s';
  v_leaf regclass := (select format('millrace.delayed_%s', millrace.delayed_slot(t.at('400 days'), t.at('400 days 30 minutes'))));
begin
  for i in 1 .. 1000 loop
    perform millrace.maintain_at(t.at('400 days 31 minutes') + make_interval(secs => i * 11));
    exit when pg_relation_size(v_leaf) = 0 or clock_timestamp() > v_deadline;
    perform pg_sleep(0.05);
  end loop;
end $$;
select is(pg_relation_size(format('millrace.delayed_%s', :slot)::regclass), 0::bigint, 'the emptied leaf is truncated without vacuum');
select is(cardinality(t.claim('cle', t.at('400 days 32 minutes'), 'cle', 5000)), 2000, 'and every job is delivered');
select millrace.complete_at(t.at('400 days 32 minutes'), t.lease('cle'), null, null)
\gset

-- ---- maintain twice ----
-- Rounds until there is nothing left to do.
do $do$
declare
  v_deadline timestamptz := clock_timestamp() + interval '60 seconds';
  v_done     numeric;
begin
  loop
    perform t.wait_sealed();
    select sum(m.done) into v_done from millrace.maintain_at(t.at('450 days')) m where m.duty <> 'count';
    commit;
    exit when v_done = 0 or clock_timestamp() > v_deadline;
  end loop;
end $do$;
select t.all_rows() as before
\gset
select is((select array_agg(m.duty) from millrace.maintain_at(t.at('450 days')) m), array['rotate', 'promote', 'schedule', 'rescue', 'turns', 'batch', 'depend', 'count', 'pulse', 'dead', 'archive', 'cache', 'objects', 'tick', 'compact', 'retire', 'clean'], 'maintain names its duties');
select is((select sum(m.done) from millrace.maintain_at(t.at('450 days')) m where m.duty <> 'count'), 0::numeric, 'a second round at the same time finds nothing to do');
select is(t.all_rows(), :'before', 'and changes nothing');
begin isolation level repeatable read;
select throws_ok('select count(*) from millrace.maintain()', '25000', 'maintain needs isolation level read committed, not repeatable read', 'maintain at repeatable read');
rollback;
begin;
select is((select count(*) from millrace.maintain_at(t.at('451 days'))), 17::bigint, 'maintain inside of a transaction block');
rollback;
select is(t.all_rows(), :'before', 'leaves nothing behind when it is rolled back');

-- ---- jobs that went with their segments are counted ----
select t.duty(t.at('460 days'), 'rotate')
\gset
call t.retire(t.at('462 days'), t.open_seg() - 1);
select (millrace.metrics_at(t.at('462 days')) #>> '{removed_total,jobs}')::bigint as removed, (millrace.metrics_at(t.at('462 days')) #>> '{removed_total,segments}')::bigint as segments
\gset
select ok(:removed >= 2000, 'removed_total has the jobs of all that was retired');
select t.put(t.at('463 days'), 'gone', 7)
\gset
select t.claim('gone', t.at('463 days'), 'gone', 7)
\gset
select millrace.complete_at(t.at('463 days'), t.lease('gone'), null, null)
\gset
select t.duty(t.at('464 days'), 'rotate')
\gset
call t.retire(t.at('466 days'), t.open_seg() - 1);
select ok((millrace.metrics_at(t.at('466 days')) #>> '{removed_total,segments}')::bigint > :segments, 'one more segment is gone');
select is((millrace.metrics_at(t.at('466 days')) #>> '{removed_total,jobs}')::bigint - :removed, 7::bigint, 'and the seven jobs in it');
select is(millrace.round_jobs('{"jobs": 12, "until": 10}', 15), '{"jobs": 17, "until": 15}', 'what came since the last one counts');
select is(millrace.round_jobs('{"jobs": 12, "until": 10}', 4), '{"jobs": 12, "until": 4}', 'a queue that was dropped takes nothing away');
select is(millrace.round_jobs('{"jobs": 12, "until": 10}', null), '{"jobs": 12, "until": 10}', 'a round without a segment leaves it');
select is(millrace.round_jobs(null, null), '{"jobs": 0, "until": 0}', 'nor has the first one any');

-- ---- claims leave upkeep to maintain, where somebody calls it ----
select t.put(t.at('470 days'), 'left', 1)
\gset
select t.claim('left', t.at('470 days 1 s'), 'left')
\gset
select ok(millrace.rounds_face() ? 'last_slice_at', 'a claim did a slice, and says so');
select t.duty(t.at('470 days 2 s'), 'promote')
\gset
select ok(not millrace.rounds_face() ? 'last_slice_at', 'a round of maintain since then is no slice');
select t.plain(t.at('470 days 2 s'), 'left', '1 s') as due
\gset
select is(t.claim('left1', t.at('470 days 3.5 s'), 'left'), '{}'::bigint[], 'a second and a half after a round nothing is promoted by a claim');
select is(t.claim('left2', t.at('470 days 3.9 s'), 'left'), '{}'::bigint[], 'nor a little later');
select t.claim('left3', t.at('470 days 4.1 s'), 'left')
\gset
select is(t.claim('left4', t.at('470 days 4.2 s'), 'left'), array[:due]::bigint[], 'two seconds after it, it is, for the next claim');
select ok(millrace.rounds_face() ? 'last_slice_at', 'and that was a slice again');

select * from finish();
