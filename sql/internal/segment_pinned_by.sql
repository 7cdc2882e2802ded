-- SPDX-License-Identifier: PostgreSQL
-- Lanes that still need a closed segment: a lane is done with it when nothing of it is left in its window or in later ones.
create or replace function millrace.segment_pinned_by(p_segment millrace.segment)
returns setof int
language plpgsql
as $$
declare
  v_open  int := pg_sequence_last_value('millrace.seg_seq'::regclass);
  v_cur   millrace.lane_cursor;
  v_tally millrace.tally;
  v_lane  int;
begin
  for v_lane in select * from millrace.lanes_all() loop
    v_cur := millrace.lane_cursor(v_lane, v_open);
    v_tally := millrace.lane_tally(v_lane);
    if v_cur.seg > p_segment.seg
       and (pg_snapshot_xmin(v_cur.lo) >= p_segment.closed_xid
            or (pg_snapshot_xmin(v_cur.hi) >= p_segment.closed_xid and v_cur.last_seg > p_segment.seg))
       and v_tally.seg > p_segment.seg
       and pg_snapshot_xmin(v_tally.win_hi) >= p_segment.closed_xid then
      continue;
    end if;
    return next v_lane;
  end loop;
end $$;

-- Which queues still need which closed segments: segment_pinned_by for all of them, with one look at each lane.
create or replace function millrace.segments_pinned()
returns table (seg int, queue_id int)
language plpgsql
as $$
declare
  v_open int := pg_sequence_last_value('millrace.seg_seq'::regclass);
begin
  return query
    select distinct g.seg, l.lane >> 12
      from millrace.lanes_all() l(lane)
     cross join lateral millrace.lane_cursor(l.lane, v_open) c
     cross join lateral millrace.lane_tally(l.lane) t
      join millrace.segments_live() g
        on (c.seg > g.seg
            and (pg_snapshot_xmin(c.lo) >= g.closed_xid or (pg_snapshot_xmin(c.hi) >= g.closed_xid and c.last_seg > g.seg))
            and t.seg > g.seg
            and pg_snapshot_xmin(t.win_hi) >= g.closed_xid) is not true;
end $$;
