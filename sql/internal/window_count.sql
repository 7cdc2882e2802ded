-- SPDX-License-Identifier: PostgreSQL
-- How many jobs of a lane lie in the window (p_lo, p_hi].
create or replace function millrace.window_count(p_lane int, p_lo pg_snapshot, p_hi pg_snapshot)
returns bigint
language plpgsql
as $$
declare
  v_range record := millrace.window_ranges(p_lo, p_hi, '0');
  v_n     bigint := 0;
begin
  for v_seg in millrace.floor_seg(case when v_range.late then pg_snapshot_xmin(p_lo) else pg_snapshot_xmax(p_lo) end)
            .. pg_sequence_last_value('millrace.seg_seq'::regclass) loop
    for i in 1 .. cardinality(v_range.to_xid) loop
      v_n := v_n + (select coalesce(sum(coalesce(j.pack_n, 1)), 0)
                      from millrace.job j
                     where j.slot = v_seg % 16
                       and j.lane = p_lane
                       and (j.xid, j.pos) > (v_range.from_xid[i], v_range.from_pos[i])
                       and j.xid < v_range.to_xid[i]
                       and pg_visible_in_snapshot(j.xid, p_hi));
    end loop;
  end loop;
  return v_n;
end $$;
