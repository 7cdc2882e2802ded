-- SPDX-License-Identifier: PostgreSQL
-- What a claim does with jobs of a queue that has a limit for each key or tenant. All of it happens under the queue's lock (class 12, see
-- claim_limited), and counts: what runs of a key are the open jobs of open claims, what was started for a tenant stands in started. So no end of a job
-- has anything to tell, and there is nothing to put right after a crash.
--   1. A job for which there is no room is set aside: the log's row ends with the letter w, delayed has the job, behind the others of its line.
--   2. line_list names every line in which a job stands. Only claims add to a line, each with larger places than the one before.
--   3. A claim lets as many in as there is room for, when it has found all that were let in before taken (lines_let_in). They go to a lane of their own, which the
--      next claim looks at first: so they come before what is younger, however much of that waits. Whoever was let in is counted again when it is met.
--   4. What is met while jobs of its key or tenant stand in line goes behind them, whatever room there is.

-- How many jobs of each key run in some lanes: the open ones of open claims, as lanes_running finds them.
create or replace function millrace.keys_running(p_lanes int[])
returns table (order_key text, n bigint)
language plpgsql
as $$
begin
  return query
    select h.order_key, count(*)
      from unnest(p_lanes) l(lane)
     cross join lateral millrace.lane_tally(l.lane) t
     cross join lateral (select k.hooks, k.outcome
                           from millrace.claim k
                          where k.lane = l.lane
                            and k.no > coalesce(t.settled_no, 0)
                            and k.status = 'r'
                            and k.hooks is not null
                          union all
                         select k.hooks, k.outcome
                           from unnest(t.open_nos) o(no)
                          cross join lateral (select k.hooks, k.outcome
                                                from millrace.claim k
                                               where k.lane = l.lane
                                                 and k.no = o.no
                                                 and k.status = 'r'
                                                 and k.hooks is not null
                                               limit 1) k) k
     cross join lateral unnest(k.hooks, string_to_array(k.outcome, null)) h(job_id, lane, order_key, unique_name, batch_id, letter)
     where h.order_key is not null
       and coalesce(h.letter, 'o') = 'o'
     group by 1;
end $$;

-- For which jobs of a range there is no room, a letter for each: k its key has none, t its tenant has none; null: it may run, or is passed over anyway.
-- Writes nothing: the claim may yet stop before the end of the range.
create or replace function millrace.lines_decide(p_now timestamptz, p_queue millrace.queue, p_slot int, p_lane int, p_from_xid xid8, p_from_pos bigint,
                                                 p_to_xid xid8, p_hi pg_snapshot, p_limit int, p_marked boolean)
returns "char"[]
language plpgsql
as $$
declare
  v_lines millrace.line[] := case when p_lane & 31 <> least(p_queue.part_count, 31) then (millrace.lines_of(p_queue.queue_id)).lines end;
begin
  return (
    with line as materialized (      -- those behind which a job of this lane has to stand
      select distinct l.why, l.line_name
        from unnest(v_lines) l
       where l.lane <= p_lane
         and exists (select
                       from millrace.delayed d
                      where d.slot = 56
                        and d.lane = l.lane
                        and d.why in ('k', 't')
                        and d.why = l.why
                        and case d.why when 'k' then d.order_key else d.job_tenant end = l.line_name
                        and d.aside_pos > l.from_pos)),
    job as materialized (
      select r.ord, case when p_queue.key_limit is not null then r.order_key end as order_key,
             case when p_queue.tenant_rate is not null then r.job_tenant end as tenant,
             (r.stale_at <= p_now) is not true
             and not (p_marked and exists (select from millrace.mark m where m.lane = p_lane and m.pos = r.pos)) as live
        from (select j.*, row_number() over () as ord
                from millrace.range_jobs(p_slot, p_lane, p_from_xid, p_from_pos, p_to_xid, p_hi, p_limit) j) r),
    by_key as materialized (
      select j.*, j.live and j.order_key is not null
                  and (l.line_name is not null
                       or count(*) filter (where j.live) over (partition by j.order_key order by j.ord) > p_queue.key_limit - coalesce(r.n, 0)) as full
        from job j
        left join line l on l.why = 'k' and l.line_name = j.order_key
        left join (select r.*
                     from millrace.keys_running(case when p_queue.key_limit is not null then millrace.lanes_of(p_queue, 0) else '{}' end) r) r
               on r.order_key = j.order_key),
    room as materialized (
      select s.tenant, s.room
        from millrace.tenants_room(p_now, p_queue.queue_id, array(select distinct j.tenant from by_key j where j.live and not j.full and j.tenant is not null),
                                   p_queue.tenant_rate) s)
    select array_agg(case when j.full then 'k' when j.late then 't' end::"char" order by j.ord)
      from (select j.ord, j.full,
                   j.live and j.tenant is not null
                   and (l.line_name is not null
                        or count(*) filter (where j.live and not j.full) over (partition by j.tenant order by j.ord) > r.room) as late
              from by_key j
              left join line l on l.why = 't' and l.line_name = j.tenant
              left join room r on r.tenant = j.tenant) j);
end $$;

-- Sets those aside for which lines_decide found no room, of the jobs that the claim took or passed. Returns the ordinals of those that cannot be read, and
-- were buried.
create or replace function millrace.lines_claim(p_now timestamptz, p_slot int, p_lane int, p_ids bigint[], p_positions bigint[], p_letters "char"[])
returns int[]
language plpgsql
as $$
declare
  v_from   bigint := nextval('millrace.turn_seq');
  v_places int[] := array(select o.ord::int
                            from unnest(p_letters[: cardinality(p_ids)]) with ordinality o(letter, ord)
                           where o.letter is not null
                           order by o.ord);
  v_lines  millrace.line[];
  v_buried int[];
begin
  if v_places = '{}' then
    return null;
  end if;
  begin
    v_lines := millrace.lines_set_aside(p_slot, p_ids, p_positions, p_letters, v_places, v_from);
  exception
    when data_corrupted or internal_error or data_exception then
      for i in 1 .. cardinality(v_places) loop
        begin
          v_lines := v_lines || millrace.lines_set_aside(p_slot, p_ids, p_positions, p_letters, v_places[i:i], v_from);
        exception
          when data_corrupted or internal_error or data_exception then
            perform millrace.job_bury_damaged(p_now, p_slot, p_ids[v_places[i]], p_positions[v_places[i]]);
            v_buried := v_buried || v_places[i];
        end;
      end loop;
  end;
  perform millrace.lines_add(p_now, p_lane >> 12, v_lines);
  return v_buried;
end $$;

-- Copies some jobs of the log to delayed, in their order; p_places are their ordinals. Returns the lines in which they stand now.
create or replace function millrace.lines_set_aside(p_slot int, p_ids bigint[], p_positions bigint[], p_letters "char"[], p_places int[], p_from bigint)
returns millrace.line[]
language plpgsql
as $$
declare
  v_lines millrace.line[];
begin
  with put as (
    insert into millrace.delayed (due_at, job_id, created_at, lane, slot, attempt, lost, attempts_limit, why, job_kind, payload_args,
                                  stale_at, run_limit, payload_meta, payload_state, payload_blob, job_tenant, job_ref, job_source,
                                  trail, order_key, unique_name, batch_id, aside_pos)
    select 'infinity', s.job_id, s.created_at, s.lane & ~31, 56, s.attempt, s.lost, s.attempts_limit, s.letter, s.job_kind, s.payload_args, s.stale_at,
           s.run_limit, s.payload_meta, s.payload_state, s.payload_blob, s.job_tenant, s.job_ref, s.job_source, s.trail, s.order_key,
           s.unique_name, s.batch_id, nextval('millrace.turn_seq')
      from (select j.*, w.letter
              from unnest(p_places) with ordinality o(at, i)
             cross join lateral (select p_ids[o.at] as id, p_positions[o.at] as pos, p_letters[o.at] as letter
                                 offset 0) w
             cross join lateral (select j.*
                                   from millrace.job j
                                  where j.slot = p_slot
                                    and j.job_id = w.id
                                    and j.pos = w.pos
                                  limit 1) j
             order by o.i) s
    returning lane, why, case why when 'k' then order_key else job_tenant end as line_name)
  select array_agg(row(p.lane, p.why, p.line_name, p_from, null)::millrace.line)
    into v_lines
    from (select distinct p.lane, p.why, p.line_name from put p) p;
  return v_lines;
end $$;

-- The newest list of a queue's lines.
create or replace function millrace.lines_of(p_queue_id int, out made_at timestamptz, out lines millrace.line[], out place tid)
language plpgsql
as $$
begin
  select l.made_at, l.lines, l.ctid
    into made_at, lines, place
    from millrace.line_list l
   where l.queue_id = p_queue_id
   order by l.no desc
   limit 1;
end $$;

-- A new list of a queue's lines in the place of another one.
create or replace function millrace.lines_write(p_now timestamptz, p_queue_id int, p_lines millrace.line[], p_place tid)
returns void
language plpgsql
as $$
begin
  delete from millrace.line_list l where l.ctid = p_place;
  insert into millrace.line_list (queue_id, no, made_at, lines)
  values (p_queue_id, nextval('millrace.turn_seq'), p_now, coalesce(p_lines, '{}'));
end $$;

-- Names lines that are not in the list yet.
create or replace function millrace.lines_add(p_now timestamptz, p_queue_id int, p_lines millrace.line[])
returns void
language plpgsql
as $$
declare
  v_list record := millrace.lines_of(p_queue_id);
  v_new  millrace.line[];
begin
  select array_agg(row(n.lane, n.why, n.line_name, n.from_pos, null)::millrace.line)
    into v_new
    from (select distinct n.lane, n.why, n.line_name, n.from_pos from unnest(p_lines) n) n
   where not exists (select
                       from unnest(v_list.lines) l
                      where l.lane = n.lane
                        and l.why = n.why
                        and l.line_name = n.line_name);
  if v_new is not null then
    perform millrace.lines_write(coalesce(v_list.made_at, p_now), p_queue_id, v_list.lines || v_new, v_list.place);
  end if;
end $$;
