-- SPDX-License-Identifier: PostgreSQL
-- What a session remembers of the queue that it claimed from last: that it does, that it makes no difference, and what ends it.
-- A memo is not made while somebody runs who is older than the last change of a queue.
-- server: own
\ir lib/helpers.psql
select no_plan();

create function t.remembers(p_queue text)
returns boolean
language sql
as $$
  select current_setting('millrace.queue_known', true) is not distinct from p_queue
         and (current_setting('millrace.queue_memo', true)::bigint[])[1] is not distinct from pg_sequence_last_value('millrace.queue_version'::regclass)
$$;

create function t.now()
returns timestamptz
language sql
immutable
as $$ select timestamptz '2030-01-01 00:00:03+00' $$;

-- The kind of the job that a claim got, and when its lease ends.
create function t.next(p_queue text, out got text, out leased interval)
language sql
as $$
  select c.kind, c.lease_until - t.now()
    from millrace.claim_at(t.now(), p_queue, 'w', 1, null, true) c
$$;

-- Claims p_n times; how often it got a job of this kind.
create function t.drain(p_queue text, p_kind text, p_n int)
returns int
language plpgsql
as $$
declare
  v_got int := 0;
begin
  for i in 1 .. p_n loop
    v_got := v_got + ((select n.got from t.next(p_queue) n) is not distinct from p_kind)::int;
  end loop;
  return v_got;
end $$;

create function t.put(p_queue text, p_kind text, p_priority int = 50)
returns bigint
language sql
as $$
  select count(*)
    from millrace.enqueue_many_at(t.now(), p_kind, array_fill('{}'::jsonb, array[5]), p_queue, p_priority, null)
$$;

select millrace.set_queue('q', '{"lease": "1 minute"}');
select millrace.set_queue('r', '{}');
select t.put('q', 'a');
select t.put('r', 'b');

select is((select got from t.next('q')), 'a', 'the first claim');
select is((select leased from t.next('q')), '1 minute', 'the second has the lease of the queue');
select ok(t.remembers('q'), 'the session remembers the queue');
select is((select n.leased from t.next('q') n), '1 minute', 'and the lease is the same with it');
select is((select count(*) from millrace.claim k where k.n = 1 and k.leased_till = t.now() + interval '1 minute'), 3::bigint, 'in the log, too');

select is((select got from t.next('r')), 'b', 'another queue');
select ok(t.remembers('r') and not t.remembers('q'), 'is remembered in its place');
select is((select got from t.next('q')), 'a', 'and back');

-- What changes a queue or its lanes ends it.
select is((select got from t.next('nobody')), null, 'a queue that is unknown');
select millrace.set_queue('q', '{"lease": "2 minutes"}');
select ok(not t.remembers('q'), 'a setting ends the memo');
select is((select leased from t.next('q')), '2 minutes', 'and holds for the next claim');
select t.put('q', 'urgent', 1);
select ok(not t.remembers('q'), 'a new priority does');
select is((select got from t.next('q')), 'urgent', 'and comes first');
select ok(not t.remembers('q'), 'a queue with two priorities is not remembered');
select is((select got from t.next('r')), 'b', 'one with one is');
select ok(t.remembers('r'), 'as before');
select t.put('r', 'b');
select ok(t.remembers('r'), 'jobs do not end a memo');
select millrace.pause('r');
select is((select got from t.next('r')), null, 'a paused queue gives nothing');
select millrace.resume('r');
select is((select got from t.next('r')), 'b', 'until it goes on');
select is((select got from t.next('r')), 'b', 'and on');
select millrace.set_queue('r', '{"concurrency": 1}');
select is((select got from t.next('r')), null, 'a limit holds at once');

-- A lease with days is a day of the calendar where it counts; it is not remembered.
select millrace.set_queue('long', '{"lease": "1 day"}');
select t.put('long', 'c');
select is((select leased from t.next('long')), '1 day', 'a lease of a day');
select is((select leased from t.next('long')), '1 day', 'again');
select ok(not t.remembers('long'), 'the session remembers nothing of it');

-- Several parts, and one that turns out to be empty.
select millrace.set_queue('parts', '{"parts": 4}');
select t.put('parts', 'd'), t.put('parts', 'd'), t.put('parts', 'd'), t.put('parts', 'd');
select is(t.drain('parts', 'd', 20), 20, 'twenty jobs of four parts, one by one');
select is((select got from t.next('parts')), null, 'and no more');
select t.put('parts', 'e');
select is((select got from t.next('parts')), 'e', 'one that comes later is found');

-- One session alone: parts are taken from by chance, not one after the other until it is empty. 100 of 800 jobs are to be left in each, give or take three times 7 and more.
select millrace.set_queue('even', '{"parts": 8}');
select count(t.put('even', 'g')) from generate_series(1, 160);
select $$select t.next('even');$$ from generate_series(1, 400) \gexec
select is((select count(*) from millrace.jobs where queue = 'even' and status = 'running'), 400::bigint, 'a claim, a job');
select ok((select min(n) >= 20 and max(n) <= 80 and count(*) = 8
             from (select sum(c.n) as n
                     from millrace.claim c
                     join millrace.queue q on q.queue_id = c.lane >> 12
                    where q.queue_name = 'even' and c.n > 0
                    group by c.lane) l), 'of each part about as many');

-- What a caller says is looked at with a memo, too.
select t.put('s', 'f');
select is((select got from t.next('s')), 'f', 'a claim');
select is((select got from t.next('s')), 'f', 'and one more');
select ok(t.remembers('s'), 'a memo');
select throws_ok($$ select * from millrace.claim_at(t.now(), 's', 'w', 0, null, true) $$, '22023', null, 'no jobs');
select throws_ok($$ select * from millrace.claim_at(t.now(), 's', 'w', 10001, null, true) $$, '22023', null, 'too many');
select throws_ok($$ select * from millrace.claim_at(t.now(), 's', repeat('w', 201), 1, null, true) $$, '22023', null, 'a long name');
select throws_ok($$ select * from millrace.claim_at(t.now(), 's', 'w', 1, '-1 second', true) $$, '22023', null, 'a lease that is none');
begin isolation level repeatable read;
select throws_ok($$ select * from millrace.claim_at(t.now(), 's', 'w', 1, null, true) $$, '25000', null, 'not read committed');
rollback;
begin read only;
select throws_ok($$ select * from millrace.claim_at(t.now(), 's', 'w', 1, null, true) $$, '25006', null, 'read-only');
rollback;
begin;
select is((select got from t.next('s')), 'f', 'a claim that is rolled back');
rollback;
select is(t.drain('s', 'f', 4), 3, 'leaves its job to the next one');

-- The first memo of a session, in a claim that is rolled back: what PostgreSQL leaves of it is an empty text. It showed in one of many sessions only.
create function t.first_is_rolled_back()
returns text
language plpgsql
as $$
begin
  begin
    perform set_config('millrace.never_set', '{1}', false);
    raise exception using errcode = 'MR999';
  exception
    when sqlstate 'MR999' then
      return current_setting('millrace.never_set', true);
  end;
end $$;
select is(t.first_is_rolled_back(), '', 'what is left of a setting that was made in vain');
select set_config('millrace.queue_memo', '', false)
\gset
select t.put('s', 'f');
select is((select got from t.next('s')), 'f', 'a claim without a memo, but for that');

-- Upkeep stays with the session that does it: others come a tenth of a second later.
-- p_mine: by this session.
create function t.late(p_ms int, p_mine boolean)
returns void
language sql
as $$
  select setval('millrace.upkeep_clock', millrace.epoch_ms(t.now()) - p_ms & ~1),
         set_config('millrace.upkeep_hand', (millrace.epoch_ms(t.now()) - case when p_mine then p_ms else 5000 end & ~1)::text, false)
$$;

-- Whether a claim did a slice. In a transaction of its own: one that has written does none.
create function t.slices()
returns boolean
language plpgsql
as $$
declare
  v_clock bigint := millrace.hint('millrace.upkeep_clock');
begin
  perform * from millrace.claim_at(t.now(), 's', 'w', 1, null, true);
  return millrace.hint('millrace.upkeep_clock') <> v_clock;
end $$;
select t.late(990, true);
select is(t.slices(), false, 'nobody does a slice of upkeep before its time');
select t.late(1050, false);
select is(t.slices(), false, 'one who has not done it before waits a little longer');
select t.late(1050, true);
select is(t.slices(), true, 'than the one who has');
select t.late(1150, false);
select is(t.slices(), true, 'who may not be there any more');
select is(current_setting('millrace.upkeep_hand'), millrace.hint('millrace.upkeep_clock')::text, 'then it is this one');
select t.put('s', 'f');
select is((select got from t.next('s')), 'f', 'a claim, for the memo');
select t.late(1050, false);
select is(t.slices(), false, 'the same with a memo: not yet');
select t.late(1050, true);
select is(t.slices(), true, 'now');

select * from finish();
