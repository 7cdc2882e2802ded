-- SPDX-License-Identifier: PostgreSQL
-- The cache: what is set and got, when it expires, keys of every sort, patterns, what is refused, sweeping.
\ir lib/helpers.psql
select no_plan();

create function t.set(p_at interval, p_key text, p_value jsonb, p_ttl interval = '1 minute') returns void language sql as $$ select millrace.cache_set_at(t.at(p_at), p_key, p_value, p_ttl) $$;
create function t.get(p_at interval, p_key text) returns jsonb language sql as $$ select millrace.cache_get_at(t.at(p_at), p_key) $$;

-- ---- values and their time ----
select is(t.get('0', 'a'), null, 'a key that was never set');
select t.set('0', 'a', '{"n": 1}');
select is(t.get('59.999 s', 'a'), '{"n": 1}', 'a value until its time');
select is(t.get('60 s', 'a'), null, 'is over at its time to the microsecond');
select t.set('0', 'b', '1', '1 hour');
select t.set('1 s', 'b', '2', '1 second');
select is(t.get('1 s', 'b'), '2', 'set again: the new value');
select is(t.get('2 s', 'b'), null, 'and the new time: the older value does not come back');
select t.set('0', 'null', 'null');
select is(t.get('0', 'null'), 'null'::jsonb, 'null in JSON is a value');
select t.set('0', 'large', to_jsonb(repeat(md5('x'), 30000)));
select is(length(t.get('0', 'large') #>> '{}'), 960000, 'a value of a megabyte');
select is(millrace.cache_delete_at(t.at('2 s'), 'b'), false, 'what has expired is not deleted again');
select is(millrace.cache_delete_at(t.at('0'), 'a'), true, 'delete says that there was a value');
select is(t.get('0', 'a'), null, 'which is gone');
select is(millrace.cache_delete_at(t.at('0'), 'a'), false, 'the second time there is none');
begin;
select t.set('0', 'rolled', '1');
select is(t.get('0', 'rolled'), '1', 'a transaction sees what it set');
rollback;
select is(t.get('0', 'rolled'), null, 'a rollback undoes it');
select millrace.cache_set('now', '1', '1 hour');
select is(millrace.cache_get('now'), '1', 'by the clock of the server');
-- a time of its own: one in which the value is both read and gone would be over too soon on a slow machine
select millrace.cache_set('now', '1', '1 millisecond');
select pg_sleep(0.01);
select is(millrace.cache_get('now'), null, 'too');

-- ---- keys of every sort ----
create table t.odd (k text);
insert into t.odd
values ('%'), ('_'), ('\'), ('a%b'), ('a_b'), ('a\b'), ('a\%b'), (''''), ('"'), ('a''b"c'), (' '), (' a '), (E'line\nfeed\ttab'), ('ключ'), ('鍵🔑'), ('A'), ('NULL'), ('{}'), (repeat('k', 10240)),
       (repeat('k', 10239) || 'l'), (repeat('é', 5120)), (repeat('x', 16384));
select t.set('0', o.k, to_jsonb(md5(o.k))) from t.odd o;
select is(t.get('1 s', o.k), to_jsonb(md5(o.k)), 'key ' || left(quote_literal(o.k), 20)) from t.odd o;
select is((select count(*) from millrace.cache_get_many_at(t.at('1 s'), array(select o.k from t.odd o)) m where m.value = to_jsonb(md5(m.key))), (select count(*) from t.odd), 'all of them at once');
select is(array(select m.key from millrace.cache_get_many_at(t.at('1 s'), array['b''', '_', 'none', '%', '_']) m), array['_', '%'], 'in the order asked for, each once, without those that are not there');
select is((select count(*) from millrace.cache_get_many_at(t.at('1 s'), '{}')), 0::bigint, 'none is asked for');
select is(t.get('1 s', 'a'), null, 'case counts');

-- ---- patterns ----
create function t.like_of(p_pattern text) returns bigint language plpgsql as $$
declare
  v_n bigint;
begin
  v_n := millrace.cache_delete_like_at(t.at('1 s'), p_pattern);
  perform t.set('0', o.k, to_jsonb(md5(o.k))) from t.odd o;
  return v_n;
end $$;
select is(t.like_of('%'), (select count(*) + 3 from t.odd), '% is every key');
select is(t.like_of('a_b'), 3::bigint, '_ is one character, itself, % and \ too');
select is(t.like_of('a\_b'), 1::bigint, '\_ is itself');
select is(t.like_of('a\%b'), 1::bigint, '\% is itself');
select is(t.like_of('a\\b'), 1::bigint, '\\ is one backslash');
select is(t.like_of('a\\\%b'), 1::bigint, '\\\% is a backslash and a percent sign');
select is(t.like_of('a%b'), 4::bigint, '% between two');
select is(t.like_of('\%'), 1::bigint, 'one percent sign alone');
select is(t.like_of('%''%'), 2::bigint, 'quotes stand for themselves');
select is(t.like_of('kkk%'), 2::bigint, 'long keys');
select is(t.like_of(repeat('k', 10240)), 1::bigint, 'a pattern of ten kilobytes');
select is(t.like_of('nothing%'), 0::bigint, 'no key');
select is(millrace.cache_delete_like_at(t.at('2 minutes'), '%'), 0::bigint, 'what has expired is not counted');

-- ---- what is refused ----
select t.all_rows() as before \gset
select t.refused('select millrace.cache_set(''k'', ''1'', null)', '22023', '^ttl must be longer than zero and at most 1000 years, not null$');
select t.refused('select millrace.cache_set(''k'', ''1'', ''0'')', '22023', '^ttl must be longer than zero');
select t.refused('select millrace.cache_set(''k'', ''1'', ''-1 second'')', '22023', '^ttl must be longer than zero');
select t.refused('select millrace.cache_set(''k'', ''1'', ''1000 years 1 day'')', '22023', '^ttl must be longer than zero and at most 1000 years');
select t.refused('select millrace.cache_set(null, ''1'', ''1 s'')', '22023', '^key must not be null$');
select t.refused('select millrace.cache_set('''', ''1'', ''1 s'')', '22023', '^key must not be empty$');
select t.refused('select millrace.cache_set(repeat(''k'', 16385), ''1'', ''1 s'')', '22023', '^key is 16385 bytes long, the limit is 16384$');
select t.refused('select millrace.cache_set(repeat(''é'', 8193), ''1'', ''1 s'')', '22023', '^key is 16386 bytes long');
select t.refused('select millrace.cache_set(''k'', null, ''1 s'')', '22023', '^value must not be null$');
select t.refused('select millrace.cache_set(''k'', to_jsonb(repeat(''x'', 17000000)), ''1 s'')', '22023', '^value is [0-9]+ bytes long, the limit is 16777216$');
select t.refused('select millrace.cache_get(null)', '22023', '^key must not be null$');
select t.refused('select millrace.cache_get('''')', '22023', '^key must not be empty$');
select t.refused('select millrace.cache_get_many(null)', '22023', '^keys must not be null$');
select t.refused('select millrace.cache_get_many(array[''a'', null])', '22023', '^key must not be null$');
select t.refused('select millrace.cache_get_many(array_fill(''a''::text, array[10001]))', '22023', '^10001 keys at once, the limit is 10000$');
select t.refused('select millrace.cache_delete(null)', '22023', '^key must not be null$');
select t.refused('select millrace.cache_delete_like(null)', '22023', '^pattern must not be null$');
select t.refused('select millrace.cache_delete_like('''')', '22023', '^pattern must not be empty$');
select t.refused('select millrace.cache_delete_like(''a\'')', '22023', '^pattern ends with a lone backslash$');
select t.refused('select millrace.cache_delete_like(''a\\\'')', '22023', '^pattern ends with a lone backslash$');
select t.refused('select millrace.set_cache(null)', '22023', '^settings must be an object, not null$');
select t.refused('select millrace.set_cache(''[]'')', '22023', '^settings must be an object, not array$');
select t.refused('select millrace.set_cache(''{"logged": true}'')', '22023', '^the cache has no setting ''logged''$');
select t.refused('select millrace.set_cache(''{"unlogged": 1}'')', '22023', '^unlogged must be true or false, not 1$');
select is(t.all_rows(), :'before', 'nothing of it wrote anything');
select is(millrace.cache_delete_like('none\\'), 0::bigint, 'two backslashes at the end are one');

-- ---- sweeping ----
truncate millrace.cache_0, millrace.cache_1;
select setval('millrace.cache_turn', 0) \g /dev/null
select t.set('1 hour', 'k' || g, to_jsonb(g), case when g <= 3000 then interval '1 day' else interval '1 minute' end) from generate_series(1, 12000) g;
select t.set('1 hour', 'k1', '"again"', '1 day');
select millrace.cache_delete_at(t.at('1 hour'), 'k2');
select is((millrace.cache_stats_at(t.at('1 hour'))).total, 11999::bigint, 'keys are counted, not entries');
select is((s.valid, s.expired, s.exact)::text, (2999::bigint, 9000::bigint, true)::text, 'and what has expired') from millrace.cache_stats_at(t.at('2 hours')) s;
create function t.sweep(p_at interval, out swept bigint, out turn bigint, out rows_0 bigint, out rows_1 bigint) language plpgsql as $$
begin
  swept := millrace.cache_sweep(t.at(p_at), 5000);
  turn := millrace.hint('millrace.cache_turn');
  rows_0 := (select count(*) from millrace.cache_0);
  rows_1 := (select count(*) from millrace.cache_1);
end $$;
select is((s.swept, s.turn, s.rows_0, s.rows_1)::text, '(0,0,12002,0)', 'while less than half is old nothing happens') from t.sweep('1 hour') s;
select is((s.swept, s.turn, s.rows_0, s.rows_1)::text, '(0,1,12002,0)', 'otherwise the leaves change places') from t.sweep('2 hours') s;
select t.set('2 hours', 'k3', '"new"', '1 day');
select is(millrace.cache_clean(), 0::bigint, 'nothing is truncated before everything was copied');
select is((s.turn, s.rows_0)::text, '(1,12002)', 'five thousand keys a round') from t.sweep('2 hours') s;
select ok((select count(*) between 1000 and 1600 from millrace.cache_1), 'of which those that last are copied');
select is((t.get('2 hours', 'k1'), t.get('2 hours', 'k2'), t.get('2 hours', 'k3'), t.get('2 hours', 'k4'), t.get('2 hours', 'k5000'))::text, '("""again""",,"""new""",4,)', 'meanwhile every key says what it did');
select is((s.total, s.valid)::text, (11999::bigint, 2999::bigint)::text, 'and is counted once') from millrace.cache_stats_at(t.at('2 hours')) s;
select t.sweep('2 hours'), t.sweep('2 hours'), t.sweep('2 hours') \g /dev/null
select is((select count(*) from millrace.cache_1), 2999::bigint, 'in the end all of them');
select is(millrace.cache_clean(), 1::bigint, 'then the leaf is truncated');
select is((select count(*) from millrace.cache_0) + (select count(*) from millrace.cache_pass), 0::bigint, 'with what was noted about it');
select is((select count(*) from generate_series(1, 12000) g where t.get('2 hours', 'k' || g) is not null), 2999::bigint, 'nothing was lost');
select is((t.get('2 hours', 'k1'), t.get('2 hours', 'k2'), t.get('2 hours', 'k3'))::text, '("""again""",,"""new""")', 'or came back');
select is((s.total, s.valid, s.expired)::text, '(2999,2999,0)', 'what had expired is gone') from millrace.cache_stats_at(t.at('2 hours')) s;
-- A value that took its number first and was written last, into the other leaf, does not come back when what hides it has expired.
insert into millrace.cache_1 (key_id, entry_no, good_until, key_text) select millrace.cache_key('late'), 2000000, '-infinity', 'late';
select t.set('2 hours', 'x' || g, '1', '1 second') from generate_series(1, 4000) g;
select setval('millrace.cache_clock', 0), setval('millrace.cache_turned', 0) \g /dev/null
select is((t.sweep('3 hours')).turn, 2::bigint, 'again');
insert into millrace.cache_0 (key_id, entry_no, good_until, key_text, entry_value) select millrace.cache_key('late'), 1999999, t.at('1 day'), 'late', '"late"';
select t.sweep('3 hours'), t.sweep('3 hours') \g /dev/null
select is(millrace.cache_clean(), 1::bigint, 'the other leaf');
select is(t.get('3 hours', 'late'), null, 'what was deleted stays deleted');
-- By maintain, on its own.
select t.set('3 hours', 'y' || g, '1', '1 second') from generate_series(1, 9000) g;
select setval('millrace.cache_clock', 0), setval('millrace.cache_turned', 0), setval('millrace.clean_clock', 0) \g /dev/null
select t.duty(t.at('4 hours'), 'cache') + t.duty(t.at('4 hours 1 second'), 'cache') + t.duty(t.at('4 hours 2 seconds'), 'cache') + t.duty(t.at('4 hours 3 seconds'), 'cache') as gone \gset
select is(:gone::bigint, 9001::bigint, 'maintain sweeps, and says how many keys went');
select t.duty(t.at('4 hours 11 seconds'), 'clean') as n \gset
select is((s.total, s.valid)::text, '(2999,2999)', 'those that last are there') from millrace.cache_stats_at(t.at('4 hours')) s;
select ok(least(pg_relation_size('millrace.cache_0'), pg_relation_size('millrace.cache_1')) = 0, 'and the disk is given back');

-- ---- unlogged ----
select millrace.set_cache('{"unlogged": true}');
select is((select string_agg(c.relpersistence::text, '') from pg_class c where c.oid in ('millrace.cache_0'::regclass, 'millrace.cache_1'::regclass)), 'uu', 'unlogged');
select is(t.get('4 hours', 'k1'), '"again"', 'nothing is lost by that');
select millrace.set_cache('{"unlogged": false}');
select is((select string_agg(c.relpersistence::text, '') from pg_class c where c.oid in ('millrace.cache_0'::regclass, 'millrace.cache_1'::regclass)), 'pp', 'and back');
-- ---- a large one is estimated ----
truncate millrace.cache_0, millrace.cache_1;
select millrace.cache_set_at(t.at('4 hours'), 'large' || i, to_jsonb(repeat('x', 300)), case when i % 4 = 0 then interval '1 minute' else interval '1 hour' end) from generate_series(1, 40000) i \g /dev/null
select is((s.exact, s.valid + s.expired between 38000 and 42000, s.expired between 8000 and 12000)::text, '(f,t,t)', 'about what is there: ' || s)
  from millrace.cache_stats_at(t.at('4 hours 2 minutes')) s;
select * from finish();
