-- SPDX-License-Identifier: PostgreSQL
-- Those of some lanes that may have a job, in the same order; the others surely have none.
-- One statement instead of a claim on each: a queue with twenty priorities must not cost twenty claims.
-- A lane is surely empty when its cursor stands in the open segment, no transaction that ran at its window's end has ended since,
-- and no row lies behind the cursor: in the open segment, and in those closed since the window's end (a window may be read for long).
-- Rows of transactions that still run are not walked (see window_ranges).
create or replace function millrace.lanes_ready(p_lanes int[])
returns int[]
language plpgsql
as $$
declare
  v_open  int := pg_sequence_last_value('millrace.seg_seq'::regclass);
  v_snap  pg_snapshot := millrace.snapshot();
  v_range record := millrace.window_ranges('1:1:', v_snap, '0');
  v_closed xid8 := (select g.closed_xid from millrace.segment g where g.seg = v_open - 1);      -- null: not recorded yet
begin
  return array(
    select l.lane
      from unnest(p_lanes) with ordinality l(lane, ord)
      left join lateral (select k.win_no, k.last_seg, k.last_xid, k.last_pos
                           from millrace.claim k
                          where k.slot = v_open % 16
                            and k.lane = l.lane
                          order by k.no desc
                          limit 1) c on true
      left join lateral (select w.win_hi
                           from millrace.claim w
                          where w.slot = v_open % 16
                            and w.lane = l.lane
                            and w.no = c.win_no) w on true
     where w.win_hi is null
        or c.last_seg < v_open
        or (pg_snapshot_xmin(w.win_hi) < pg_snapshot_xmax(w.win_hi)
            and exists (select
                          from pg_snapshot_xip(w.win_hi) x
                         where pg_visible_in_snapshot(x, v_snap)))
        or exists (select
                     from unnest(v_range.from_xid, v_range.from_pos, v_range.to_xid) g(from_xid, from_pos, to_xid)
                    cross join generate_series(case
                                                 when pg_snapshot_xmax(w.win_hi) >= v_closed then v_open
                                                 else millrace.floor_seg(pg_snapshot_xmax(w.win_hi))
                                               end, v_open) s(seg)
                    cross join lateral (select
                                          from millrace.job j
                                         where j.slot = s.seg % 16
                                           and j.lane = l.lane
                                           and (j.xid, j.pos) > (g.from_xid, g.from_pos)
                                           and (j.xid, j.pos) > (case when c.last_seg = s.seg then c.last_xid else pg_snapshot_xmax(w.win_hi) end,
                                                                 case when c.last_seg = s.seg then c.last_pos else -1 end)
                                           and j.xid < g.to_xid
                                         limit 1) e)
     order by l.ord);
end $$;
