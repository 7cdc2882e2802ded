-- SPDX-License-Identifier: PostgreSQL
-- A database as a shard: its number, its ids, what it refuses, and which keys it holds.
\ir lib/helpers.psql
select no_plan();

select is((select (s.set_id, s.number, s.status, s.numbers)::text from millrace.shard() s), '(,,,)', 'a database on its own is no shard');
select is((select s.read_only from millrace.shard() s), false, 'and can be written to');

-- ---- a number that was not used ----
select lives_ok($$ select millrace.shard_join(gen_random_uuid(), 2, '{2}'), millrace.shard_leave() $$, 'it joins and leaves before it has had a job');
select lives_ok($$ select millrace.shard_join(gen_random_uuid(), 0, '{0}') $$, 'then it can have another number');
select is(nextval('millrace.pos_seq') >> 48, 0::bigint, 'its ids are those of that one');
select is(nextval('millrace.batch_seq') >> 48, 0::bigint, 'those of its batches, too');
select lives_ok($$ select millrace.shard_leave(), setval('millrace.pos_seq', 1, false), setval('millrace.batch_seq', 1, false) $$, 'as if it had not been');

-- ---- what is refused ----
prepare bad_number as select millrace.shard_join(gen_random_uuid(), 32, '{32}');
select throws_ok('bad_number', '22023', 'the number of a shard is from 0 to 31, not 32', 'a number that is too large');
prepare null_number as select millrace.shard_join(gen_random_uuid(), null, '{0}');
select throws_ok('null_number', '22023', 'the number of a shard is from 0 to 31, not null', 'no number');
prepare bad_members as select millrace.shard_join(gen_random_uuid(), 3, '{0,1}');
select throws_ok('bad_members', '22023', 'numbers must be the numbers of the set, 3 among them', 'numbers without itself');
prepare twice as select millrace.shard_join(gen_random_uuid(), 1, '{1,0,1}');
select throws_ok('twice', '22023', 'numbers must be the numbers of the set, 1 among them', 'a member twice');
prepare no_set as select millrace.shard_join(null, 1, '{1}');
select throws_ok('no_set', '22023', 'set_id and joining must not be null', 'no set');
prepare no_shard as select millrace.shard_change('draining');
select throws_ok('no_shard', '22023', 'this database is not a shard', 'a status without a shard');
prepare no_leave as select millrace.shard_leave();
select throws_ok('no_leave', '22023', 'this database is not a shard', 'nothing to leave');

-- ---- ids ----
select lives_ok($$ select millrace.shard_join('00000000-0000-4000-8000-000000000001', 3, '{0,3}', true) $$, 'it joins as number 3');
select is((select (s.number, s.status, s.numbers)::text from millrace.shard() s), '(3,joining,"{0,3}")', 'and says so');
prepare again as select millrace.shard_join(gen_random_uuid(), 4, '{4}');
select throws_ok('again', '22023', 'this database is shard 3 of set 00000000-0000-4000-8000-000000000001 already', 'a database is in one set');
select is(millrace.enqueue('k'), (3::bigint << 48) + 1, 'its first id carries the number');
select is((select array_agg(i >> 48) from millrace.enqueue_many('k', array_fill('{}'::jsonb, array[100])) i), array_fill(3::bigint, array[100]), 'so do those of many, in packs');
select is((select array_agg(i >> 48) from millrace.enqueue_jobs('[{"kind": "k"}, {"kind": "k", "delay": "1 hour"}, {"kind": "k", "unique_key": "u"}]') i), array[3, 3, 3]::bigint[],
          'and of others');
select is(millrace.batch_begin(), (3::bigint << 48) + 1, 'its first batch, too');
create temp table got as select * from millrace.claim('default', 'w', 200);
do $$ begin loop insert into got select * from millrace.claim('default', 'w', 200); exit when not found; end loop; end $$;   -- one claim ends with its window
select is((select count(*) from got), 103::bigint, 'all that are due are claimed');
select is((select bool_and(g.id >> 48 = 3) from got g), true, 'by these ids');
select is(millrace.fail((select g.lease from got g where g.id = (3::bigint << 48) + 1), (3::bigint << 48) + 1, 'no', retry => false), 'dead', 'one fails for good');
select is((select sum(millrace.complete(l.lease)) from (select distinct g.lease from got g where g.id <> (3::bigint << 48) + 1) l), 102::bigint, 'the others complete');
select is(millrace.job((3::bigint << 48) + 1) ->> 'status', 'dead', 'its story is found');
select is(millrace.replay((3::bigint << 48) + 1), (3::bigint << 48) + 1, 'and it is replayed with its id');
select is((select count(*) from millrace.maintain() where duty = 'rotate'), 1::bigint, 'upkeep goes on');
select is(millrace.depth('default'), 1::bigint, 'the count is right');
select is(millrace.shard_open(), 2::bigint, 'two have not ended: the replayed one, and the delayed one');

-- ---- status ----
select lives_ok($$ select millrace.shard_change('draining') $$, 'it is drained');
select is((select (s.status, s.numbers)::text from millrace.shard() s), '(draining,"{0,3}")', 'the numbers stay');
select lives_ok($$ select millrace.shard_change(numbers => '{0,1,3}') $$, 'the set grows');
select is((select (s.status, s.numbers)::text from millrace.shard() s), '(draining,"{0,1,3}")', 'the status stays');
prepare bad_status as select millrace.shard_change('gone');
select throws_ok('bad_status', '22023', 'a shard cannot be ''gone''', 'another status');
prepare without_itself as select millrace.shard_change(numbers => '{0,1}');
select throws_ok('without_itself', '22023', 'numbers must be the numbers of the set, 3 among them', 'a set without itself');

-- ---- keys ----
select is(millrace.shard_holds('default'), false, 'no key is held by nobody');
select is(millrace.shard_holds('default', 'v'), false, 'a key that nobody has');
select is(millrace.shard_holds('default', 'u'), false, 'a key whose job has ended');
select is(millrace.shard_holds('nowhere', 'u', 'o'), false, 'a queue that is not there');
select isnt(millrace.enqueue('k', unique_key => 'w', queue => 'held'), null, 'a job with a key');
select is(millrace.shard_holds('held', 'w'), true, 'its key is held');
select is(millrace.shard_holds('default', 'w'), false, 'in its own queue only');
select is(millrace.shard_holds('held', null, 'o'), true, 'an ordering key is where the queue has jobs');
select is((select count(*) from millrace.claim('held', 'w')), 1::bigint, 'a worker takes it');
select is(millrace.shard_holds('held', 'w', 'o'), true, 'a job that runs has not ended');
select lives_ok($$ select millrace.complete(c.lease) from (select format('%s.%s.%s.%s', c.slot, c.lane, c.no, c.token) as lease from millrace.claim c where c.status = 'r') c $$, 'it ends');
select is(millrace.shard_holds('held', 'w', 'o'), false, 'and nothing is held');

-- ---- the end ----
select lives_ok($$ select millrace.shard_leave() $$, 'it leaves');
select is((select s.number from millrace.shard() s), null, 'and is on its own');
prepare has_had as select millrace.shard_join(gen_random_uuid(), 1, '{0,1}');
select throws_ok('has_had', '22023', 'this database has had jobs: it cannot become shard 1', 'ids that are those of shard 3');
prepare first_of_others as select millrace.shard_join(gen_random_uuid(), 0, '{0}');
select throws_ok('first_of_others', '22023', 'this database has had jobs: it cannot become shard 0', 'nor those of shard 0');
select lives_ok($$ select millrace.shard_join(gen_random_uuid(), 3, '{3}') $$, 'it can be what it was');
select is(millrace.enqueue('k') >> 48, 3::bigint, 'and goes on');
select is(millrace.batch_begin() >> 48, 3::bigint, 'so do batches');
select * from finish();
