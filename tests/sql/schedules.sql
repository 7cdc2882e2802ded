-- SPDX-License-Identifier: PostgreSQL
-- Cron expressions and schedules: what fires when, in which zone, what is caught up, and that each occurrence is enqueued once.
\ir lib/helpers.psql
select no_plan();

-- The next n times of an expression, as the wall of its zone shows them.
create function t.next(p_cron text, p_after text, p_n int = 3, p_zone text = 'UTC')
returns text
language plpgsql
as $$
declare
  v_at  timestamptz := p_after::timestamp at time zone p_zone;
  v_all text[];
begin
  for i in 1..p_n loop
    v_at := millrace.cron_next(p_cron, v_at, p_zone);
    v_all := v_all || to_char(v_at at time zone p_zone, 'YYYY-MM-DD HH24:MI:SS');
  end loop;
  return array_to_string(v_all, ', ');
end $$;

-- Fields.
select is(t.next('*/15 * * * *', '2030-01-01 00:10'), '2030-01-01 00:15:00, 2030-01-01 00:30:00, 2030-01-01 00:45:00', 'a step');
select is(t.next('0 2 * * *', '2030-01-01 02:00'), '2030-01-02 02:00:00, 2030-01-03 02:00:00, 2030-01-04 02:00:00', 'not the time itself: after it');
select is(t.next('5/20 8-9 * * *', '2030-01-01 08:10'), '2030-01-01 08:25:00, 2030-01-01 08:45:00, 2030-01-01 09:05:00', 'a step from a value on');
select is(t.next('0 22-2/2 * * *', '2030-01-01 12:00', 4), '2030-01-01 22:00:00, 2030-01-02 00:00:00, 2030-01-02 02:00:00, 2030-01-02 22:00:00',
          'a range over midnight');
select is(t.next('*/20 30 4 * * *', '2030-01-01 00:00', 4), '2030-01-01 04:30:00, 2030-01-01 04:30:20, 2030-01-01 04:30:40, 2030-01-02 04:30:00',
          'six fields: the second first');
select is(t.next('0 0 * feb,DEC *', '2030-02-27 00:00', 2), '2030-02-28 00:00:00, 2030-12-01 00:00:00', 'names of months, a list');
select is(t.next('0 0 * * fri-mon', '2030-01-01 00:00', 5), '2030-01-04 00:00:00, 2030-01-05 00:00:00, 2030-01-06 00:00:00, 2030-01-07 00:00:00, 2030-01-11 00:00:00',
          'names of days, a range over Sunday');
select is(t.next('0 0 * * 7', '2030-01-01 00:00', 1), t.next('0 0 * * 0', '2030-01-01 00:00', 1), '7 is Sunday, as 0 is');
select is(t.next('0 0 * * 5-7', '2030-01-01 00:00', 3), '2030-01-04 00:00:00, 2030-01-05 00:00:00, 2030-01-06 00:00:00', 'a range up to 7');
select is(t.next('0 0 13 * fri', '2030-01-01 00:00', 4), '2030-01-04 00:00:00, 2030-01-11 00:00:00, 2030-01-13 00:00:00, 2030-01-18 00:00:00',
          'two fields of days: either is enough');
select is(t.next('0 0 ? * mon', '2030-01-01 00:00', 1), t.next('0 0 * * mon', '2030-01-01 00:00', 1), '? is *');
select is(t.next(E'  0\t0  1 1 *\n', '2030-01-01 00:00', 1), '2031-01-01 00:00:00', 'any white space');
select is(t.next('0 0 29 2 *', '2030-01-01 00:00', 2), '2032-02-29 00:00:00, 2036-02-29 00:00:00', '29 February');
select is(t.next('0 0 29 2 *', '2096-03-01 00:00', 1), '2104-02-29 00:00:00', '2100 has none');
select is(t.next('0 0 * 2 sun#5', '2088-03-01 00:00', 1), '2128-02-29 00:00:00', 'the rarest day there is: after 40 years');

-- L, W, #.
select is(t.next('0 0 L * *', '2030-01-01 00:00', 3), '2030-01-31 00:00:00, 2030-02-28 00:00:00, 2030-03-31 00:00:00', 'L: the last day');
select is(t.next('0 0 L-3 2 *', '2030-01-01 00:00', 3), '2030-02-25 00:00:00, 2031-02-25 00:00:00, 2032-02-26 00:00:00', 'L-3: three days before it');
select is(t.next('0 0 LW * *', '2030-02-01 00:00', 3), '2030-02-28 00:00:00, 2030-03-29 00:00:00, 2030-04-30 00:00:00', 'LW: the last weekday');
select is(t.next('0 0 15W * *', '2030-05-01 00:00', 3), '2030-05-15 00:00:00, 2030-06-14 00:00:00, 2030-07-15 00:00:00', 'W: Friday for a Saturday');
select is(t.next('0 0 15W * *', '2030-09-01 00:00', 1), '2030-09-16 00:00:00', 'W: Monday for a Sunday');
select is(t.next('0 0 1W * *', '2030-06-01 00:00', 1), '2030-06-03 00:00:00', 'W does not leave the month at its start');
select is(t.next('0 0 31W * *', '2030-03-01 00:00', 2), '2030-03-29 00:00:00, 2030-05-31 00:00:00', 'nor at its end; a month without a 31st has none');
select is(t.next('0 0 * * 5L', '2030-01-01 00:00', 2), '2030-01-25 00:00:00, 2030-02-22 00:00:00', '5L: the last Friday');
select is(t.next('0 0 * * FRIL', '2030-01-01 00:00', 2), t.next('0 0 * * L5', '2030-01-01 00:00', 2), 'the same with a name, and the other way round');
select is(t.next('0 0 * * tue#2', '2030-01-01 00:00', 2), '2030-01-08 00:00:00, 2030-02-12 00:00:00', '#2: the second Tuesday');
select is(t.next('0 0 * * 1#5', '2030-01-01 00:00', 2), '2030-04-29 00:00:00, 2030-07-29 00:00:00', '#5: only in months that have one');
select is(t.next('0 0 1,L * 3#1,3#3', '2030-01-02 00:00', 3), '2030-01-16 00:00:00, 2030-01-31 00:00:00, 2030-02-01 00:00:00', 'lists of such');

-- Names of expressions.
select is(t.next(n.name, '2030-01-02 00:30', 1), n.first, n.name)
  from (values ('@yearly', '2031-01-01 00:00:00'), ('@annually', '2031-01-01 00:00:00'), ('@monthly', '2030-02-01 00:00:00'),
               ('@weekly', '2030-01-06 00:00:00'), ('@daily', '2030-01-03 00:00:00'), ('@midnight', '2030-01-03 00:00:00'),
               ('@Hourly', '2030-01-02 01:00:00')) n(name, first);

-- Clocks that change. Berlin: 31 March 2030 at 02:00 on to 03:00, 27 October 2030 at 03:00 back to 02:00.
select is(t.next('30 2 * * *', '2030-03-30 00:00', 3, 'Europe/Berlin'), '2030-03-30 02:30:00, 2030-03-31 03:00:00, 2030-04-01 02:30:00',
          'a time that is left out: at the moment of the change');
select is(t.next('15,30 2 * * *', '2030-03-31 00:00', 2, 'Europe/Berlin'), '2030-03-31 03:00:00, 2030-04-01 02:15:00', 'two of them: once');
select is(t.next('0,30 2,3 * * *', '2030-03-31 00:00', 3, 'Europe/Berlin'), '2030-03-31 03:00:00, 2030-03-31 03:30:00, 2030-04-01 02:00:00',
          'and once with what fires then anyway');
select is(t.next('30 2 * * *', '2030-10-26 12:00', 2, 'Europe/Berlin'), '2030-10-27 02:30:00, 2030-10-28 02:30:00', 'a time that comes twice: once');
select is(millrace.cron_next('30 2 * * *', '2030-10-26 12:00+02', 'Europe/Berlin'), '2030-10-27 00:30+00'::timestamptz, 'namely the first one');
select is(millrace.cron_next('30 2 * * *', '2030-10-27 01:10+00', 'Europe/Berlin'), '2030-10-28 01:30+00'::timestamptz, 'also when asked in between');
select is(millrace.cron_next('0 3 * * *', '2030-10-27 01:10+00', 'Europe/Berlin'), '2030-10-27 02:00+00'::timestamptz, 'what follows comes in its time');
select is(array(select (x - timestamptz '2030-03-31 00:00+00')::text
                  from (with recursive n(x, i) as (select millrace.cron_next('*/30 * * * *', '2030-03-31 00:10+00', 'Europe/Berlin'), 1
                                                    union all
                                                   select millrace.cron_next('*/30 * * * *', x, 'Europe/Berlin'), i + 1 from n where i < 4)
                        select x from n) f),
          array['00:30:00', '01:00:00', '01:30:00', '02:00:00'], 'every hour goes by the time that passes, where one is left out');
select is(array(select (x - timestamptz '2030-10-27 00:00+00')::text
                  from (with recursive n(x, i) as (select millrace.cron_next('*/30 * * * *', '2030-10-27 00:10+00', 'Europe/Berlin'), 1
                                                    union all
                                                   select millrace.cron_next('*/30 * * * *', x, 'Europe/Berlin'), i + 1 from n where i < 4)
                        select x from n) f),
          array['00:30:00', '01:00:00', '01:30:00', '02:00:00'], 'and where one comes twice');
select is(t.next('0 12 30 12 *', '2011-12-01 00:00', 1, 'Pacific/Apia'), '2011-12-31 00:00:00', 'a whole day that is left out');
select is(t.next('45 1 * * *', '2030-04-06 12:00', 2, 'Australia/Lord_Howe'), '2030-04-07 01:45:00, 2030-04-08 01:45:00', 'half an hour that comes twice');
select is(t.next('0 2 * * *', '2030-06-01 00:00', 1, 'europe/berlin'), '2030-06-01 02:00:00', 'names of zones in any case');

-- Bad input: the message names the field.
select t.refused('select millrace.cron_next(' || quote_nullable(b.cron) || ')', '22023', b.message)
  from (values (null, '^cron must not be null$'), (' ', '^cron must not be empty$'), ('* * * *', 'has 4 fields'), ('* * * * * * *', 'has 7 fields'),
               ('60 * * * *', 'minute ''60'' is wrong'), ('* 24 * * *', 'hour ''24'' is wrong'), ('* * 0 * *', 'day of the month ''0'' is wrong'),
               ('* * 32 * *', 'day of the month ''32'' is wrong'), ('* * * 13 *', 'month ''13'' is wrong'), ('* * * foo *', 'month ''foo'' is wrong'),
               ('* * * * 8', 'day of the week ''8'' is wrong'), ('60 * * * * *', 'second ''60'' is wrong'), ('*/0 * * * *', 'minute ''\*/0'' is wrong'),
               ('*/60 * * * *', 'minute ''\*/60'' is wrong'), ('1,,2 * * * *', 'minute '''' is wrong'), ('1-2-3 * * * *', 'minute ''1-2-3'' is wrong'),
               ('-1 * * * *', 'minute ''-1'' is wrong'), ('99999999999999999999 * * * *', 'minute'), ('* ? * * *', 'hour ''\?'' is wrong'),
               ('* L * * *', 'hour ''l'' is wrong'), ('* * L-31 * *', 'day of the month ''l-31'' is wrong'), ('* * 32W * *', 'day of the month ''32w'' is wrong'),
               ('* * * * L', 'day of the week ''l'' is wrong'), ('* * * * 1#6', 'day of the week ''1#6'' is wrong'), ('* * * * 1#0', 'day of the week ''1#0'' is wrong'),
               ('@reboot', 'not a known name'), (repeat('1,', 150) || '1 * * * *', 'the limit is 200'), ('0 0 30 2 *', 'never fires'),
               ('0 0 31 4,6,9,11 *', 'never fires'), ('0 0 31W 2 *', 'never fires'), (U&'\0661 * * * *', 'minute')) b(cron, message);
select t.refused('select millrace.cron_next(''@daily'', timezone => ' || quote_nullable(z.zone) || ')', '22023', 'time zone .* does not exist')
  from (values (null), (''), ('Mars/Olympus'), ('CEST-2'), ('+02'), (repeat('x', 1000))) z(zone);
select t.refused('select millrace.cron_next(''@daily'', null)', '22023', 'after must not be null');
select t.refused('select millrace.cron_next(''@daily'', ''infinity'')', '22023', 'after must be a finite time');

-- A schedule: its job, its view.
select millrace.schedule_at(t.at('30 seconds'), 'report', '*/10 * * * *', 'report', '{"a": 1}', 'cron', 'Europe/Berlin', 'last', true, 7);
select is((s.cron, s.timezone, s.kind, s.args, s.queue, s.priority, s.catch_up, s.active, s.next_at, s.last_at, s.last_job_id, s.last_error)::text,
          ('*/10 * * * *', 'Europe/Berlin', 'report', '{"a": 1}'::jsonb, 'cron', 7, 'last', true, t.at('10 minutes'), null::timestamptz, null::bigint, null::text)::text,
          'the view shows a schedule')
  from millrace.schedules s;
select is(t.duty(t.at('599 seconds'), 'schedule'), 0::bigint, 'nothing before its time');
select is(t.duty(t.at('600.5 seconds'), 'schedule'), 1::bigint, 'a job when it fires');
select is(t.duty(t.at('600.5 seconds'), 'schedule'), 0::bigint, 'once');
select is(array_length(t.claim('cron', t.at('601 seconds'), 'cron', 10), 1), 1, 'it can be claimed');
select is((g.kind, g.args, g.priority, g.source, g.meta ->> 'schedule', (g.meta ->> 'scheduled_for')::timestamptz)::text,
          ('report', '{"a": 1}'::jsonb, 7, 'cron', 'report', t.at('10 minutes'))::text, 'the job says where it comes from, and for when')
  from t.got g
 where g.tag = 'cron';
select is((s.next_at, s.last_at, s.last_job_id)::text, (t.at('20 minutes'), t.at('10 minutes'), (t.ids('cron'))[1])::text, 'and the view which it was')
  from millrace.schedules s;
select millrace.unschedule('report');

-- Downtime of a day and a half.
create function t.caught_up(p_mode text, p_cron text, p_now timestamptz)
returns text
language plpgsql
as $$
begin
  perform millrace.schedule_at(t.at('1 second'), p_mode, p_cron, 'k', '{}', p_mode, 'UTC', p_mode, true, 50);
  perform setval('millrace.schedule_hint', 0);      -- the clock of these tests goes back
  perform t.duty(p_now, 'schedule');
  perform t.duty(p_now, 'schedule');
  perform millrace.unschedule(p_mode);
  return coalesce((select string_agg((j.payload_meta ->> 'scheduled_for')::timestamptz - t.at('0') || '', ', ' order by j.pos)
                     from millrace.job j
                    where j.lane >> 12 = t.qid(p_mode)), '');
end $$;
select is(t.caught_up('none', '0 */6 * * *', t.at('36 hours 5 minutes')), '', 'none: what was missed is forgotten');
select is(t.caught_up('last', '0 */6 * * *', t.at('36 hours 5 minutes')), '1 day 12:00:00', 'last: one job for all that was missed');
select is(t.caught_up('all', '0 */6 * * *', t.at('36 hours 5 minutes')), '06:00:00, 12:00:00, 18:00:00, 1 day, 1 day 06:00:00, 1 day 12:00:00', 'all: a job for each, in order');
truncate millrace.job;
select is(t.caught_up('none', '0 */6 * * *', t.at('36 hours 20 seconds')), '1 day 12:00:00', 'none: one that is on time is enqueued');
select is(t.caught_up('last', '0 */6 * * *', t.at('36 hours 20 seconds')), '1 day 12:00:00', 'last: one that is on time is enough');
truncate millrace.job;
select is(t.caught_up('last', '*/10 * * * * *', t.at('36 hours 25 seconds')), '1 day 11:59:30, 1 day 11:59:40, 1 day 11:59:50, 1 day 12:00:00, 1 day 12:00:10, 1 day 12:00:20',
          'last: those of the last minute are on time, all of them');

-- A long time and many occurrences: in chunks, each once, in order.
select millrace.schedule_at(t.at('1 second'), 'storm', '* * * * * *', 'k', '{}', 'storm', 'UTC', 'all', true, 50);
select is(t.duty(t.at('40 minutes'), 'schedule'), 1000::bigint, 'a thousand in a pass');
select is(t.duty(t.at('40 minutes'), 'schedule') + t.duty(t.at('40 minutes'), 'schedule'), 1399::bigint, 'the rest in the next ones');
select is((select count(distinct j.payload_meta ->> 'scheduled_for') from millrace.job j where j.lane >> 12 = t.qid('storm')), 2399::bigint, 'each once');
select ok(not exists (select from (select (j.payload_meta ->> 'scheduled_for')::timestamptz as at, lag((j.payload_meta ->> 'scheduled_for')::timestamptz) over (order by j.pos) as before
                                     from millrace.job j where j.lane >> 12 = t.qid('storm')) o
                       where o.before >= o.at), 'in order');
select millrace.unschedule('storm');

-- A clock that jumps back enqueues nothing twice.
select millrace.schedule_at(t.at('1 day'), 'back', '0 * * * *', 'k', '{}', 'back', 'UTC', 'all', true, 50);
select is(t.duty(t.at('1 day 1 hour'), 'schedule'), 1::bigint, 'an hour');
select is(t.duty(t.at('1 day 1 minute'), 'schedule'), 0::bigint, 'the clock is set back: nothing');
select is(t.duty(t.at('1 day 1 hour 1 minute'), 'schedule'), 0::bigint, 'nor when it is that time again');
select is(t.duty(t.at('1 day 2 hours'), 'schedule'), 1::bigint, 'then it goes on');

-- Set again, disabled, enabled, run at once.
select millrace.schedule_at(t.at('2 days'), 'back', '0 * * * *', 'other', '{}', 'back', 'UTC', 'last', true, 50);
select is(s.next_at, t.at('1 day 3 hours'), 'set again with the same times it keeps its next occurrence') from millrace.schedules s where s.name = 'back';
select is(t.duty(t.at('2 days 5 minutes'), 'schedule'), 1::bigint, 'and catches up');
select millrace.schedule_at(t.at('2 days 1 hour 5 minutes'), 'back', '30 * * * *', 'other', '{}', 'back', 'UTC', 'last', true, 50);
select is(s.next_at, t.at('2 days 1 hour 30 minutes'), 'other times begin now') from millrace.schedules s where s.name = 'back';
select millrace.schedule_disable('back');
select is((s.active, s.next_at)::text, (false, null::timestamptz)::text, 'disabled it has no next occurrence') from millrace.schedules s where s.name = 'back';
select is(t.duty(t.at('3 days'), 'schedule'), 0::bigint, 'and enqueues nothing');
select is(pg_typeof(millrace.schedule_run('back'))::text, 'bigint', 'run at once, all the same');
select is((select count(*) from millrace.job j where j.lane >> 12 = t.qid('back')), 4::bigint, 'that is one job more');
select millrace.schedule_enable('back');
select ok(s.active and s.next_at > clock_timestamp() and s.next_at <= clock_timestamp() + interval '1 hour', 'enabled it goes on from now')
  from millrace.schedules s where s.name = 'back';
select millrace.schedule('idle', '@daily', 'k', active => false);
select is((s.active, s.next_at)::text, (false, null::timestamptz)::text, 'a schedule may be made without being active') from millrace.schedules s where s.name = 'idle';
select millrace.unschedule('back');
select millrace.unschedule('idle');
select is((select count(*) from millrace.schedules), 0::bigint, 'removed');

-- One that cannot be enqueued holds nobody back, and comes once it can.
select millrace.schedule_at(t.at('5 days'), 'large', '0 * * * *', 'k', to_jsonb(repeat('x', 200)), 'narrow', 'UTC', 'last', true, 50);
select millrace.set_queue('narrow', '{"max_args": 100}');
select millrace.schedule_at(t.at('5 days'), 'small', '0 * * * *', 'k', '{}', 'narrow', 'UTC', 'last', true, 50);
select is(t.duty(t.at('5 days 1 hour'), 'schedule'), 1::bigint, 'the one that can be enqueued is');
select is((s.last_error ~ 'args is \d+ bytes long', s.next_at, s.last_at)::text, (true, t.at('5 days 1 hour'), null::timestamptz)::text, 'the other says why not')
  from millrace.schedules s where s.name = 'large';
select is(t.duty(t.at('5 days 1 hour 30 seconds'), 'schedule'), 0::bigint, 'it is not tried all the time');
select millrace.set_queue('narrow', '{"max_args": 1000}');
select is(t.duty(t.at('5 days 1 hour 61 seconds'), 'schedule'), 1::bigint, 'but a minute later');
select is((s.last_error, s.last_at)::text, (null::text, t.at('5 days 1 hour'))::text, 'and nothing was lost') from millrace.schedules s where s.name = 'large';

-- Without a daemon a claim does it.
select millrace.schedule('alone', '* * * * * *', 'k', queue => 'alone');
update millrace.schedule set next_at = clock_timestamp() - interval '5 seconds', look_at = clock_timestamp() - interval '5 seconds' where schedule_name = 'alone';
select setval('millrace.upkeep_clock', 0), setval('millrace.schedule_sweep', 0);
select count(*) from millrace.claim('alone');
select ok(count(*) between 5 and 60, 'a claim enqueues what is due') from millrace.job j where j.lane >> 12 = t.qid('alone');
select millrace.unschedule('alone');

-- Bad input.
select t.all_rows() as before
\gset
select t.refused(r.sql, r.state, r.message)
  from (values ('select millrace.schedule(null, ''@daily'', ''k'')', '22023', 'schedule must not be null'),
               ('select millrace.schedule('''', ''@daily'', ''k'')', '22023', 'schedule must not be empty'),
               ('select millrace.schedule(repeat(''x'', 201), ''@daily'', ''k'')', '22023', 'schedule is 201 bytes long'),
               ('select millrace.schedule(''n'', ''0 25 * * *'', ''k'')', '22023', 'hour ''25'' is wrong'),
               ('select millrace.schedule(''n'', ''0 0 30 2 *'', ''k'')', '22023', 'never fires'),
               ('select millrace.schedule(''n'', ''@daily'', null)', '22023', 'kind must not be null'),
               ('select millrace.schedule(''n'', ''@daily'', ''k'', queue => '''')', '22023', 'queue must not be empty'),
               ('select millrace.schedule(''n'', ''@daily'', ''k'', null)', '22023', 'args must not be null'),
               ('select millrace.schedule(''n'', ''@daily'', ''k'', to_jsonb(repeat(''x'', 2000)), ''narrow'')', '22023', 'args is \d+ bytes long, the limit is 1000'),
               ('select millrace.schedule(''n'', ''@daily'', ''k'', priority => 100)', '22023', 'priority must be from 0 to 99'),
               ('select millrace.schedule(''n'', ''@daily'', ''k'', timezone => ''Nowhere'')', '22023', 'time zone ''Nowhere'' does not exist'),
               ('select millrace.schedule(''n'', ''@daily'', ''k'', catch_up => ''some'')', '22023', 'catch_up must be none, last or all'),
               ('select millrace.schedule(''n'', ''@daily'', ''k'', catch_up => null)', '22023', 'catch_up must be none, last or all, not null'),
               ('select millrace.schedule(''n'', ''@daily'', ''k'', active => null)', '22023', 'active must not be null'),
               ('select millrace.unschedule(''n'')', 'MR003', 'schedule ''n'' does not exist'),
               ('select millrace.unschedule(null)', 'MR003', 'schedule null does not exist'),
               ('select millrace.schedule_enable(''n'')', 'MR003', 'schedule ''n'' does not exist'),
               ('select millrace.schedule_disable(''n'')', 'MR003', 'schedule ''n'' does not exist'),
               ('select millrace.schedule_run(''n'')', 'MR003', 'schedule ''n'' does not exist')) r(sql, state, message);
select is(t.all_rows(), :'before', 'what is refused changes nothing');
select * from finish();
