-- SPDX-License-Identifier: PostgreSQL
-- Bridges: each entry of a stream has its effect once, in whatever order and however often it comes; the floor; dead letters; bad input.
\ir lib/helpers.psql
select no_plan();

create function t.admit(p_ids text[], p_contiguous boolean = false)
returns int[]
language sql
as $$
  select millrace.bridge_admit('b', 's', 'g', p_ids, p_contiguous)
$$;
create function t.spans()
returns bigint
language sql
as $$
  select b.spans from millrace.bridges b where b.name = 'b' and b.stream = 's'
$$;

-- ---- once ----
select is(t.admit('{}'), '{}', 'no entries are fine');
select is(t.admit(array['10-0', '10-1', '11-0'], true), array[1, 2, 3], 'a run is new');
select is(t.spans(), 1::bigint, 'one row for a run');
select is(t.admit(array['10-0', '10-1', '11-0'], true), '{}', 'the same run again is not');
select is(t.admit(array['11-0', '9-5', '12-0']), array[2, 3], 'entries out of order: those that were not there');
select is(t.spans(), 3::bigint, 'a row for each that does not come in a run');
select is(t.admit(array['9-5', '10-0', '10-7', '12-0', '12-1'], true), '{5}', 'what lies inside of a run was part of it');
select is(t.admit(array['20-0', '20-0', '21-0', '20-0']), array[1, 3], 'an id that is given twice counts once');
select is(t.admit(array['19-0', '20-0', '22-0', '23-0', '24-0'], true), array[1, 3, 4, 5], 'a run with a known entry in it');
select is((select count(*) from millrace.bridge_span s where upper(s.span) - lower(s.span) > 0), 2::bigint, 'makes runs on both sides of it');
select is(millrace.bridge_admit('b', 's', 'other', array['10-0']), array[1], 'another group is another matter');
select is(millrace.bridge_admit('b', 'other', 'g', array['10-0']), array[1], 'another stream, too');
select is(millrace.bridge_admit('other', 's', 'g', array['10-0']), array[1], 'and another bridge');
select is(t.admit(array['18446744073709551615-18446744073709551615', '0-1']), array[1, 2], 'the first and the last id there are');
select is(t.admit(array['18446744073709551615-18446744073709551615', '0-1']), '{}', 'are known afterwards');
begin;
select is(t.admit(array['30-0']), array[1], 'taken in hand');
rollback;
select is(t.admit(array['30-0']), array[1], 'a transaction that rolled back has applied nothing');

-- ---- the floor ----
select is(millrace.bridge_floor('b', 's', 'g', '12-1'), 4, 'what lies below the floor is swept, what touches it stays');
select is((select b.floor from millrace.bridges b where b.name = 'b' and b.stream = 's' and b.stream_group = 'g'), '12-1', 'the floor is shown');
select is(t.admit(array['1-0', '9-5', '12-0', '12-1']), '{}', 'entries below the floor are known, whether they were read or not');
select is(millrace.bridge_floor('b', 's', 'g', '5-0'), 0, 'a floor does not go down');
select is((select b.floor from millrace.bridges b where b.name = 'b' and b.stream = 's' and b.stream_group = 'g'), '12-1', 'it stays');
select is(millrace.bridge_admit('other', 's', 'g', array['9-9']), array[1], 'the floor of another bridge is another one');

-- ---- a group that has gone ----
select is((select (begin_after, restarted)::text from millrace.bridge_begin('new', 's', 'g', '5-0')), '(,f)', 'nothing is known of a new stream');
select millrace.bridge_admit('new', 's', 'g', array['5-1', '5-2'], true);
select is((select (begin_after, restarted)::text from millrace.bridge_begin('new', 's', 'g', '5-2')), '(0-0,f)', 'without a floor a group begins at the beginning');
select millrace.bridge_floor('new', 's', 'g', '5-0');
select is((select (begin_after, restarted)::text from millrace.bridge_begin('new', 's', 'g', '7-0')), '(4-18446744073709551615,f)', 'with one, before it');
select is((select (begin_after, restarted)::text from millrace.bridge_begin('new', 's', 'g', '5-1')), '(0-0,t)', 'a stream that gives ids from before was started again');
select is(millrace.bridge_admit('new', 's', 'g', array['5-1']), array[1], 'and is read anew');
select is(millrace.bridge_forget('new'), 1, 'what is known can be forgotten');
select is(millrace.bridge_admit('new', 's', 'g', array['5-1']), array[1], 'then it is applied again');

-- ---- applying ----
create table effect (id text, data jsonb);
create function take_all(p_entries jsonb[])
returns void
language sql
as $$
  insert into effect (id, data) select e ->> 'id', e -> 'data' from unnest(p_entries) e
$$;
create function take_most(p_entries jsonb[])
returns table (id text, error text)
language sql
as $$
  insert into effect (id, data) select e ->> 'id', e -> 'data' from unnest(p_entries) e where e -> 'data' ->> 'n' <> 'bad';
  select e ->> 'id', 'n is bad' from unnest(p_entries) e where e -> 'data' ->> 'n' = 'bad';
$$;
create function take_picky(p_entries jsonb[])
returns int
language plpgsql
as $$
begin
  if p_entries[1] -> 'data' ->> 'n' = 'worse' then
    raise exception 'worse';
  end if;
  return 1;
end $$;
create function t.apply(p_ids text[], p_fields text[], p_settings jsonb)
returns text
language sql
as $$
  select format('%s applied, %s repeated, %s dead', a.applied, a.repeated, a.dead)
    from millrace.bridge_apply('a', 's', 'g', p_ids, p_fields::jsonb[], true, p_settings) a
$$;
select is(t.apply(array['1-1', '1-2'], array['{"n": "1"}', '{"n": "2"}'], '{"sql": "take_all"}'), '2 applied, 0 repeated, 0 dead', 'a function gets the batch');
select is(t.apply(array['1-1', '1-2', '1-3'], array['{"n": "1"}', '{"n": "2"}', '{"n": "3"}'], '{"sql": "public.take_all"}'), '1 applied, 2 repeated, 0 dead', 'and what is new of the next');
select is(array(select e.id || e.data::text from effect e order by 1), array['1-1{"n": "1"}', '1-2{"n": "2"}', '1-3{"n": "3"}'], 'with ids and fields');
select is(t.apply(array['2-1', '2-2'], array['{"n": "bad"}', '{"n": "5"}'], '{"sql": "take_most", "queue": "sink"}'), '1 applied, 0 repeated, 1 dead', 'a function can refuse entries');
select is((select (d.ref, d.error, d.args, d.meta ->> 'stream', d.meta ->> 'entry', d.kind)::text from millrace.dead_letters d where d.queue = 'sink'),
          '(2-1,"n is bad","{""n"": ""bad""}",s,2-1,a)', 'which are dead letters with their stream and id');
select is(t.apply(array['2-3'], array['{"n": "x"}'], '{"sql": "take_all", "queue": "sink", "bury": "no good"}'), '0 applied, 0 repeated, 1 dead', 'an entry is buried on demand');
select is(t.apply(array['2-3'], array['{"n": "x"}'], '{"sql": "take_all", "queue": "sink", "bury": "no good"}'), '0 applied, 1 repeated, 0 dead', 'once');
select is(t.apply(array['3-1'], array['{"d": "{\"x\": [1, null]}"}'], '{"sql": "take_all", "json": "d"}'), '1 applied, 0 repeated, 0 dead', 'a field that holds JSON');
select is((select e.data from effect e where e.id = '3-1'), '{"x": [1, null]}', 'is the data');
select is(t.apply(array['3-2'], array['{"n": "1"}'], '{"sql": "take_picky"}'), '1 applied, 0 repeated, 0 dead', 'what else a function returns does not matter');

-- ---- jobs ----
select is(t.apply(array['4-1', '4-2'], array['{"d": "{\"to\": \"a\", \"who\": \"t1\", \"cut\": null}"}', '{"d": "{\"to\": \"b\", \"who\": \"t2\"}"}'],
                  '{"queue": "mail", "kind_from": "to", "tenant_from": "who", "json": "d", "priority": 7}'), '2 applied, 0 repeated, 0 dead', 'entries become jobs');
select is(array(select format('%s %s %s %s %s', j.kind, j.args, j.ref, j.tenant, j.priority) from millrace.jobs j where j.queue = 'mail' order by j.id),
          array['a {"to": "a", "cut": null, "who": "t1"} 4-1 t1 7', 'b {"to": "b", "who": "t2"} 4-2 t2 7'], 'with args, ref, tenant and priority');
select is(t.apply(array['4-1', '4-2', '4-3'], array['{}', '{}', '{"n": "1"}'], '{"queue": "mail"}'), '1 applied, 2 repeated, 0 dead', 'once');
select is((select j.meta ->> 'entry' from millrace.jobs j where j.queue = 'mail' and j.kind = 'a' and j.ref = '4-3'), '4-3', 'a kind of its own is the name of the bridge; meta has the entry');

-- ---- bad input; nothing changes ----
create temporary table before as select t.all_rows() as rows;
select t.refused($$select millrace.bridge_admit(null, 's', 'g', '{}')$$, '22023', 'bridge must not be null');
select t.refused($$select millrace.bridge_admit(repeat('x', 201), 's', 'g', '{}')$$, '22023', 'bridge is 201 bytes long');
select t.refused($$select millrace.bridge_admit('b', '', 'g', '{}')$$, '22023', 'stream must not be empty');
select t.refused($$select millrace.bridge_admit('b', 's', null, '{}')$$, '22023', 'stream_group must not be null');
select t.refused($$select millrace.bridge_admit('b', repeat('s', 1001), 'g', '{}')$$, '22023', 'stream is 1001 bytes long');
select t.refused($$select millrace.bridge_admit('b', 's', 'g', null)$$, '22023', 'ids must be an array');
select t.refused($$select millrace.bridge_admit('b', 's', 'g', array['99-1', null])$$, '22023', 'ids must be an array of ids without nulls');
select t.refused(format($$select millrace.bridge_admit('b', 's', 'g', array['99-1', %L])$$, i), '22023', 'is no id of a stream entry')
  from unnest(array['', '1', '1-', '-1', '1-1-1', 'a-b', ' 1-1', '1-1 ', '18446744073709551616-0', '0-18446744073709551616', repeat('9', 400) || '-1', '*', '$']) i;
select t.refused($$select millrace.bridge_admit('b', 's', 'g', array['99-2', '99-1'], true)$$, '22023', 'ids that are contiguous must rise');
select t.refused($$select millrace.bridge_floor('b', 's', 'g', null)$$, '22023', 'null is no id of a stream entry');
select t.refused($$select millrace.bridge_begin('b', 's', 'g', 'x')$$, '22023', 'is no id of a stream entry');
select t.refused($$select millrace.bridge_forget('nobody')$$, 'MR003', 'bridge .nobody. does not exist');
select t.refused($$select millrace.bridge_forget(null)$$, 'MR003', 'bridge null does not exist');
select t.refused($$select millrace.bridge_bury('b', 's', 'g', 'x', 'q', 'k', '{}', 'e')$$, '22023', 'is no id of a stream entry');
select t.refused($$select millrace.bridge_bury('b', 's', 'g', '1-1', null, 'k', '{}', 'e')$$, '22023', 'queue must not be null');
select t.refused($$select * from millrace.bridge_apply('a', 's', 'g', array['99-1'], '{}', true, '{"sql": "take_all"}')$$, '22023', '1 ids and 0 fields');
select t.refused($$select * from millrace.bridge_apply('a', 's', 'g', null, '{}', true, '{"sql": "take_all"}')$$, '22023', 'null ids and 0 fields');
select t.refused($$select * from millrace.bridge_apply('a', 's', 'g', array['99-1'], array['{}']::jsonb[], true, '{"sql": "nowhere"}')$$, '42883', 'there is no function nowhere\(jsonb\[\]\)');
select t.refused($$select * from millrace.bridge_apply('a', 's', 'g', array['99-1'], array['{}']::jsonb[], true, '{"sql": "take_all", "json": "d"}')$$, '22023', 'entry 99-1 has no text in the field .d.');
select t.refused($$select * from millrace.bridge_apply('a', 's', 'g', array['99-1'], array['{"d": {"base64": "AA=="}}']::jsonb[], true, '{"sql": "take_all", "json": "d"}')$$, '22023', 'has no text in the field');
select throws_ok($$select * from millrace.bridge_apply('a', 's', 'g', array['99-1'], array['{"d": "{"}']::jsonb[], true, '{"sql": "take_all", "json": "d"}')$$, '22P02', null, 'JSON that is none');
select throws_ok($$select * from millrace.bridge_apply('a', 's', 'g', array['99-1'], array['{"n": "worse"}']::jsonb[], true, '{"sql": "take_picky"}')$$, 'P0001', 'worse', 'what a function raises comes through');
select t.refused($$select * from millrace.bridge_apply('a', 's', 'g', array['99-1'], array['{}']::jsonb[], true, '{"queue": "mail", "kind_from": "to"}')$$, '22023', 'kind');
begin isolation level repeatable read;
select t.refused($$select millrace.bridge_admit('b', 's', 'g', array['99-1'])$$, '25000', 'needs isolation level read committed');
rollback;
select is(t.all_rows(), b.rows, 'nothing of that changed a row') from before b;

-- ---- rights: the function runs as who calls, and what it may not do it may not do here ----
create role bridge_clerk;
grant millrace_worker to bridge_clerk;
create function t.as_clerk(p_sql text)
returns text
language plpgsql
as $$
declare
  v_answer text;
begin
  set local role bridge_clerk;
  execute p_sql into v_answer;
  reset role;
  return v_answer;
exception when others then
  reset role;
  return sqlstate || ' ' || sqlerrm;
end $$;
select is(t.as_clerk($$select applied from millrace.bridge_apply('c', 's', 'g', array['1-1'], array['{"n": "1"}']::jsonb[], true, '{"sql": "take_all"}')$$),
          '42501 permission denied for table effect', 'the function has its caller''s rights');
select is(t.as_clerk($$select applied from millrace.bridge_apply('c', 's', 'g', array['1-1'], array['{"n": "1"}']::jsonb[], true, '{"queue": "mail"}')$$),
          '42501 permission denied for function enqueue_jobs', 'who may not enqueue does not by a bridge');
grant insert on effect to bridge_clerk;
select is(t.as_clerk($$select applied from millrace.bridge_apply('c', 's', 'g', array['1-1'], array['{"n": "1"}']::jsonb[], true, '{"sql": "take_all"}')$$), '1', 'who may, does');
drop owned by bridge_clerk;
drop role bridge_clerk;
select * from finish();
