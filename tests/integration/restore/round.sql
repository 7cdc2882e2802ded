-- SPDX-License-Identifier: PostgreSQL
-- Something for each lane, something claimed and completed, something left running.
select app.produce(90, 'narrow', 50, 40);
select app.produce(91, 'narrow', 10, 20);
select app.produce(92, 'wide', 50, 60);
select app.take(1, 'narrow', 12);
select app.take(1, 'wide', 5);
select app.finish(1);
select app.take(2, 'narrow', 7);
select app.take(2, 'wide', 3);
select millrace.rotate((select max(closed_at) + interval '2 hours' from millrace.segment));
