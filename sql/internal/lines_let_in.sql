-- SPDX-License-Identifier: PostgreSQL
-- Lets jobs that were set aside in again, as many as their keys and tenants have room for, p_limit at most, from lines up to the priority of p_lane: all that
-- were let in before in those have been taken. The caller has the queue's lock. Of several lines of one key or tenant that of the first priority goes first.
--   n: so many were let in; left: there are lines still; again: when the first tenant has room (null: none waits for that alone).
-- The list is written again at most once a second: it may know too much, never too little.
create or replace function millrace.lines_let_in(p_now timestamptz, p_queue millrace.queue, p_lane int, p_limit int,
                                                 out n int, out left_over boolean, out again timestamptz)
language plpgsql
as $$
declare
  c_list_age constant interval := '1 second';
  v_list  record := millrace.lines_of(p_queue.queue_id);
  v_lines millrace.line[];
  v_next  record;
begin
  n := 0;
  left_over := false;
  if coalesce(v_list.lines, '{}') = '{}' then
    return;
  end if;
  v_next := millrace.lines_next(p_now, p_queue, v_list.lines, p_lane, p_limit);
  if v_next.places is not null then
    n := coalesce(cardinality(millrace.aside_let_in(p_now, v_next.places, least(p_queue.part_count, 31))), 0);
    perform millrace.wake(p_queue.queue_id, p_now);
  end if;
  v_lines := v_next.lines;
  left_over := v_lines is not null;
  again := (select min(greatest(l.again_at, p_now)) from unnest(v_lines) l where l.why = 't' and l.again_at is not null);
  if v_lines is distinct from v_list.lines and abs(date_part('epoch', p_now - v_list.made_at)) >= date_part('epoch', c_list_age) then
    perform millrace.lines_write(p_now, p_queue.queue_id, v_lines, v_list.place);
  end if;
end $$;

-- Who is to be let in, by their places in delayed, and the lines as they are: without the empty ones, each from its first job on.
create or replace function millrace.lines_next(p_now timestamptz, p_queue millrace.queue, p_lines millrace.line[], p_lane int, p_limit int,
                                               out places tid[], out lines millrace.line[])
language plpgsql
as $$
declare
  c_expired constant int := 100;      -- let in beside the others, to end in the log as all do
  v_period interval := (millrace.rate_parse(p_queue.tenant_rate)).period;
begin
  with line as materialized (
    select l.lane, l.why, l.line_name, h.aside_pos - 1 as from_pos,
           case when l.again_at <= p_now + v_period and l.again_at > p_now then l.again_at end as again_at
      from unnest(p_lines) l
     cross join lateral (select d.aside_pos
                           from millrace.delayed d
                          where d.slot = 56
                            and d.lane = l.lane
                            and d.why in ('k', 't')
                            and d.why = l.why
                            and case d.why when 'k' then d.order_key else d.job_tenant end = l.line_name
                            and d.aside_pos > l.from_pos
                          order by d.aside_pos
                          limit 1) h),
  first as materialized (
    select distinct on (l.why, l.line_name) l.*
      from line l
     where l.lane <= p_lane
     order by l.why, l.line_name, l.lane),
  running as materialized (
    select r.order_key, r.n
      from millrace.keys_running(case when exists (select from first f where f.why = 'k') then millrace.lanes_of(p_queue, 0) else '{}' end) r),
  room as materialized (
    select f.lane, f.why, f.line_name, f.from_pos, p_queue.key_limit - coalesce(r.n, 0) as room, null::timestamptz as again_at
      from first f
      left join running r on r.order_key = f.line_name
     where f.why = 'k'
     union all
    select f.lane, f.why, f.line_name, f.from_pos, s.room, case when s.room <= 0 then s.again end
      from first f
      join millrace.tenants_room(p_now, p_queue.queue_id, array(select f.line_name from first f where f.why = 't' and f.again_at is null),
                                 p_queue.tenant_rate) s on s.tenant = f.line_name
     where f.why = 't'),
  job as (
    select m.place
      from room r
     cross join lateral (select m.place, m.aside_pos
                           from (select d.place, d.aside_pos, count(*) filter (where not d.stale) over (order by d.aside_pos) - (not d.stale)::int as before
                                   from (select d.ctid as place, d.aside_pos, (d.stale_at <= p_now) is true as stale
                                           from millrace.delayed d
                                          where d.slot = 56
                                            and d.lane = r.lane
                                            and d.why in ('k', 't')
                                            and d.why = r.why
                                            and case d.why when 'k' then d.order_key else d.job_tenant end = r.line_name
                                            and d.aside_pos > r.from_pos
                                          order by d.aside_pos
                                          limit least(r.room, p_limit) + c_expired) d) m
                          where m.before < r.room) m
     where r.room > 0
     order by r.lane, m.aside_pos
     limit p_limit)
  select (select array_agg(j.place) from job j),
         (select array_agg(row(l.lane, l.why, l.line_name, l.from_pos, coalesce(r.again_at, l.again_at))::millrace.line)
            from line l
            left join room r on r.lane = l.lane and r.why = l.why and r.line_name = l.line_name)
    into places, lines;
end $$;
