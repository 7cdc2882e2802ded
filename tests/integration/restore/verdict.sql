-- SPDX-License-Identifier: PostgreSQL
-- What is wrong with a drained copy, a line each; nothing if all is well. The books were dumped with the queue.
with owed as (
  select s.*, exists (select from app.held h where h.id = s.id) as taken
    from app.sent s
   where s.id not in (select id from app.done)
     and s.id not in (select id from app.buried)),
never_taken as (
  select g.ord, g.lane, o.writer, o.n
    from app.got g
    join owed o on o.id = g.id
   where not o.taken
     and not o.delayed)
select 'not delivered: ' || id from owed where id not in (select id from app.got)
 union all
select 'delivered, but not owed: ' || id from app.got where id not in (select id from owed)
 union all
select 'delivered ' || count(*) || ' times: ' || id from app.got group by id having count(*) > 1
 union all
select format('out of order in lane %s: writer %s, %s after %s', lane, writer, n, before)
  from (select lane, writer, n, lag(n) over (partition by lane, writer order by ord) as before from never_taken) o
 where n < before
 union all
select format('%s dead letters, not %s', d.n, b.n)
  from (select count(*) as n from millrace.dead_letters) d, (select count(*) as n from app.buried) b
 where d.n <> b.n or exists (select from app.buried where id not in (select id from millrace.dead_letters))
 union all
select format('wrong attempt of %s: %s', g.id, g.attempt)
  from app.got g
 where g.attempt <> case when g.id in (select id from app.later) then 2 else 1 end
 union all
select format('queue %s is not empty: %s', s.queue, s.available + s.running) from millrace.stats() s where s.available + s.running > 0;
