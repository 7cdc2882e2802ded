-- SPDX-License-Identifier: PostgreSQL
-- Rounds of fair queues: whose turn it is. A fair queue has two sequences, made with the setting:
--   fair_turn_<queue_id>  goes up with each claim: the turn;
--   fair_at_<queue_id>    in milliseconds since 1970: when its tenants were looked at, or a little later if that took long.
-- A sequence is no part of a transaction, so two claims have different turns, whenever they commit, and no row is hot.
--   1. A round is a list of the members that have jobs; the turn says which one is next, round and round. In as many turns as it has members each
--      has one.
--   2. A pass (fair_pass) looks at the lanes of all tenants with one statement, and appends a new round when others have jobs than before. The new
--      one begins with those whose turn would have come next, in the same order, and has the newcomers at its end. So a member waits for its turn at
--      most as long as two rounds, however often rounds are made.
--   3. A round that is too long costs a look at a lane without jobs, one that is too short makes a tenant wait for the next pass. Neither costs a job.
--   4. A pass is made once a second, by upkeep or by the slice of it that a claim does; and by a claim that finds nothing or begins the round anew, but
--      for no more than a twentieth of the time. Where tenants are few, a claim that finds nothing looks in any case: it sees every job that is committed.

-- Makes what a fair queue needs.
create or replace function millrace.fair_make(p_queue_id int)
returns void
language plpgsql
as $$
begin
  if to_regclass('millrace.fair_turn_' || p_queue_id) is null then
    execute format('create sequence millrace.fair_turn_%s as bigint minvalue 0 start 1', p_queue_id);
    execute format('comment on sequence millrace.fair_turn_%1$s is %2$L', p_queue_id, format('turns of the tenants of queue %s', p_queue_id));
    execute format('create sequence millrace.fair_at_%s as bigint minvalue 0', p_queue_id);
    execute format('comment on sequence millrace.fair_at_%1$s is %2$L', p_queue_id,
                   format('milliseconds since 1970: when the tenants of queue %s are looked at again', p_queue_id));
  end if;
end $$;

create or replace function millrace.fair_drop(p_queue_id int)
returns void
language plpgsql
as $$
begin
  if to_regclass('millrace.fair_turn_' || p_queue_id) is not null then
    delete from millrace.fair_round r where r.queue_id = p_queue_id;
    execute format('drop sequence millrace.fair_turn_%1$s, millrace.fair_at_%1$s', p_queue_id);
  end if;
end $$;

-- The leaf of a round.
create or replace function millrace.fair_slot(p_now timestamptz)
returns int
language sql
stable
as $$
  select (date_part('epoch', p_now)::bigint / 3600 % 4)::int
$$;

-- Looks at the tenants of all fair queues whose time it is. Returns how many queues that were.
create or replace function millrace.fair_passes(p_now timestamptz)
returns bigint
language plpgsql
as $$
declare
  v_id int;
  v_n  bigint := 0;
begin
  for v_id in
    select q.queue_id
      from millrace.queue q
     where q.has_tenants
  loop
    v_n := v_n + millrace.fair_pass(p_now, v_id, 900)::int;
  end loop;
  return v_n;
end $$;

-- Looks which members of a fair queue have jobs, if the last look is p_every milliseconds old and was short in comparison. Appends a round if
-- they are others than in the newest one, or that is in the leaf of another hour. True: it has looked. The lock ends with the look, not with the transaction
-- (see lane_count); the number is taken under it. p_every = 0: the caller has nothing else to do. A look of somebody else is waited for, and made again (its round
-- is not to be seen before it commits); and where tenants are few, or the hour has no round yet, it does not count how long ago the last one was.
create or replace function millrace.fair_pass(p_now timestamptz, p_queue_id int, p_every int)
returns boolean
language plpgsql
as $$
declare
  v_at    regclass := ('millrace.fair_at_' || p_queue_id)::regclass;
  v_begun timestamptz := clock_timestamp();
  v_last  millrace.fair_round;
  v_list  int[];
  v_base  bigint;
  v_no    bigint;
  v_done  boolean := false;
begin
  if millrace.epoch_ms(p_now) - millrace.hint(v_at) between -10000 and p_every - 1
     and (p_every > 0 or (millrace.fair_many(p_queue_id) and millrace.fair_begun(millrace.fair_slot(p_now), p_queue_id))) then
    return false;
  end if;
  begin
    if p_every = 0 then
      perform pg_advisory_xact_lock(1297219597, p_queue_id);
    end if;
    if p_every = 0 or pg_try_advisory_xact_lock(1297219597, p_queue_id) then
      perform setval(v_at, millrace.epoch_ms(p_now));
      select r.*
        into v_last
        from millrace.fair_round r
       where r.queue_id = p_queue_id
       order by r.no desc, r.chunk desc
       limit 1;
      v_base := millrace.hint(('millrace.fair_turn_' || p_queue_id)::regclass) + 1;
      v_list := millrace.fair_members(p_queue_id, v_last, v_base);
      if v_list is not null or v_last.slot is distinct from millrace.fair_slot(p_now) then
        v_no := nextval('millrace.fair_seq');
        v_list := coalesce(v_list, millrace.fair_list(v_last, v_base));
      end if;
      v_done := true;
      -- A look that took long is not repeated soon: the clock is set ahead.
      perform setval(v_at, millrace.epoch_ms(p_now) + least((date_part('epoch', clock_timestamp() - v_begun) * 20000)::bigint, 9000));
    end if;
    raise exception using errcode = 'MRLET';      -- to let go of the lock
  exception
    when sqlstate 'MRLET' then
      null;
  end;
  if v_no is not null then
    insert into millrace.fair_round (slot, queue_id, no, chunk, made_at, base_turn, member_n, members)
    select millrace.fair_slot(p_now), p_queue_id, v_no, c, p_now, v_base, cardinality(v_list), v_list[c * 400 + 1 : c * 400 + 400]
      from generate_series(0, greatest(cardinality(v_list) - 1, 0) / 400) c;
  end if;
  return v_done;
end $$;

-- Whether a look at all tenants costs much more than a claim.
create or replace function millrace.fair_many(p_queue_id int)
returns boolean
language sql
stable
as $$
  select exists (select from millrace.queue q where q.parent_id = p_queue_id offset 64)
$$;

-- Whether a fair queue has a round in the leaf of this hour.
create or replace function millrace.fair_begun(p_slot int, p_queue_id int)
returns boolean
language sql
stable
as $$
  select exists (select from millrace.fair_round r where r.slot = p_slot and r.queue_id = p_queue_id)
$$;

-- The place of a turn in a round, from 0 on; null where nobody is in it. A turn before its first, after a sequence was lost, has one, too.
create or replace function millrace.fair_place(p_turns bigint, p_members int)
returns int
language sql
immutable
as $$
  select ((p_turns % nullif(p_members, 0) + p_members) % nullif(p_members, 0))::int
$$;

-- The members of a round, from that on whose turn p_turn is.
create or replace function millrace.fair_list(p_round millrace.fair_round, p_turn bigint)
returns int[]
language plpgsql
as $$
declare
  v_list int[];
  v_next int;
begin
  if coalesce(p_round.member_n, 0) = 0 then
    return '{}';
  end if;
  v_list := array(select u.id
                    from millrace.fair_round r
                   cross join lateral unnest(r.members) with ordinality u(id, ord)
                   where r.slot = p_round.slot
                     and r.queue_id = p_round.queue_id
                     and r.no = p_round.no
                   order by r.chunk, u.ord);
  v_next := millrace.fair_place(p_turn - p_round.base_turn, p_round.member_n);
  return v_list[v_next + 1 :] || v_list[: v_next];
end $$;

-- The members of the round that follows p_round: those with jobs, the old ones in their order from that on whose turn p_turn is, then the new ones.
-- Null: they are the same.
create or replace function millrace.fair_members(p_queue_id int, p_round millrace.fair_round, p_turn bigint)
returns int[]
language plpgsql
as $$
declare
  v_old   int[] := millrace.fair_list(p_round, p_turn);
  v_ready int[];
  v_new   int[];
begin
  v_ready := millrace.lanes_ready(array(
    select distinct l.lane + p
      from millrace.family(p_queue_id) f
      join millrace.queue q on q.queue_id = f and (q.paused_at is null or q.parent_id is null)
      join millrace.lane l on l.lane >= f << 12 and l.lane < (f + 1) << 12
     cross join generate_series(0, q.parts_seen - 1) p), null);
  select coalesce(array_agg(m.id order by o.ord nulls last, m.id), '{}')
    into v_new
    from (select distinct r.lane >> 12 as id
            from unnest(v_ready) r(lane)) m
    left join unnest(v_old) with ordinality o(id, ord) on o.id = m.id;
  return case when v_new <> v_old then v_new end;
end $$;
