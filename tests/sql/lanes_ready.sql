-- SPDX-License-Identifier: PostgreSQL
-- A window that is read for long: meanwhile jobs come in and segments are closed. When it ends, its cursor stands behind the
-- open segment, but those jobs lie in closed ones. A queue of several lanes must not take such a lane for empty.
select plan(3);
\o /dev/null
select millrace.set_queue('two', '{"parts": 2}');
update millrace.segment set closed_at = closed_at - interval '10 days';
select count(*) from millrace.enqueue_many('k', array_fill('{}'::jsonb, array[4]), 'two');
select count(*) from millrace.claim('two', max_jobs => 1) c;      -- opens a window of one lane, and reads half of it
select count(*) from millrace.enqueue_many('k', array_fill('{}'::jsonb, array[4]), 'two');
select millrace.rotate(now() - interval '9 days');
\o
select is(pg_sequence_last_value('millrace.seg_seq')::int, 2, 'the segment was closed');
do $$
declare
  v_n bigint;
begin
  create table taken (n bigint);
  commit;
  for i in 1 .. 20 loop
    select count(*) into v_n from millrace.claim('two', max_jobs => 100);
    insert into taken values (v_n);
    commit;
  end loop;
end $$;
select is((select sum(n)::int from taken), 7, 'every other job is delivered');
select is(millrace.depth('two')::int, 0, 'and the queue is empty');
select * from finish();
