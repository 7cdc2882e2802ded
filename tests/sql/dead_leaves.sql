-- SPDX-License-Identifier: PostgreSQL
-- Dead letters go leaf by leaf: when another one is opened, what a leaf that has to go leaves behind, and what it costs.
\ir lib/helpers.psql
select no_plan();

create function t.bury(p_now timestamptz, p_queue text, p_n int)
returns void
language plpgsql
as $$
declare
  v_job millrace.job;
begin
  perform millrace.set_queue(p_queue, '{}');
  for i in 1 .. p_n loop
    v_job.job_id := nextval('millrace.pos_seq');
    v_job.created_at := p_now;
    v_job.lane := t.qid(p_queue) << 12;
    v_job.attempt := 1;
    v_job.lost := 0;
    v_job.attempts_limit := 1;
    v_job.job_kind := 'k';
    v_job.payload_args := to_jsonb(i);
    v_job.payload_blob := convert_to((select string_agg(md5(random()::text), '') from generate_series(1, 100)), 'UTF8');
    perform millrace.job_bury(p_now + make_interval(secs => i), v_job, 'failed', 'x');
  end loop;
end $$;
create function t.open_leaf()
returns int
language sql
as $$
  select pg_sequence_last_value('millrace.dead_seq'::regclass)::int
$$;
-- Where the letters of a queue are: leaf and number.
create function t.spread(p_queue text)
returns text
language sql
as $$
  select string_agg(format('%s:%s', d.slot, d.n), ' ' order by d.slot) from (select d.slot, count(*) as n from millrace.dead d where d.queue_id = t.qid(p_queue) group by 1) d
$$;
create function t.size_of(p_slot int)
returns bigint
language sql
as $$
  select pg_table_size(format('millrace.dead_%s', p_slot))
$$;
-- Vacuum in a leaf is one of those for whom the next round waits.
do $$
begin
  for i in 0 .. 31 loop
    execute format('alter table millrace.dead_%s set (autovacuum_enabled = off, toast.autovacuum_enabled = off)', i);
  end loop;
end $$;
select setval('millrace.dead_seq', 30)
\g /dev/null

select t.bury(t.at('0'), 'flood', 200), t.bury(t.at('1 hour'), 'few', 5)
\g /dev/null
select is(t.spread('flood') || ' ' || t.spread('few'), '30:200 30:5', 'letters go to the open leaf, whatever their day');
select ok(not millrace.dead_rotate(67108864), 'a leaf that has room stays open');
select ok(millrace.dead_rotate(100000), 'one that is full does not');
select is(t.open_leaf(), 31, 'the next one is opened');
select t.bury(t.at('2 hours'), 'flood', 10)
\g /dev/null
select is(t.spread('flood'), '30:200 31:10', 'and new letters go there');

-- Little of a leaf goes: letter by letter.
select millrace.set_queue('flood', '{"dead_max": 160}')
\g /dev/null
select is(millrace.dead_retain(t.at('3 hours'), 30), 30::bigint, 'what is too much goes, at most so many at once');
select is(millrace.dead_retain(t.at('3 hours'), 30), 20::bigint, '... and the rest the next time');
select is(t.spread('flood'), '30:150 31:10', 'the oldest');
select is(millrace.dead_retain(t.at('3 hours'), 30), 0::bigint, 'enough');

-- Most of it goes: as a whole.
select millrace.set_queue('flood', '{"dead_max": 12}')
\g /dev/null
select t.size_of(30) as before
\gset
select is(millrace.dead_retain(t.at('4 hours'), 1), 1::bigint, 'not where more stay than may move at once: then letter by letter');
select is(millrace.dead_retain(t.at('4 hours'), 100), 147::bigint, 'at least half of a leaf: all that has to go');
select ok(t.size_of(30) < :before / 10, 'its disk is given back');
select is(t.spread('flood') || ' ' || t.spread('few'), '31:12 31:5', 'what stays has moved, that of other queues too');
select is((select array_agg(d.args::int order by d.died_at) from millrace.dead_letters d where d.queue = 'few'), array[1, 2, 3, 4, 5], 'as it was');
select is((select array_agg(d.args::int order by d.died_at) from millrace.dead_letters d where d.queue = 'flood'), array[199, 200, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10], 'the newest of the flood');
select millrace.replay(min(d.id)) as replayed from millrace.dead_letters d where d.queue = 'flood'
\gset
select is(millrace.job(:replayed) ->> 'status', 'available', 'one that has moved can be replayed');

-- By age and bytes, too.
select ok(millrace.dead_rotate(1), 'another leaf');
select is(t.open_leaf(), 0, 'round the ring');
select millrace.set_queue('flood', '{"dead_max_bytes": 1}'), millrace.set_queue('few', '{"dead_retention": "1 hour"}')
\g /dev/null
select is(millrace.dead_retain(t.at('5 hours'), 100), 16::bigint, 'bytes of one, age of the other');
select is((select count(*) from millrace.dead), 0::bigint, 'none is left');
select is(t.size_of(31), t.size_of(30), 'nor is their disk');

-- The ring is full: the open leaf grows.
do $$
begin
  for i in 0 .. 31 loop
    perform setval('millrace.dead_seq', i);
    perform t.bury(t.at('6 hours') + make_interval(mins => i), 'all', 1);
  end loop;
end $$;
select is((select count(distinct d.slot) from millrace.dead d), 32::bigint, 'a letter in every leaf');
select ok(not millrace.dead_rotate(1), 'no leaf is empty: it stays as it is');
select is(t.open_leaf(), 31, '... the open one');

-- The duty does both.
select millrace.set_queue('all', '{"dead_max": 1}')
\g /dev/null
select is(t.duty(t.at('1 day'), 'dead'), 31::bigint, 'upkeep drops the leaves');
select is((select count(*) from generate_series(0, 31) s where pg_relation_size(format('millrace.dead_%s', s)) = 0), 31::bigint, 'all but the open one are empty');
select * from finish();
