-- SPDX-License-Identifier: PostgreSQL
-- A queue with a history over several segments: jobs of every status, in several lanes.
select millrace.set_queue('narrow', '{}');
select millrace.set_queue('wide', '{"parts": 4}');
select millrace.set_retry('work', max_attempts => 2, jitter => 0);
call app.burn_xids(40000);
-- So that the first rotation is due.
update millrace.segment set closed_at = closed_at - interval '1 day';
-- Five rounds, a segment each.
\ir round.sql
\ir round.sql
\ir round.sql
\ir round.sql
\ir round.sql
-- Some wait for tomorrow, each with a key, some failed and come back, some are dead, one was finished piece by piece.
insert into app.sent (id, queue, priority, writer, n, delayed)
select millrace.enqueue('later', '{}', 'narrow', 50, delay => '1 day', unique_key => 'later ' || g), 'narrow', 50, 93, g, true
  from generate_series(1, 5) g;
select app.produce(94, 'mixed', 50, 6);
select app.take(3, 'mixed', 6) as lease \gset
select count(*) from (select millrace.fail(:'lease', id, 'try again', retry_in => '2 days') from (select id from app.held where lease = :'lease' order by id limit 2) i) f;
insert into app.later select id from app.held where lease = :'lease' order by id limit 2;
select count(*) from (select millrace.fail(:'lease', id, 'no use', retry => false) from (select id from app.held where lease = :'lease' order by id offset 2 limit 2) i) f;
insert into app.buried select id from app.held where lease = :'lease' order by id offset 2 limit 2;
select millrace.complete(:'lease', array(select id from app.held where lease = :'lease' order by id offset 4 limit 1));
insert into app.done select id, 'piece' from app.held where lease = :'lease' order by id offset 4 limit 1;
-- Of an ordering key one runs, and four are set aside behind it.
select millrace.set_queue('line', '{"ordered": true}');
insert into app.sent (id, queue, priority, writer, n, delayed)
select millrace.enqueue('work', '{}', 'line', 50, ordering_key => 'one'), 'line', 50, 95, g, false
  from generate_series(1, 5) g;
select app.take(3, 'line', 6) is not null;
select millrace.depth('line');
