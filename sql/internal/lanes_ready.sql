-- SPDX-License-Identifier: PostgreSQL
-- Those of some lanes that may have a job, in the same order; the others surely have none.
-- One statement instead of a claim on each: a queue with twenty priorities must not cost twenty claims.
-- A lane is surely empty when its cursor stands in the open segment, no transaction that ran at its window's end has ended since,
-- no segment was closed since (a window may be read for long), and no row lies behind the cursor.
create or replace function millrace.lanes_ready(p_lanes int[])
returns int[]
language plpgsql
as $$
declare
  v_open  int := pg_sequence_last_value('millrace.seg_seq'::regclass);
  v_snap  pg_snapshot := millrace.snapshot();
  v_end   xid8 := pg_snapshot_xmax(v_snap);
  v_range record;
  v_closed xid8 := (select g.closed_xid from millrace.segment g where g.seg = v_open - 1);      -- null: not recorded yet
begin
  if v_end::text::bigint - pg_snapshot_xmin(v_snap)::text::bigint <= 200 then
    return array(
      select l.lane
        from unnest(p_lanes) with ordinality l(lane, ord)
        left join lateral (select k.last_seg, k.last_xid, k.last_pos,
                                  coalesce(k.win_hi, (select w.win_hi
                                                        from millrace.claim w
                                                       where w.slot = v_open % 16
                                                         and w.lane = l.lane
                                                         and w.no = k.win_no)) as win_hi
                             from millrace.claim k
                            where k.slot = v_open % 16
                              and k.lane = l.lane
                            order by k.no desc
                            limit 1) c on true
       where c.win_hi is null
          or c.last_seg < v_open
          or (pg_snapshot_xmax(c.win_hi) < v_closed) is not false
          or (pg_snapshot_xmin(c.win_hi) < pg_snapshot_xmax(c.win_hi)
              and exists (select
                            from pg_snapshot_xip(c.win_hi) x
                           where pg_visible_in_snapshot(x, v_snap)))
          or exists (select
                       from millrace.job j
                      where j.slot = v_open % 16
                        and j.lane = l.lane
                        and (j.xid, j.pos) > (case when c.last_seg = v_open then c.last_xid else pg_snapshot_xmax(c.win_hi) end,
                                              case when c.last_seg = v_open then c.last_pos else -1 end)
                        and j.xid < v_end)
       order by l.ord);
  end if;

  -- An old transaction runs and may have written much: its rows are not walked (see window_ranges).
  v_range := millrace.window_ranges('1:1:', v_snap, '0');
  return array(
    select l.lane
      from unnest(p_lanes) with ordinality l(lane, ord)
      left join lateral (select k.last_seg, k.last_xid, k.last_pos,
                                coalesce(k.win_hi, (select w.win_hi
                                                      from millrace.claim w
                                                     where w.slot = v_open % 16
                                                       and w.lane = l.lane
                                                       and w.no = k.win_no)) as win_hi
                           from millrace.claim k
                          where k.slot = v_open % 16
                            and k.lane = l.lane
                          order by k.no desc
                          limit 1) c on true
     where c.win_hi is null
        or c.last_seg < v_open
        or (pg_snapshot_xmax(c.win_hi) < v_closed) is not false
        or (pg_snapshot_xmin(c.win_hi) < pg_snapshot_xmax(c.win_hi)
            and exists (select
                          from pg_snapshot_xip(c.win_hi) x
                         where pg_visible_in_snapshot(x, v_snap)))
        or exists (select
                     from unnest(v_range.from_xid, v_range.from_pos, v_range.to_xid) g(from_xid, from_pos, to_xid)
                    -- One lower bound, the greater of the two: an index scan starts at the first it is given.
                    cross join lateral (select g.from_xid, g.from_pos
                                         union all
                                        select case when c.last_seg = v_open then c.last_xid else pg_snapshot_xmax(c.win_hi) end,
                                               case when c.last_seg = v_open then c.last_pos else -1 end
                                         order by 1 desc, 2 desc
                                         limit 1) f(after_xid, after_pos)
                    cross join lateral (select
                                          from millrace.job j
                                         where j.slot = v_open % 16
                                           and j.lane = l.lane
                                           and (j.xid, j.pos) > (f.after_xid, f.after_pos)
                                           and j.xid < g.to_xid
                                         limit 1) e
                    where f.after_xid < g.to_xid)
     order by l.ord);
end $$;
