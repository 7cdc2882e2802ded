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
