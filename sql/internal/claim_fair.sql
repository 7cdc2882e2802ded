-- SPDX-License-Identifier: PostgreSQL
-- Takes jobs of a fair queue, for claim_take: of the member of its round whose turn it is. One that has nothing, or that another claimer is at, is passed
-- over for the next. Where two have had nothing the round is read ahead (fair_ahead); where that finds none either, tenants are looked at
-- anew, unless they are many and that was done a moment ago. So a claim looks at a limited number of lanes, however many tenants there are.
-- Lock order: lanes (class 7) are only tried; one is waited for only if it is all there is, and no other is in hand.
create or replace function millrace.claim_fair(p_now timestamptz, p_queue_id int, p_worker text, p_max_jobs int, p_lease_for interval,
                                               p_with_state boolean, p_part int)
returns millrace.taken
language plpgsql
as $$
declare
  v_next  record;
  v_taken millrace.taken;
  v_held  boolean := false;
  v_busy  int;
  v_ahead boolean := false;
  v_anew  boolean := false;
begin
  for i in 1..12 loop
    v_next := millrace.fair_next(p_now, p_queue_id, v_ahead);
    if v_next.id is null then
      exit when v_anew or not millrace.fair_pass(p_now, p_queue_id, 0);
      v_anew := true;
      v_ahead := false;
      continue;
    end if;
    if v_next.place = 0 then
      perform millrace.fair_pass(p_now, p_queue_id, 20);      -- a new cycle: whoever has come since is in the next
    end if;
    v_ahead := i > 1;
    continue when v_next.closed;
    if not v_next.single then
      v_taken := millrace.claim_search(p_now, v_next.id, p_worker, p_max_jobs, coalesce(p_lease_for, v_next.lease), p_lease_for is not null,
                                       p_with_state, p_part, v_held or v_next.round_n > 1);
      v_held := true;
    elsif not pg_try_advisory_xact_lock(1297219591, v_next.base) then
      v_busy := coalesce(v_busy, v_next.id);
    else
      v_taken := millrace.fair_take(p_now, v_next.base, p_worker, p_max_jobs, coalesce(p_lease_for, v_next.lease), p_lease_for is not null,
                                    p_with_state);
      v_held := true;
    end if;
    if v_taken.n > 0 then
      return v_taken;
    end if;
  end loop;
  if v_busy is not null and not v_held then
    return millrace.claim_search(p_now, v_busy, p_worker, p_max_jobs, coalesce(p_lease_for, (select q.lease_time from millrace.queue q where q.queue_id = v_busy)),
                                 p_lease_for is not null, p_with_state, p_part, false);
  end if;
  return null;
end $$;

-- Takes jobs of a lane whose lock the caller has. One without jobs gets a tick, so that it is known to have none.
create or replace function millrace.fair_take(p_now timestamptz, p_lane int, p_worker text, p_max_jobs int, p_lease interval, p_own_lease boolean,
                                              p_with_state boolean)
returns millrace.taken
language plpgsql
as $$
declare
  v_taken millrace.taken;
begin
  if p_max_jobs = 1 and pg_current_xact_id_if_assigned() is null then
    v_taken := millrace.lane_take_one(p_now, pg_sequence_last_value('millrace.seg_seq'::regclass)::int, p_lane, 1, p_worker, p_lease, p_own_lease);
  end if;
  if v_taken.n is null then
    v_taken := millrace.lane_take(p_now, p_lane, p_max_jobs, 'r', p_worker, p_lease, p_own_lease, p_with_state);
    if v_taken.n is null then
      perform millrace.lane_take(p_now, p_lane, 1, 't', null, null, false, false);
    end if;
  end if;
  return v_taken;
end $$;

-- The member of a fair queue whose turn it is; null where the round has none. p_ahead: the next one that may have jobs, of so many chunks of the
-- round; turns before it are passed over for everybody.
create or replace function millrace.fair_next(p_now timestamptz, p_queue_id int, p_ahead boolean, out id int, out round_n int, out place int, out closed boolean,
                                              out single boolean, out base int, out lease interval)
language plpgsql
as $$
declare
  v_turn regclass := ('millrace.fair_turn_' || p_queue_id)::regclass;
  v_slot int := millrace.fair_slot(p_now);
begin
  if p_ahead then
    id := millrace.fair_ahead(v_slot, p_queue_id, v_turn);
    if id is null then
      return;
    end if;
  end if;
  select coalesce(id, m.member), h.member_n, p.place
    into id, round_n, place
    from (select r.no, r.member_n, r.base_turn
            from millrace.fair_round r
           where r.slot = v_slot
             and r.queue_id = p_queue_id
           order by r.no desc, r.chunk desc
           limit 1) h
   cross join lateral (select millrace.fair_place(nextval(v_turn) - h.base_turn, h.member_n) as place
                       offset 0) p
    left join lateral (select r.members[p.place % 400 + 1] as member
                         from millrace.fair_round r
                        where r.slot = v_slot
                          and r.queue_id = p_queue_id
                          and r.no = h.no
                          and r.chunk = p.place / 400
                        limit 1) m on true;      -- a plain join, planned on an empty table, reads every round of the hour
  if id is null then
    return;
  end if;
  select (q.paused_at is not null and q.parent_id is not null) or l.base is null, l.base = l.last and q.parts_seen = 1, l.base, q.lease_time
    into closed, single, base, lease
    from millrace.queue q
   cross join lateral (select min(l.lane) as base, max(l.lane) as last
                         from millrace.lane l
                        where l.lane >= q.queue_id << 12
                          and l.lane < (q.queue_id + 1) << 12) l
   where q.queue_id = id;
  closed := coalesce(closed, true);
end $$;

-- The next member that may have jobs, of the rest of the chunk in which the turn is and of the next three; the turn is set to the one before it, or
-- behind all that were looked at.
create or replace function millrace.fair_ahead(p_slot int, p_queue_id int, p_turn regclass)
returns int
language plpgsql
as $$
declare
  c_chunks constant int := 3;
  v_turn  bigint := millrace.hint(p_turn) + 1;
  v_round millrace.fair_round;
  v_place int;
  v_lane  int;
  v_ids   int[];
  v_seen  int := 0;
begin
  for i in 1..c_chunks + 1 loop
    select r.*
      into v_round
      from millrace.fair_round r
     where r.slot = p_slot
       and r.queue_id = p_queue_id
     order by r.no desc, r.chunk desc
     limit 1;
    exit when coalesce(v_round.member_n, 0) = 0;
    v_place := millrace.fair_place(v_turn - v_round.base_turn, v_round.member_n);
    if v_round.chunk <> v_place / 400 then
      select r.*
        into v_round
        from millrace.fair_round r
       where r.slot = p_slot
         and r.queue_id = p_queue_id
         and r.no = v_round.no
         and r.chunk = v_place / 400;
      exit when not found;
    end if;
    v_ids := v_round.members[v_place % 400 + 1 :];
    v_lane := (millrace.lanes_ready(array(
      select l.lane
        from unnest(v_ids) with ordinality m(id, ord)
       cross join lateral (select distinct l.lane + p as lane
                             from millrace.queue q
                             join millrace.lane l on l.lane >= q.queue_id << 12 and l.lane < (q.queue_id + 1) << 12
                            cross join generate_series(0, q.parts_seen - 1) p
                            where q.queue_id = m.id
                              and (q.paused_at is null or q.parent_id is null)) l
       order by m.ord, l.lane), 1))[1];
    v_turn := v_turn + coalesce(array_position(v_ids, v_lane >> 12) - 1, cardinality(v_ids));
    v_seen := v_seen + cardinality(v_ids);
    exit when v_lane is not null or v_seen >= v_round.member_n;
  end loop;
  if v_turn - 1 > millrace.hint(p_turn) then      -- others may have gone on meanwhile
    perform setval(p_turn, v_turn - 1);
  end if;
  return v_lane >> 12;
end $$;
