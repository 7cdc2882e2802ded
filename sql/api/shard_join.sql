-- SPDX-License-Identifier: PostgreSQL
-- Makes this database a shard: set_id is the set, number its own there (0 to 31), numbers the numbers of all including it. Ids of its jobs and batches begin at number << 48 from now on. One that has had
-- jobs can only be number 0, or what it was when they came: their ids would be taken for those of another shard. `millrace shard add` looks at all others and calls this.
-- Errors: 22023 bad argument, in a set already, or jobs that have other ids already; MR004.
create or replace function millrace.shard_join(set_id uuid, number int, numbers int[], joining boolean = false)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
declare
  v_place millrace.shard_place;
  v_last  bigint := millrace.hint('millrace.pos_seq');
  v_batch bigint := millrace.hint('millrace.batch_seq');
begin
  perform millrace.at_home();
  if set_id is null or joining is null then
    perform millrace.refuse('set_id and joining must not be null', 'Pass the set_id that millrace.shard() shows in the other databases of the set.');
  end if;
  perform millrace.shard_check(number, numbers);
  select p.* into v_place from millrace.shard_place p;
  if found then
    perform millrace.refuse(format('this database is shard %s of set %s already', v_place.shard_no, v_place.set_uuid),
                            'A database is in one set. millrace.shard_leave() takes it out, once it is empty.');
  end if;
  if v_last > 0 and v_last >> 48 <> number then
    perform millrace.refuse(format('this database has had jobs: it cannot become shard %s', number),
                            case
                              when v_last >> 48 > 0 then format('Their ids are those of shard %s, which it can be again. Others are new databases.', v_last >> 48)
                              else 'Their ids say nothing of a shard. It can be the first of a new set; further ones are new databases.'
                            end);
  end if;
  insert into millrace.shard_place (set_uuid, shard_no, shard_status, member_nos)
  values (set_id, number, case when joining then 'joining' else 'active' end, numbers);
  if v_last = 0 then
    perform setval('millrace.pos_seq', (number::bigint << 48) + 1, false);
  end if;
  if v_batch = 0 or v_batch >> 48 <> number then
    perform setval('millrace.batch_seq', (number::bigint << 48) + 1, false);
  end if;
end $$;
comment on function millrace.shard_join(uuid, int, int[], boolean) is
  'makes this database one of a set of shards';
