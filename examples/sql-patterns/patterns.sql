-- SPDX-License-Identifier: PostgreSQL
--
-- A queue in the database, pattern by pattern: what teams write by hand, what it is with Millrace, and the proof.
--
--   psql -X -q -A -t -v ON_ERROR_STOP=1 -f patterns.sql
--
-- Each line that begins with "ok" was checked; the first promise that does not hold ends the page with an error. It wants a database of its
-- own, and makes two roles. Nothing here waits for luck: what needs time is waited for by its condition.

\set QUIET on
set client_min_messages = warning;

create schema shop;

-- The proof of a pattern: says so, or raises.
create function shop.promise(what text, holds boolean)
returns text
language plpgsql
as $$
begin
  if holds is not true then
    raise exception 'a promise does not hold: %', what;
  end if;
  return 'ok      ' || what;
end $$;

-- Whether a statement is refused with this SQLSTATE.
create function shop.refused(statement text, state text)
returns boolean
language plpgsql
as $$
begin
  execute statement;
  return false;
exception when others then
  if sqlstate <> state then
    raise exception '% was refused with %: %', statement, sqlstate, sqlerrm;
  end if;
  return true;
end $$;

-- Upkeep, as a daemon or pg_cron would call it every second, until a question is answered with true.
create procedure shop.upkeep_until(question text)
language plpgsql
as $$
declare
  v_answer   boolean;
  v_deadline timestamptz := clock_timestamp() + interval '60 seconds';
begin
  loop
    perform millrace.maintain();
    commit;
    execute question into v_answer;
    exit when v_answer;
    if clock_timestamp() > v_deadline then
      raise exception 'gave up waiting for: %', question;
    end if;
    perform pg_sleep(0.05);
  end loop;
end $$;

-- ---------------------------------------------------------------------------------------------------------------------------------------
\echo
\echo '1. An API, apart from its data'
-- By hand: a schema with functions in front of a jobs table, security definer if somebody thought of it, search_path if somebody knew.
-- Now:     grant a role. Functions are the only way in; the tables belong to the schema's owner alone.

create role shop_app;
create role shop_worker;
grant millrace_producer to shop_app;
grant millrace_worker to shop_worker;

-- Those of table capture, and bridge_apply, are meant to run with their caller's rights: they touch the caller's tables and functions.
select shop.promise('what producers and workers may call is security definer with a pinned search_path',
                    count(*) > 20 and bool_and(p.prosecdef and exists (select from unnest(p.proconfig) c where c like 'search\_path=%')))
  from pg_proc p
 where p.pronamespace = 'millrace'::regnamespace
   and (has_function_privilege('shop_app', p.oid, 'execute') or has_function_privilege('shop_worker', p.oid, 'execute'))
   and p.proname not in ('capture', 'capture_enable', 'capture_disable', 'uncapture', 'capture_run', 'bridge_apply');
select shop.promise('no table of the schema can be written, and none but its views read, by either role',
                    not bool_or(has_table_privilege(r, c.oid, 'insert') or has_table_privilege(r, c.oid, 'update') or has_table_privilege(r, c.oid, 'delete')
                                or c.relkind in ('r', 'p') and c.relname not like 'schema\_%' and has_table_privilege(r, c.oid, 'select')))
  from pg_class c
 cross join unnest(array['shop_app', 'shop_worker']) r
 where c.relnamespace = 'millrace'::regnamespace
   and c.relkind in ('r', 'p', 'v');
grant usage on schema shop to shop_app, shop_worker;
set role shop_app;
select millrace.enqueue('hello', queue => 'roles') as id \gset
select shop.promise('whoever may enqueue may not claim', shop.refused($$select millrace.claim('roles')$$, '42501'));
select shop.promise('... nor write the tables', shop.refused($$delete from millrace.job$$, '42501'));
set role shop_worker;
select shop.promise('whoever may claim does', count(*) = 1 and min(id) = :id) from millrace.claim('roles');
select shop.promise('... and may not enqueue', shop.refused($$select millrace.enqueue('hello')$$, '42501'));
reset role;

-- ---------------------------------------------------------------------------------------------------------------------------------------
\echo
\echo '2. Order and confirmation in one transaction'
-- By hand: an insert into the jobs table beside the insert of the order. The pattern that makes people put a queue into the database at all.
-- Now:     the same, as a call. Commit and rollback decide; there is nothing to clean up.

create table shop.orders (order_no int primary key, customer text not null, confirmed_by bigint);

begin;
insert into shop.orders (order_no, customer) values (1, 'ada@example.org');
select millrace.enqueue('confirm', '{"order_no": 1}', queue => 'confirmations', ref => 'order-1') as placed \gset
select shop.promise('before the commit nobody gets the job, not even this session', count(*) = 0) from millrace.claim('confirmations');
commit;
select shop.promise('the commit makes it available', millrace.depth('confirmations') = 1);

begin;
insert into shop.orders (order_no, customer) values (2, 'bob@example.org');
select millrace.enqueue('confirm', '{"order_no": 2}', queue => 'confirmations', ref => 'order-2') as undone \gset
rollback;
select shop.promise('a rollback takes order and job back', millrace.depth('confirmations') = 1 and not exists (select from shop.orders where order_no = 2)
                    and shop.refused(format('select millrace.job(%s)', :undone), 'MR003'));

begin;
savepoint before_coupon;
select millrace.enqueue('coupon', queue => 'confirmations') as coupon \gset
rollback to before_coupon;
commit;
select shop.promise('... and so does a savepoint', millrace.depth('confirmations') = 1);

-- The other end: the effect and the completion are one transaction, too.
select lease, id, args ->> 'order_no' as order_no from millrace.claim('confirmations', worker => 'page') \gset
begin;
update shop.orders set confirmed_by = :id where order_no = :order_no;
select millrace.complete(:'lease', result => '{"sent": true}') as done \gset
commit;
select shop.promise('the order is confirmed and the job completed, by one commit',
                    (select confirmed_by from shop.orders where order_no = 1) = :placed and millrace.job_by_ref('confirmations', 'order-1') ->> 'status' = 'completed');

-- ---------------------------------------------------------------------------------------------------------------------------------------
\echo
\echo '3. Fetch one and many, complete, fail, heartbeat'
-- By hand: select ... for update skip locked, then update status, updated_at, locked_by, attempts: two dead rows a job. A worker that comes
--          back after its job was given to another overwrites what that one did.
-- Now:     claim gives a lease. Every later call carries it; one that is not good any more changes nothing.

select millrace.set_queue('images', '{"lease": "1 hour"}') \g /dev/null
select millrace.enqueue_many('resize', array_agg(jsonb_build_object('image', i)), queue => 'images') from generate_series(1, 10) i \g /dev/null
select lease as one from millrace.claim('images') \gset
select shop.promise('fetch one', millrace.complete(:'one') = 1);
select lease as many, array_agg(id order by id) as ids from millrace.claim('images', max_jobs => 4) group by lease \gset
select shop.promise('fetch many: four jobs, one lease', cardinality(:'ids'::bigint[]) = 4);
select shop.promise('another worker gets others', not exists (select from millrace.claim('images', max_jobs => 4) c where c.id = any(:'ids')));
select shop.promise('a sign of life moves the end of the lease',
                    (millrace.heartbeat(:'many', '10 minutes')).lease_until > clock_timestamp() + interval '9 minutes');
select shop.promise('fail with retry: it will come again', millrace.fail(:'many', (:'ids'::bigint[])[1], 'timed out', retry_in => '1 hour') = 'scheduled');
select shop.promise('fail without: a dead letter', millrace.fail(:'many', (:'ids'::bigint[])[2], 'no image at all', retry => false) = 'dead');
select shop.promise('the other two are completed', millrace.complete(:'many') = 2);
select shop.promise('the lease is used up', shop.refused(format('select millrace.complete(%L)', :'many'), 'MR001'));
select shop.promise('... and a token that was made up is worth nothing', shop.refused($$select millrace.complete('1.2.3.none')$$, 'MR001'));

-- ---------------------------------------------------------------------------------------------------------------------------------------
\echo
\echo '4. Retry settings per type'
-- By hand: a table of job types, joined in fail(): attempts, base delay, factor, cap; a coalesce for types that nobody entered.
-- Now:     set_retry, once for each kind. Jitter is there for whoever wants it: 0 here, so that the delays can be compared.

select millrace.set_retry('email_send', max_attempts => 5, base => '30 seconds', jitter => 0) \g /dev/null
select millrace.set_retry('webhook_call', max_attempts => 3, base => '1 minute', jitter => 0) \g /dev/null
select millrace.set_retry('report_generate', max_attempts => 2, base => '5 minutes', cap => '6 minutes', jitter => 0) \g /dev/null

-- Fails a fresh job of a kind so many times, each time as soon as it is made to run again, and tells its status and how long it has to wait: the
-- delay is known between two readings of the clock.
create procedure shop.fail_times(kind text, times int, inout status text, inout least_delay interval, inout most_delay interval)
language plpgsql
as $$
declare
  v_queue text := kind || '-' || times;
  v_id    bigint := millrace.enqueue(kind, queue => v_queue);
  v_began timestamptz;
  v_claim millrace.claimed_job;
begin
  for i in 1..times loop
    if i > 1 then
      perform millrace.run_now(v_id);
    end if;
    commit;
    select c.*
      into v_claim
      from millrace.claim(v_queue) c;
    commit;
    v_began := clock_timestamp();
    status := millrace.fail(v_claim.lease, v_claim.id, 'not today');
    commit;
  end loop;
  select j.run_at - clock_timestamp(), j.run_at - v_began
    into least_delay, most_delay
    from millrace.jobs j
   where j.queue = v_queue;
end $$;

call shop.fail_times('email_send', 1, null, null, null) \gset
select shop.promise('email_send waits 30 s', interval '30 s' between :'least_delay' and :'most_delay');
call shop.fail_times('email_send', 4, null, null, null) \gset
select shop.promise('... 240 s after its fourth attempt', interval '240 s' between :'least_delay' and :'most_delay');
call shop.fail_times('email_send', 5, null, null, null) \gset
select shop.promise('... and is dead after the fifth', :'status' = 'dead');
call shop.fail_times('webhook_call', 2, null, null, null) \gset
select shop.promise('webhook_call waits 2 min after its second attempt', interval '2 min' between :'least_delay' and :'most_delay');
call shop.fail_times('webhook_call', 3, null, null, null) \gset
select shop.promise('... and is dead after the third', :'status' = 'dead');
call shop.fail_times('report_generate', 1, null, null, null) \gset
select shop.promise('report_generate waits 5 min', interval '5 min' between :'least_delay' and :'most_delay');
call shop.fail_times('report_generate', 2, null, null, null) \gset
select shop.promise('... and is dead after the second', :'status' = 'dead');
call shop.fail_times('unheard_of', 2, null, null, null) \gset
select shop.promise('a kind without settings: 2^attempt s, and 0 to 50 % of jitter', :'status' = 'scheduled' and interval '4 s' <= :'most_delay' and :'least_delay' <= interval '6 s');

-- ---------------------------------------------------------------------------------------------------------------------------------------
\echo
\echo '5. Stuck jobs'
-- By hand: update jobs set status = 'pending' where locked_at < now() - interval '5 minutes', run by cron; a slow worker and a dead one look
--          the same, and the slow one finishes a job that another has.
-- Now:     a lease, 5 minutes for this queue unless the claim says otherwise. Upkeep and other workers' claims rescue what it leaves behind;
--          the old lease is void from then on. A job that is lost again and again is poison and goes to the dead letters.

select millrace.set_queue('exports', '{"lease": "5 minutes", "poison_limit": 2}') \g /dev/null
select millrace.enqueue('export', queue => 'exports') as stuck \gset
select lease_until - clock_timestamp() as remaining, lease from millrace.claim('exports', worker => 'alive') \gset
select shop.promise('stuck after 5 minutes without a sign of life', interval '5 min' >= :'remaining' and :'remaining' > interval '4 min');
select millrace.release(:'lease') \g /dev/null
select lease as abandoned, attempt as first_attempt from millrace.claim('exports', worker => 'dies', lease_for => '100 ms') \gset
call shop.upkeep_until(format($$select millrace.job(%s) ->> 'status' = 'available'$$, :stuck));
select lease, id, attempt from millrace.claim('exports', worker => 'alive') \gset
select shop.promise('the lease ended, the job was rescued, another worker has it', :id = :stuck and :attempt = :first_attempt + 1);
select shop.promise('the first worker comes back too late: refused, nothing changed',
                    shop.refused(format('select millrace.complete(%L)', :'abandoned'), 'MR001') and millrace.job(:stuck) ->> 'status' = 'running');
select shop.promise('the second one finishes it', millrace.complete(:'lease') = 1);

-- ---------------------------------------------------------------------------------------------------------------------------------------
\echo
\echo '6. Dead letters, and replay of one or many'
-- By hand: a second table with the same columns, an insert ... select and a delete in fail(), another pair for the way back. Nobody cleans it.
-- Now:     a view and two functions; dead letters end by age, number and bytes (dead_retention, dead_max, dead_max_bytes).

select millrace.enqueue_many('webhook', array_agg(jsonb_build_object('n', i)), queue => 'hooks') from generate_series(1, 3) i \g /dev/null
select millrace.enqueue('import', queue => 'hooks') as import_id \gset
select count(millrace.fail(lease, id, 'partner answered 410 for ' || kind, retry => false)) as buried from millrace.claim('hooks', max_jobs => 4) \gset
select shop.promise('four dead letters, with the error and the story of each',
                    count(*) = 4 and bool_and(error like 'partner answered 410%' and cause = 'failed' and jsonb_array_length(history) = 1))
  from millrace.dead_letters where queue = 'hooks';
select shop.promise('replay of one: the same id', millrace.replay(:import_id) = :import_id);
select shop.promise('... which waits again', millrace.depth('hooks') = 1);
select shop.promise('replay of many, by kind and error', millrace.replay_all('hooks', kind => 'webhook', error_like => '%410%') = 3);
select shop.promise('none is left among the dead', count(*) = 0) from millrace.dead_letters where queue = 'hooks';
select shop.promise('they run as new jobs', count(*) = 4 and bool_and(attempt = 1)) from millrace.claim('hooks', max_jobs => 10);
select shop.promise('a job that is not dead cannot be replayed', shop.refused(format('select millrace.replay(%s)', :placed), 'MR003'));

-- ---------------------------------------------------------------------------------------------------------------------------------------
\echo
\echo '7. A listener with a fallback'
-- By hand: a trigger with pg_notify on every insert, which takes a lock of the whole database at each commit; a loop that listens; a second loop
--          that polls, because a notification is lost with its connection.
-- Now:     millrace work, or wait_channel, listen, claim once more and wait. Only a worker that has said it waits is notified, a burst sends
--          one. The run script has a session listen, then two workers: one that listens, one behind a pooler that can only poll.

select shop.promise('a channel for each queue', millrace.wait_channel('confirmations', 'a') = millrace.wait_channel('confirmations', 'b')
                                                 and millrace.wait_channel('confirmations', 'a') <> millrace.wait_channel('images', 'a'));

-- What the workers do with a job, in the transaction that completes it: send the confirmation, once.
create table shop.sent (order_no int primary key, after interval not null);

create function shop.confirm(job jsonb)
returns jsonb
language sql
as $$
  insert into shop.sent (order_no, after)
  values ((job -> 'args' ->> 'order_no')::int, clock_timestamp() - (job ->> 'created_at')::timestamptz)
  returning jsonb_build_object('sent', order_no)
$$;

create procedure shop.place_order(number int)
language sql
as $$
  insert into shop.orders (order_no, customer) values (number, 'customer ' || number);
  select millrace.enqueue('confirm', jsonb_build_object('order_no', number), queue => 'confirmations', ref => 'order-' || number);
$$;

-- ---------------------------------------------------------------------------------------------------------------------------------------
\echo
\echo '8. Schedules'
-- By hand: a table of cron rows with last_run and next_run, a loop with a lock around it, and a library for the expression.
-- Now:     schedule(). Whoever calls maintain or claim is a scheduler, none is in charge, and an occurrence is enqueued once. The run script
--          lets four schedulers loose on a schedule that fires every second and counts.

select millrace.schedule('nightly_report', '0 2 * * *', 'report_generate', '{"days": 1}', queue => 'reports', timezone => 'Europe/Berlin') \g /dev/null
select shop.promise('named, with expression, payload, queue, active flag, last and next run',
                    cron = '0 2 * * *' and args = '{"days": 1}' and queue = 'reports' and active and last_at is null
                    and next_at = millrace.cron_next('0 2 * * *', timezone => 'Europe/Berlin'))
  from millrace.schedules where name = 'nightly_report';
select millrace.schedule_disable('nightly_report') \g /dev/null
select shop.promise('switched off', not active) from millrace.schedules where name = 'nightly_report';
select millrace.schedule_run('nightly_report') as report \gset
select shop.promise('run by hand all the same', millrace.job(:report) -> 'args' = '{"days": 1}' and millrace.job(:report) -> 'meta' ->> 'schedule' = 'nightly_report');
select shop.promise('nonsense is refused', shop.refused($$select millrace.schedule('x', '61 * * * *', 'k')$$, '22023')
                                            and shop.refused($$select millrace.schedule_run('nobody')$$, 'MR003'));

-- ---------------------------------------------------------------------------------------------------------------------------------------
\echo
\echo '9. Delayed jobs'
-- By hand: a column run_at in every query and every index.
-- Now:     delay or run_at. Jobs for later wait in a table of their own and cost a claim nothing.

select millrace.enqueue('reminder', queue => 'reminders', delay => '1 day') as tomorrow \gset
select millrace.enqueue('reminder', queue => 'reminders', run_at => '2100-01-01 00:00 UTC') as later \gset
select shop.promise('scheduled, at a time or after an interval', count(*) = 2 and min(run_at) > now() + interval '23 hours' and max(run_at) = '2100-01-01 00:00 UTC')
  from millrace.jobs where queue = 'reminders' and status = 'scheduled';
select shop.promise('... and neither counted as waiting nor handed out', millrace.depth('reminders') = 0 and count(*) = 0) from millrace.claim('reminders', max_jobs => 10);
select millrace.enqueue('reminder', queue => 'reminders', delay => '300 ms') as soon \gset
call shop.upkeep_until(format($$select millrace.job(%s) ->> 'status' = 'available'$$, :soon));
select lease, id from millrace.claim('reminders', max_jobs => 10) \gset
select shop.promise('the one whose time has come', :id = :soon and millrace.complete(:'lease') = 1);
select millrace.run_now(:tomorrow) \g /dev/null
select shop.promise('run_now does not wait', count(*) = 1 and min(id) = :tomorrow) from millrace.claim('reminders', max_jobs => 10);
select shop.promise('both at once is a mistake', shop.refused($$select millrace.enqueue('k', delay => '1 s', run_at => now())$$, '22023'));

-- ---------------------------------------------------------------------------------------------------------------------------------------
\echo
\echo '10. Stats'
-- By hand: a view with count(*) group by queue, status: slower with every job, and wrong by dead rows' worth of time under load.
-- Now:     stats(), from a ledger: the same cost at any depth.

call shop.upkeep_until($$select completed_1h = 3 from millrace.stats('images')$$);
select shop.promise(p.what, p.holds)
  from millrace.stats('images') s
 cross join lateral (values ('count of each status', s.available = 1 and s.running = 4 and s.retrying = 1 and s.dead = 1),
                            ('completed and failed in the last hour', s.completed_1h = 3 and s.failed_1h = 2),
                            ('age of the oldest, average wait, average run time', s.oldest_seconds >= 0 and s.avg_wait_seconds_1h >= 0 and s.avg_run_seconds_1h >= 0)) p(what, holds);

-- ---------------------------------------------------------------------------------------------------------------------------------------
\echo
\echo '11. Health'
-- By hand: a function with two thresholds and a message, called by whatever wakes people up.
-- Now:     health(). OK; WARNING over 100 and CRITICAL over 1,000 waiting, both of them settings of the queue.

select millrace.enqueue_many('k', array_fill('{}'::jsonb, array[100]), queue => 'backlog') \g /dev/null
select shop.promise('100 waiting: ' || status || ', ' || regexp_replace(message, '[0-9.]+ s', '... s'), status = 'OK') from millrace.health() where queue = 'backlog';
select millrace.enqueue('k', queue => 'backlog') \g /dev/null
select shop.promise('101: ' || status, status = 'WARNING' and message ~ '^101 pending, oldest [0-9.]+ s') from millrace.health() where queue = 'backlog';
select millrace.enqueue_many('k', array_fill('{}'::jsonb, array[900]), queue => 'backlog') \g /dev/null
select shop.promise('1001: ' || status, status = 'CRITICAL' and message ~ '^1001 pending, oldest [0-9.]+ s') from millrace.health() where queue = 'backlog';
select millrace.set_queue('backlog', '{"warn_depth": 5000, "critical_depth": 10000}') \g /dev/null
select shop.promise('with other thresholds: ' || status, status = 'OK') from millrace.health() where queue = 'backlog';
