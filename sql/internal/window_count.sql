-- SPDX-License-Identifier: PostgreSQL
-- How many jobs of a lane lie in the window (p_lo, p_hi]; and how many of them are fresh: not there for another try, nor because it was not their turn.
create or replace function millrace.window_count(p_lane int, p_lo pg_snapshot, p_hi pg_snapshot, out n bigint, out fresh bigint)
language plpgsql
stable
as $$
declare
  v_range record := millrace.window_ranges(p_lo, p_hi, '0');
  v_some  record;
begin
  n := 0;
  fresh := 0;
  for v_seg in millrace.floor_seg(case when v_range.late then pg_snapshot_xmin(p_lo) else pg_snapshot_xmax(p_lo) end)
            .. pg_sequence_last_value('millrace.seg_seq'::regclass) loop
    for i in 1 .. cardinality(v_range.to_xid) loop
      select coalesce(sum(coalesce(j.pack_n, 1)), 0) as n,
             coalesce(sum(coalesce(j.pack_n, 1)) filter (where j.job_id = j.pos
                                                            or j.attempt = 1 and j.lost = 0 and j.trail is null and j.order_key is null), 0) as fresh
        into v_some
        from millrace.job j
       where j.slot = v_seg % 16
         and j.lane = p_lane
         and (j.xid, j.pos) > (v_range.from_xid[i], v_range.from_pos[i])
         and j.xid < v_range.to_xid[i]
         and pg_visible_in_snapshot(j.xid, p_hi);
      n := n + v_some.n;
      fresh := fresh + v_some.fresh;
    end loop;
  end loop;
end $$;
