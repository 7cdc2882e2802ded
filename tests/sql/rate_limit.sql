-- SPDX-License-Identifier: PostgreSQL
-- The rate limiter: a sliding window, costs, parameters that change, what is refused, what is swept.
\ir lib/helpers.psql
select no_plan();

create function t.rate(p_at interval, p_key text, p_max int, p_per interval = '1 minute', p_cost int = 1) returns text language sql as $$
  select concat_ws(' ', case when r.allowed then 'allowed' else 'refused' end, r.remaining, extract(epoch from r.resets_at - t.at('0'))::numeric)
    from millrace.rate_limit_at(t.at(p_at), p_key, p_max, p_per, p_cost) r
$$;

-- ---- a sliding window ----
select is(t.rate('0', 'a', 3), 'allowed 2 60.000000', 'the first of three a minute; the oldest leaves after a minute');
select is(t.rate('10 s', 'a', 3), 'allowed 1 60.000000', 'the second');
select is(t.rate('50 s', 'a', 3), 'allowed 0 60.000000', 'the third');
select is(t.rate('59.999999 s', 'a', 3), 'refused 0 60.000000', 'no fourth; and when there is room again');
select is(t.rate('60 s', 'a', 3), 'allowed 0 70.000000', 'when the first has left the window');
select is(t.rate('60 s', 'a', 3), 'refused 0 70.000000', 'one leaves at a time: no burst at the edge of a minute');
select is(t.rate('75 s', 'a', 3), 'allowed 0 110.000000', 'the next');
select is(t.rate('75 s', 'b', 3), 'allowed 2 135.000000', 'another key is another limit');
select is(t.rate('10 minutes', 'a', 3), 'allowed 2 660.000000', 'after a while all of it');
-- Any window of a minute, over an hour of calls at random.
create table t.hit as
select x.at from (select t.at('1 day') + make_interval(secs => 3600 * random()) as at from generate_series(1, 3000)) x order by x.at;
create table t.let as
select h.at, (millrace.rate_limit_at(h.at, 'random', 20, '1 minute', 1)).allowed from t.hit h order by h.at;
select is((select max(n) from (select count(*) over (order by l.at range between '59.999999 seconds' preceding and current row) as n from t.let l where l.allowed) w), 20::bigint, 'in no window of a minute are more allowed');
select is((select count(*) from t.let l where not l.allowed and (select count(*) from t.let o where o.allowed and o.at > l.at - interval '1 minute' and o.at <= l.at) < 20), 0::bigint, 'and none is refused for which there was room');

-- ---- costs ----
select is(t.rate('2 days', 'c', 10, '1 minute', 7), 'allowed 3 172860.000000', 'a cost');
select is(t.rate('2 days 1 s', 'c', 10, '1 minute', 4), 'refused 3 172860.000000', 'more than is left');
select is(t.rate('2 days 1 s', 'c', 10, '1 minute', 3), 'allowed 0 172860.000000', 'just what is left');
select is(t.rate('2 days 2 s', 'c', 10, '1 minute', 8), 'refused 0 172861.000000', 'a large one waits for the second to leave');
select is(t.rate('2 days 2 s', 'c', 10, '1 minute', 11), 'refused 0', 'one over the limit is never allowed');
select is(t.rate('2 days 2 s', 'c', 10, '1 minute', 0), 'refused 0 172860.000000', 'cost 0 looks');
select is(t.rate('2 days 60 s', 'c', 10, '1 minute', 0), 'allowed 7 172861.000000', 'and spends nothing');
select is(t.rate('2 days 60 s', 'c', 10, '1 minute', 7), 'allowed 0 172861.000000', 'all of it is still there');
select is(t.rate('2 days', 'nothing', 0), 'refused 0', 'a limit of none allows none');
select is(t.rate('2 days', 'huge', 2147483647, '1 minute', 2147483647), 'allowed 0 172860.000000', 'the largest numbers');
select is(t.rate('2 days', 'huge', 2147483647, '1 minute', 2147483647), 'refused 0 172860.000000', 'do not overflow');

-- ---- parameters that change ----
select count(t.rate('3 days', 'd', 10)) from generate_series(1, 6);
select is(t.rate('3 days 1 s', 'd', 5), 'refused 0 259260.000000', 'a lower limit counts what was spent under the higher one');
select is(t.rate('3 days 1 s', 'd', 7), 'allowed 0 259260.000000', 'a higher one, too');
select is(t.rate('3 days 30 s', 'd', 8, '10 seconds'), 'allowed 7 259240.000000', 'a shorter period sees less');
select is(t.rate('3 days 31 s', 'd', 8, '1 hour'), 'refused 0 262800.000000', 'a longer one up to an hour sees it all');
select is(t.rate('3 days 31 s', 'd', 8, '2 hours'), 'allowed 7 266431.000000', 'periods over an hour are counted apart');
select is(t.rate('3 days 23 hours', 'd', 8, '1 day'), 'allowed 6 345631.000000', 'up to a day');
select is(t.rate('3 days 23 hours', 'd', 8, '31 days'), 'allowed 7 3020400.000000', 'and up to 31 days');

-- ---- a clock that goes back ----
select is(t.rate('4 days 10 s', 'e', 2), 'allowed 1 345670.000000', 'spent');
select is(t.rate('4 days 5 s', 'e', 2), 'allowed 0 345670.000000', 'five seconds back: it still counts');
select is(t.rate('4 days 5 s', 'e', 2), 'refused 0 345670.000000', 'exactly');
select is(t.rate('3 days', 'e', 2), 'allowed 1 259260.000000', 'far back: what lies ahead is forgotten, or the key would stand until then');

-- ---- nothing is written by a call that is refused; a rollback gives back ----
select t.all_rows() as before \gset
select count(t.rate('4 days', 'e2', 0)) from generate_series(1, 100);
begin;
select is(t.rate('4 days', 'back', 1), 'allowed 0 345660.000000', 'spent');
select is(t.rate('4 days', 'back', 1), 'refused 0 345660.000000', 'in a transaction');
rollback;
select is(t.all_rows(), :'before', 'no trace of either');
select is(t.rate('4 days', 'back', 1), 'allowed 0 345660.000000', 'a rollback gives back');
begin;
select millrace.rate_limit('denied', 0, '1 minute') \g /dev/null
select is(pg_current_xact_id_if_assigned(), null, 'a call that is refused has no transaction id');
commit;

-- ---- bad input ----
select t.all_rows() as before \gset
select t.refused('select millrace.rate_limit(null, 1, ''1 s'')', '22023', '^key must not be null$');
select t.refused('select millrace.rate_limit('''', 1, ''1 s'')', '22023', '^key must not be empty$');
select t.refused('select millrace.rate_limit(repeat(''k'', 16385), 1, ''1 s'')', '22023', '^key is 16385 bytes long');
select t.refused('select millrace.rate_limit(''k'', null, ''1 s'')', '22023', '^max_events must be from 0 to 2147483647, not null$');
select t.refused('select millrace.rate_limit(''k'', -1, ''1 s'')', '22023', '^max_events must be from 0 to 2147483647, not -1$');
select t.refused('select millrace.rate_limit(''k'', 1, null)', '22023', '^per must be longer than zero and at most 31 days, not null$');
select t.refused('select millrace.rate_limit(''k'', 1, ''0'')', '22023', '^per must be longer than zero');
select t.refused('select millrace.rate_limit(''k'', 1, ''-1 s'')', '22023', '^per must be longer than zero');
select t.refused('select millrace.rate_limit(''k'', 1, ''32 days'')', '22023', '^per must be longer than zero and at most 31 days');
select t.refused('select millrace.rate_limit(''k'', 1, ''1 s'', null)', '22023', '^cost must be from 0 to 2147483647, not null$');
select t.refused('select millrace.rate_limit(''k'', 1, ''1 s'', -1)', '22023', '^cost must be from 0 to 2147483647, not -1$');
begin isolation level repeatable read;
select t.refused('select millrace.rate_limit(''k'', 1, ''1 s'')', '25000', '^rate_limit needs isolation level read committed');
commit;
select is(t.all_rows(), :'before', 'nothing of it wrote anything');
select is((r.allowed, r.remaining)::text, '(t,0)', 'a key of 10 KB, with quotes and wildcards') from millrace.rate_limit(repeat('%_''"\', 2048), 1, '1 hour') r;
select is((r.allowed, r.remaining)::text, '(f,0)', 'is one key') from millrace.rate_limit(repeat('%_''"\', 2048), 1, '1 hour') r;

-- ---- leaves are truncated when no period can look into them any more ----
truncate millrace.spent_hour;
select count(t.rate('20 days', 'k' || g, 5)) from generate_series(1, 3000) g;
select setval('millrace.clean_clock', 0) \g /dev/null
select t.duty(t.at('20 days 1 hour 59 minutes'), 'clean') \g /dev/null
select is((select count(*) from millrace.spent_hour), 3000::bigint, 'not before');
select t.duty(t.at('20 days 2 hours 1 minute'), 'clean') \g /dev/null
select is((select count(*) from millrace.spent_hour), 0::bigint, 'but then');
select * from finish();
