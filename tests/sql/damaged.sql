-- SPDX-License-Identifier: PostgreSQL
-- A job that cannot be decoded goes to the dead letters alone; its neighbours are delivered. The damage: a value that lies out
-- of line has a chunk in the leaf's toast table that does not belong to it. (A deleted chunk would not do: it is read until vacuum.)
\ir lib/helpers.psql
select no_plan();

-- Damages the out-of-line value of some jobs' column.
create function t.damage(p_ids bigint[], p_column text, p_table text = 'job')
returns bigint
language plpgsql
as $$
declare
  v_slot  int;
  v_toast regclass;
  v_n     bigint;
  v_all   bigint := 0;
  v_values oid[];
begin
  perform set_config('allow_system_table_mods', 'on', true);
  for v_slot in execute format('select distinct j.slot from millrace.%I j where j.job_id = any ($1)', p_table) using p_ids loop
    v_toast := (select c.reltoastrelid::regclass from pg_class c where c.oid = format('millrace.%s_%s', p_table, v_slot)::regclass);
    -- A value's id in the toast table is not visible in SQL: chunks are told apart by their first bytes, which the test chose.
    execute format('select array_agg(distinct t.chunk_id) from %s t join millrace.%I j on j.job_id = any ($1)
                     where t.chunk_seq = 0 and substr(t.chunk_data, 1, 8) = substr(j.%I, 1, 8)', v_toast, p_table, p_column)
      into v_values using p_ids;
    -- No statement writes to a toast table, so it is an ordinary table for a moment.
    update pg_class c set relkind = 'r' where c.oid = v_toast;
    execute format('insert into %1$s (chunk_id, chunk_seq, chunk_data)
                    select t.chunk_id, 1000, t.chunk_data from %1$s t where t.chunk_id = any ($1) and t.chunk_seq = 0', v_toast) using v_values;
    get diagnostics v_n = row_count;
    update pg_class c set relkind = 't' where c.oid = v_toast;
    v_all := v_all + v_n;
  end loop;
  return v_all;
end $$;
-- 8 bytes that name the value, then 5,000 that do not compress away (storage external keeps them as they are).
create function t.heavy(p_no int)
returns bytea
language sql
as $$
  select int8send(p_no) || decode(repeat('0123456789abcdef', 625), 'hex')
$$;
do $$
begin
  for i in 0..15 loop
    execute format('alter table millrace.delayed_%s alter column payload_blob set storage external', i);
    execute format('alter table millrace.job_%s alter column payload_blob set storage external, alter column payload_state set storage external', i);
  end loop;
end $$;

create function t.put_heavy(p_queue text, p_from int, p_to int, p_part text = 'blob')
returns bigint[]
language sql
as $$
  select array(select millrace.enqueue_at(t.at('0'), 'k', jsonb_build_object('i', i), p_queue, 50, null, null, null, null, 'acme', 'r' || i, null, null, null, '{"m": 1}',
                                          case p_part when 'state' then t.heavy(i) end, case p_part when 'blob' then t.heavy(i) end, null)
                 from generate_series(p_from, p_to) i)
$$;

-- ---- a claim ----
select t.put_heavy('dam', 1, 5) as dam
\gset
select ok(t.damage((:'dam'::bigint[])[3:3], 'payload_blob') > 0, 'one job of five is damaged');
select throws_ok(format('select get_byte(j.payload_blob, 0) from millrace.job j where j.job_id = %s', (:'dam'::bigint[])[3]), 'XX001', null, 'it cannot be read');
select is(millrace.job((:'dam'::bigint[])[3]) -> 'blob', '{"bytes": 5008, "damaged": true}', 'its story says so, and tells the rest');
select is(millrace.job((:'dam'::bigint[])[2]) -> 'blob' ->> 'bytes', '5008', 'that of its neighbour shows it');
select is(t.claim('c1', t.at('1 s'), 'dam', 3), array[(:'dam'::bigint[])[1], (:'dam'::bigint[])[2], (:'dam'::bigint[])[4]], 'its neighbours are delivered, and the batch is filled');
select is((select array_agg(md5(g.blob) order by g.ord) from t.got g where g.tag = 'c1'), array[md5(t.heavy(1)), md5(t.heavy(2)), md5(t.heavy(4))], 'whole');
select is(t.claim('c2', t.at('1 s'), 'dam', 3), array[(:'dam'::bigint[])[5]], 'the queue goes on');
select is((select (d.id, d.cause, d.error, d.args, d.meta, d.tenant, d.ref, d.queue)::text from millrace.dead_letters d),
          ((:'dam'::bigint[])[3], 'damaged', 'cannot be read: blob', '{"i": 3}'::jsonb, '{"m": 1}'::jsonb, 'acme', 'r3', 'dam')::text, 'the damaged one alone is a dead letter, with what can be read');
select is((select k.outcome from millrace.claim k where k.token = t.token('c1')), 'oodo', 'the claim says so');
select is(millrace.complete_at(t.at('2 s'), t.lease('c1'), null, null) + millrace.complete_at(t.at('2 s'), t.lease('c2'), null, null), 4, 'the others complete');
select is((select string_agg(j.status, ',') from millrace.jobs j where j.id = (:'dam'::bigint[])[3]), 'dead', 'its status is dead');
select is(millrace.job((:'dam'::bigint[])[3]) ->> 'status', 'dead', 'its story can be told');
select is(millrace.depth('dam'), 0::bigint, 'nothing waits');

-- ---- one of many ----
select t.put_heavy('many', 101, 130) as many
\gset
select ok(t.damage((:'many'::bigint[])[17:17], 'payload_blob') > 0, 'one job of thirty is damaged');
select is(t.claim('many', t.at('1 s'), 'many', 25), (:'many'::bigint[])[1:16] || (:'many'::bigint[])[18:26], 'a large batch is filled with its neighbours');
select is(t.claim('many2', t.at('1 s'), 'many', 25), (:'many'::bigint[])[27:30], 'and the rest comes next');
-- ---- more bytes than a claim holds in memory ----
select array(select millrace.enqueue_at(t.at('0'), 'k', '{}', 'bytes', 50, null, null, null, null, null, null, null, null, null, null, null, decode(repeat('00', 6000000), 'hex'), null)
               from generate_series(1, 5)) as bytes
\gset
select is(t.claim('bytes', t.at('1 s'), 'bytes', 25), (:'bytes'::bigint[])[1:2], 'a claim of large jobs ends where they get too many bytes');
select is(t.claim('bytes2', t.at('1 s'), 'bytes', 25), (:'bytes'::bigint[])[3:4], 'the next goes on there');
select is(t.claim('bytes3', t.at('1 s'), 'bytes', 25), (:'bytes'::bigint[])[5:5], 'to the end');

-- ---- damaged state, with_state => false: what is not asked for is not read, and does no harm ----
select t.put_heavy('st', 11, 12, 'state') as st
\gset
select ok(t.damage((:'st'::bigint[])[1:1], 'payload_state') > 0, 'a damaged state');
select is(t.claim('st', t.at('3 s'), 'st', 2), (:'st'::bigint[])[2:2], 'is found by a claim that reads it');
select is((select d.error from millrace.dead_letters d where d.id = (:'st'::bigint[])[1]), 'cannot be read: state', 'and named');

-- ---- every job of a batch damaged ----
select t.put_heavy('allbad', 21, 23) as allbad
\gset
select ok(t.damage(:'allbad'::bigint[], 'payload_blob') > 0, 'all are damaged');
select is(t.claim('allbad', t.at('4 s'), 'allbad', 2), '{}', 'a claim returns nothing');
select is((select count(*) from millrace.dead_letters d where d.queue = 'allbad' and d.cause = 'damaged'), 3::bigint, 'and all are dead letters');

-- ---- rescue: damaged while it ran ----
select t.put_heavy('res', 31, 33) as res
\gset
select t.claim('r1', t.at('10 s'), 'res', 3, '5 s')
\gset
select ok(t.damage((:'res'::bigint[])[2:2], 'payload_blob') > 0, 'a running job is damaged');
select is(t.duty(t.at('20 s'), 'rescue'), 3::bigint, 'its lease is rescued');
select is((select (d.cause, d.error)::text from millrace.dead_letters d where d.id = (:'res'::bigint[])[2]), ('damaged', 'cannot be read: blob')::text, 'the damaged one is a dead letter');
select is(t.claim('r2', t.at('21 s'), 'res', 3), array[(:'res'::bigint[])[1], (:'res'::bigint[])[3]], 'the others come again');
select is((select k.outcome from millrace.claim k where k.token = t.token('r1')), 'ldl', 'the claim says so');

select is(millrace.fail_at(t.at('22 s'), t.lease('r2'), (:'res'::bigint[])[1], 'e', '1 s', true, null), 'scheduled', 'a neighbour of a damaged job can fail');
select is(t.duty(t.at('24 s'), 'promote'), 1::bigint, 'and come back');
select is(t.claim('r3', t.at('25 s'), 'res', 3), (:'res'::bigint[])[1:1], 'with what it had');
select is((select md5(g.blob) from t.got g where g.tag = 'r3'), md5(t.heavy(31)), 'whole');

-- ---- promote: damaged while it waited ----
select array(select millrace.enqueue_at(t.at('0'), 'k', '{}', 'pro', 50, null, '1 minute', null, null, null, null, null, null, null, null, null, t.heavy(i), null)
               from generate_series(41, 43) i) as pro
\gset
select ok(t.damage((:'pro'::bigint[])[2:2], 'payload_blob', 'delayed') > 0, 'a delayed job is damaged');
select is(t.duty(t.at('2 minutes'), 'promote'), 3::bigint, 'its time comes, with that of others');
select is((select (d.cause, d.error)::text from millrace.dead_letters d where d.id = (:'pro'::bigint[])[2]), ('damaged', 'cannot be read: blob')::text, 'it is a dead letter');
select is((select count(*) from millrace.delayed d where d.job_id = any (:'pro'::bigint[])), 0::bigint, 'and waits no more');
select is(t.claim('pro', t.at('2 minutes'), 'pro', 3), array[(:'pro'::bigint[])[1], (:'pro'::bigint[])[3]], 'the others are delivered');

-- ---- compaction: damaged in a paused queue ----
select t.put_heavy('pau', 51, 53) as pau
\gset
select ok(t.damage((:'pau'::bigint[])[2:2], 'payload_blob') > 0, 'a job of a paused queue is damaged');
select millrace.pause('pau')
\gset
select t.duty(t.at('3 hours'), 'rotate')
\gset
call t.retire(t.at('3 days'), 1);
select is((select g.truncated from millrace.segment g where g.seg = 1), true, 'it does not keep its segment');
select millrace.resume('pau')
\gset
select is(t.claim_all('pau', t.at('3 days'), 'pau'), array[(:'pau'::bigint[])[1], (:'pau'::bigint[])[3]], 'the others are delivered');
select is((select d.cause from millrace.dead_letters d where d.id = (:'pau'::bigint[])[2]), 'damaged', 'it is a dead letter');

-- ---- small parts that lie out of line because there are many ----
select array(select millrace.enqueue_at(t.at('4 days'), 'k', to_jsonb(repeat(md5(i::text), 20)), 'small', 50, null, null, null, null, repeat(md5(i::text), 25), null, null, null, null,
                                        to_jsonb(repeat(md5((i + 1)::text), 20)), substr(t.heavy(i), 1, 1000), substr(t.heavy(i + 100), 1, 1100), null)
               from generate_series(61, 63) i) as small
\gset
select ok(t.damage((:'small'::bigint[])[2:2], 'payload_blob') > 0, 'a part of 1100 bytes is damaged');
select is(t.claim('small', t.at('4 days'), 'small', 3), array[(:'small'::bigint[])[1], (:'small'::bigint[])[3]], 'its neighbours are delivered');
select is((select d.error from millrace.dead_letters d where d.id = (:'small'::bigint[])[2]), 'cannot be read: blob', 'it is a dead letter');

select * from finish();
