-- SPDX-License-Identifier: PostgreSQL
-- What a claim does with jobs that have an ordering key (see the table turn). All of it happens under the lock of the key's part, which is that of
-- all priorities: claims of one key follow each other, and what one has set aside the next one sees. Ends take no such lock: see turns_pass.
-- Rows that a statement has looked up are locked and deleted by their ctid: with a join, a plan made on an empty table would read all of it.

-- The lock of a part of a queue, or of a key's; false: another one has it. Held to the end of the transaction.
create or replace function millrace.turn_lock(p_queue_id int, p_part int)
returns boolean
language sql
volatile
as $$
  select pg_try_advisory_xact_lock(1297219599, (p_queue_id << 5) + p_part)
$$;

create or replace function millrace.queue_ordered(p_queue_id int)
returns boolean
language plpgsql
as $$
begin
  return (select q.ordered from millrace.queue q where q.queue_id = p_queue_id);
end $$;

-- Whose turn it is among the jobs of a range, a letter for each: a not its turn, to be set aside; n its turn from now on; h it has the turn already; m it was
-- enqueued before the queue was ordered, to a part that is not its key's, and has to go there first; null: it has no key, or is passed over anyway. Of a key that is free the first job gets the turn. Writes nothing: the claim may yet stop before the end of
-- the range. Each key is looked up once, with its first job. Null: the queue is not ordered any more.
create or replace function millrace.turns_decide(p_now timestamptz, p_slot int, p_lane int, p_from_xid xid8, p_from_pos bigint, p_to_xid xid8,
                                                 p_hi pg_snapshot, p_limit int, p_marked boolean)
returns "char"[]
language plpgsql
as $$
begin
  if not millrace.queue_ordered(p_lane >> 12) then
    return null;
  end if;
  return (
    select array_agg(case
                       when not k.live then null
                       when k.astray then 'm'
                       when k.free then case when k.nth = 1 then 'n' else 'a' end
                       when k.job_id = k.holder then 'h'
                       else 'a'
                     end::"char" order by k.ord)
      from (select r.ord, r.job_id, r.live, r.nth, r.astray, bool_or(r.nth = 1 and (t.job_id is null or (t.job_id = 0 and a.found is null))) over w as free,
                   max(t.job_id) over w as holder
              from (select r.*, row_number() over (partition by r.order_key, r.live order by r.ord) as nth
                      from (select r.ord, r.job_id, r.order_key, hashtext(r.order_key) & 31 <> p_lane & 31 as astray,      -- see part_of
                                   r.order_key is not null and (r.stale_at <= p_now) is not true
                                   and not (p_marked and exists (select from millrace.mark m where m.lane = p_lane and m.pos = r.pos)) as live
                              from (select j.*, row_number() over () as ord
                                      from millrace.range_jobs(p_slot, p_lane, p_from_xid, p_from_pos, p_to_xid, p_hi, p_limit) j) r) r) r
              left join lateral (select t.job_id, t.from_pos
                                   from millrace.turn t
                                  where r.nth = 1
                                    and r.live
                                    and t.queue_id = p_lane >> 12
                                    and t.order_key = r.order_key
                                  order by t.no desc
                                  limit 1) t on true
              left join lateral (select true as found
                                   from millrace.delayed d
                                  where t.job_id = 0
                                    and d.slot = 56
                                    and d.lane >> 12 = p_lane >> 12
                                    and d.order_key = r.order_key
                                    and d.why = 'o'
                                    and d.aside_pos > t.from_pos
                                  limit 1) a on true
            window w as (partition by r.order_key, r.live)) k);
end $$;

-- Writes down what turns_decide has decided, for the jobs that the claim took or passed. Returns the ordinals of those that could not be set aside because
-- they cannot be read, and were buried.
create or replace function millrace.turns_claim(p_now timestamptz, p_slot int, p_lane int, p_positions bigint[], p_hooks millrace.hook[],
                                                p_turns "char"[])
returns int[]
language plpgsql
as $$
declare
  v_keys   text[];
  v_places int[];
  v_firm   text[];
  v_buried int[];
begin
  with new as (
    select h.order_key, h.job_id
      from unnest(p_hooks) with ordinality h(job_id, lane, order_key, unique_name, batch_id, ord)
     where p_turns[h.ord] = 'n'),
  gone as (      -- the turn of nobody, if the key was there
    delete from millrace.turn t
     where t.ctid = any (array(select t.place
                                 from new n
                                cross join lateral (select t.ctid as place
                                                      from millrace.turn t
                                                     where t.queue_id = p_lane >> 12
                                                       and t.order_key = n.order_key
                                                     order by t.no desc
                                                     limit 1) t)))
  insert into millrace.turn (queue_id, order_key, no, job_id, from_pos, given_at)
  select p_lane >> 12, s.order_key, s.no, s.job_id, s.no, p_now
    from (select n.order_key, n.job_id, nextval('millrace.turn_seq') as no
            from new n) s;
  select array_agg(distinct h.order_key), array_agg(h.ord::int order by h.ord)
    into v_keys, v_places
    from unnest(p_hooks) with ordinality h(job_id, lane, order_key, unique_name, batch_id, ord)
   where p_turns[h.ord] = 'a';
  if 'm' = any (p_turns[: cardinality(p_positions)]) then
    v_buried := millrace.turns_bring_home(p_now, p_slot, p_positions, p_hooks, p_turns);
  end if;
  if v_keys is null then
    return v_buried;
  end if;
  begin
    perform millrace.turns_set_aside(p_slot, p_positions, p_hooks, v_places);
  exception
    when data_corrupted or internal_error or data_exception then
      for i in 1 .. cardinality(v_places) loop
        begin
          perform millrace.turns_set_aside(p_slot, p_positions, p_hooks, v_places[i:i]);
        exception
          when data_corrupted or internal_error or data_exception then
            perform millrace.job_bury_damaged(p_now, p_slot, p_hooks[v_places[i]].job_id, p_positions[v_places[i]]);
            v_buried := v_buried || v_places[i];
        end;
      end loop;
  end;
  -- The turn must not be passed on before this is committed, by somebody who does not see it: hence the lock. Whose row is locked may be doing just that.
  select array_agg(f.order_key)
    into v_firm
    from (select t.order_key
            from millrace.turn t
           where t.ctid = any (array(select t.place
                                       from unnest(v_keys) k(order_key)
                                      cross join lateral (select t.ctid as place, t.job_id
                                                            from millrace.turn t
                                                           where t.queue_id = p_lane >> 12
                                                             and t.order_key = k.order_key
                                                           order by t.no desc
                                                           limit 1) t
                                      where t.job_id <> 0))
             for share skip locked) f;
  if cardinality(v_keys) > coalesce(cardinality(v_firm), 0) then
    insert into millrace.turn_doubt (queue_id, order_key, turn_no)
    select p_lane >> 12, k.order_key, 0
      from unnest(v_keys) k(order_key)
     where k.order_key <> all (coalesce(v_firm, '{}'));
  end if;
  return v_buried;
end $$;

-- Appends jobs that stand in a part that is not their key's to the log again, where they belong. Returns the ordinals of those that cannot be read, and were
-- buried.
create or replace function millrace.turns_bring_home(p_now timestamptz, p_slot int, p_positions bigint[], p_hooks millrace.hook[], p_turns "char"[])
returns int[]
language plpgsql
as $$
declare
  v_job    millrace.job;
  v_buried int[];
begin
  for i in 1 .. cardinality(p_positions) loop
    continue when (p_turns[i] = 'm') is not true;
    begin
      select j.*
        into v_job
        from millrace.job j
       where j.slot = p_slot
         and j.job_id = p_hooks[i].job_id
         and j.pos = p_positions[i];
      perform millrace.job_append(p_now, v_job);
    exception
      when data_corrupted or internal_error or data_exception then
        perform millrace.job_bury_damaged(p_now, p_slot, p_hooks[i].job_id, p_positions[i]);
        v_buried := v_buried || i;
    end;
  end loop;
  return v_buried;
end $$;

-- Copies some jobs of the log to delayed, in their order; p_places are their ordinals.
create or replace function millrace.turns_set_aside(p_slot int, p_positions bigint[], p_hooks millrace.hook[], p_places int[])
returns void
language plpgsql
as $$
begin
  insert into millrace.delayed (due_at, job_id, created_at, lane, slot, attempt, lost, attempts_limit, why, job_kind, payload_args,
                                stale_at, run_limit, payload_meta, payload_state, payload_blob, job_tenant, job_ref, job_source,
                                trail, order_key, unique_name, batch_id, aside_pos)
  select 'infinity', s.job_id, s.created_at, s.lane, 56, s.attempt, s.lost, s.attempts_limit, 'o', s.job_kind, s.payload_args, s.stale_at,
         s.run_limit, s.payload_meta, s.payload_state, s.payload_blob, s.job_tenant, s.job_ref, s.job_source, s.trail, s.order_key,
         s.unique_name, s.batch_id, nextval('millrace.turn_seq')
    from (select j.*
            from unnest(p_places) with ordinality o(at, i)
           cross join lateral (select (p_hooks[o.at]).job_id as id, p_positions[o.at] as pos
                               offset 0) w
           cross join lateral (select j.*
                                 from millrace.job j
                                where j.slot = p_slot
                                  and j.job_id = w.id
                                  and j.pos = w.pos
                                limit 1) j
           order by o.i) s;
end $$;
