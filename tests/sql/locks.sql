-- SPDX-License-Identifier: PostgreSQL
-- Locks: those with a lease and their fencing numbers, those of a session, names with the same hash, what is refused, what is swept.
\ir lib/helpers.psql
select no_plan();

create function t.take(p_at interval, p_name text, p_owner text, p_ttl interval = '10 seconds') returns bigint language sql as $$ select millrace.lock_lease_at(t.at(p_at), p_name, p_owner, p_ttl) $$;
create function t.give(p_at interval, p_name text, p_owner text) returns boolean language sql as $$ select millrace.unlock_lease_at(t.at(p_at), p_name, p_owner) $$;

-- ---- with a lease ----
select t.take('0', 'n', 'me') as first \gset
select ok(:first > 0, 'a lock that is free is taken');
select is(t.take('1 s', 'n', 'you'), null, 'another owner does not get it');
select is(t.take('5 s', 'n', 'me'), :first::bigint, 'its owner renews it, with the same number');
select is(t.take('12 s', 'n', 'you'), null, 'which counts from then on');
select is(t.take('15 s', 'n', 'you') > :first, true, 'after its lease another gets it, with a larger number');
select is(t.take('15 s', 'n', 'me'), null, 'and the first does not');
select is(t.give('15 s', 'n', 'me'), false, 'nor does it give back what it has lost');
select is(t.give('16 s', 'n', 'you'), true, 'its owner does');
select is(t.give('16 s', 'n', 'you'), false, 'once');
select t.take('16 s', 'n', 'me') as third \gset
select ok(:third > :first + 1, 'then it is free at once, and the number has risen again');
select is(t.take('26 s', 'n', 'me') > :third, true, 'an owner whose lease was over has a new number, though nobody had it in between');
select is(t.take('27 s', 'n', 'me', '1 second'), t.take('27 s', 'n', 'me', '1 second'), 'a lease can be made shorter');
select is(t.take('28 s', 'n', 'you') > :third, true, 'and is');
select is(t.give('0', 'never', 'me'), false, 'a lock that nobody has');
select is(t.take('0', repeat('%_''"\', 2048), 'me') > 0, true, 'a name of 10 KB, with quotes and wildcards');
select is(t.take('0', repeat('%_''"\', 2048), 'you'), null, 'is one name');
begin;
select t.take('30 minutes', 'rolled', 'me') > 0;
rollback;
select is(t.take('30 minutes', 'rolled', 'you') > 0, true, 'a rollback gives it back');
begin;
set local synchronous_commit = off;
select t.take('30 minutes', 'sync', 'me') > 0;
select is(current_setting('synchronous_commit'), 'local', 'a number is on disk before anybody has it');
commit;
-- A hundred holders, one after the other.
create table t.fence as
select g, t.take('2 hours'::interval + make_interval(secs => 10 * g), 'many', 'owner ' || g) as fence from generate_series(1, 100) g;
select is((select count(*) from (select f.fence > lag(f.fence, 1, 0::bigint) over (order by f.g) as rises from t.fence f) x where x.rises), 100::bigint, 'fencing numbers rise strictly');

-- ---- leaves go, leases that last stay ----
truncate millrace.lock_held;
select t.take('10 hours', 'long', 'me', '1 day') as long \gset
select count(t.take('10 hours', 'short ' || g, 'me', '1 minute')) from generate_series(1, 50) g;
select setval('millrace.clean_clock', 0) \g /dev/null
select t.duty(t.at('11 hours 59 minutes'), 'clean') \g /dev/null
select is((select count(*) from millrace.lock_held), 51::bigint, 'rows stay for an hour at least');
select t.duty(t.at('12 hours'), 'clean') \g /dev/null
select is((select count(*) from millrace.lock_held), 1::bigint, 'those that are over go');
select is(t.take('12 hours', 'long', 'you'), null, 'a lock with a long lease is held all the same');
select is(t.take('12 hours', 'long', 'me', '1 day'), :long::bigint, 'with its number');

-- ---- of a session ----
select lives_ok('select millrace.lock(''s'')', 'taken');
select is((select count(*) from pg_locks l where l.locktype = 'advisory' and l.objsubid = 1 and l.pid = pg_backend_pid()
                                             and (l.classid::bigint << 32 | l.objid::bigint) = millrace.lock_key('s')), 1::bigint, 'it is an advisory lock of 64 bits');
select is(millrace.try_lock('s'), true, 'the session that has it may take it again');
select is((millrace.unlock('s'), millrace.unlock('s'), millrace.unlock('s'))::text, '(t,t,f)', 'and gives it back as often');
begin;
select millrace.lock('kept');
rollback;
select is(millrace.unlock('kept'), true, 'a rollback does not give it back');
select is((select count(distinct millrace.lock_key('name ' || g)) from generate_series(1, 10000) g), 10000::bigint, 'ten thousand names, ten thousand locks');
select isnt(millrace.lock_key('a'), millrace.lock_key('A'), 'case counts');
select millrace.lock_guard('5 seconds');
select is((current_setting('tcp_keepalives_count'), current_setting('tcp_user_timeout') in ('5s', '0'), current_setting('idle_session_timeout', true))::text,
          case when current_setting('tcp_keepalives_count') = '3' then '(3,t,5s)' else format('(%s,t,5s)', current_setting('tcp_keepalives_count')) end, 'a session that ends when its client is silent');
reset idle_session_timeout;

-- ---- what is refused ----
select t.all_rows() as before \gset
select t.refused(format('select millrace.%s(%s)', f.name, replace(f.args, '$', a.arg)), '22023', a.message)
  from (values ('lock', '$'), ('try_lock', '$'), ('unlock', '$'), ('lock_lease', '$, ''me'', ''1 s'''), ('unlock_lease', '$, ''me''')) f(name, args)
 cross join (values ('null', '^name must not be null$'), ('''''', '^name must not be empty$'), ('repeat(''n'', 16385)', '^name is 16385 bytes long, the limit is 16384$')) a(arg, message);
select t.refused('select millrace.lock_lease(''n'', null, ''1 s'')', '22023', '^owner must not be null$');
select t.refused('select millrace.unlock_lease(''n'', '''')', '22023', '^owner must not be empty$');
select t.refused('select millrace.lock_lease(''n'', ''me'', null)', '22023', '^ttl must be longer than zero and at most 1000 years, not null$');
select t.refused('select millrace.lock_lease(''n'', ''me'', ''0'')', '22023', '^ttl must be longer than zero');
select t.refused('select millrace.lock_lease(''n'', ''me'', ''-1 s'')', '22023', '^ttl must be longer than zero');
select t.refused('select millrace.lock_guard(null)', '22023', '^silence must be from 1 second to 1 day, not null$');
select t.refused('select millrace.lock_guard(''1 ms'')', '22023', '^silence must be from 1 second to 1 day');
begin isolation level repeatable read;
select t.refused('select millrace.lock_lease(''n'', ''me'', ''1 s'')', '25000', '^lock_lease needs isolation level read committed');
select t.refused('select millrace.unlock_lease(''n'', ''me'')', '25000', '^unlock_lease needs isolation level read committed');
commit;
select is(t.all_rows(), :'before', 'nothing of it wrote anything');

-- ---- a copy that has lost its sequences ----
select t.take('20 hours', 'copied', 'me') as copied \gset
select millrace.cache_set_at(t.at('20 hours'), 'copied', '1', '1 day');
select setval('millrace.fence_seq', 1), setval('millrace.lock_no', 1), setval('millrace.cache_no', 1) \g /dev/null
update millrace.home set system_id = 1;
select millrace.after_migrate() \g /dev/null
select is(t.take('21 hours', 'copied', 'you') > :copied, true, 'numbers go on where they were');
select millrace.cache_set_at(t.at('20 hours'), 'copied', '2', '1 day');
select is(millrace.cache_get_at(t.at('20 hours'), 'copied'), '2', 'and what is set is found');
select * from finish();
