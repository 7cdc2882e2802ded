-- SPDX-License-Identifier: PostgreSQL
-- Moves the waiting jobs of a lane from closed segments to the open one, as they are: xid and position stay, so they are still the same
-- rows of the same windows, in the same order, for the cursor as for the ledger. Then the window is stretched to now, and its
-- cursor set to the start of the open segment: nothing of the window has been read there yet, and all that waits is there.
-- Returns how many moved; nothing when the cursor is in the open segment already. A job that cannot be read is buried alone.
-- The caller holds the locks of upkeep, of the lane and of its ledger.
create or replace function millrace.lane_relocate(p_now timestamptz, p_lane int)
returns bigint
language plpgsql
as $$
declare
  v_open int;
  v_cur  millrace.lane_cursor;
  v_hi   pg_snapshot;
  v_k    bigint;
  v_n    bigint := 0;
begin
  perform pg_current_xact_id();      -- before the segment is read: see lane_take
  v_open := pg_sequence_last_value('millrace.seg_seq'::regclass);
  v_cur := millrace.lane_cursor(p_lane, v_open);
  if v_cur.no is null or v_cur.last_seg >= v_open then
    return 0;
  end if;
  v_hi := millrace.snapshot();
  perform millrace.pack_open(v_cur.last_seg % 16, array[v_cur.last_pos]);      -- a pack that was taken in part
  for v_seg in millrace.floor_seg(pg_snapshot_xmin(v_cur.lo)) .. v_open - 1 loop
    begin
      update millrace.job j
         set slot = v_open % 16,
             seg = v_open
       where j.slot = v_seg % 16
         and j.lane = p_lane
         and j.xid >= pg_snapshot_xmin(v_cur.lo)
         and not pg_visible_in_snapshot(j.xid, v_cur.lo)
         and pg_visible_in_snapshot(j.xid, v_hi)
         and not (pg_visible_in_snapshot(j.xid, v_cur.hi) and (v_seg, j.xid, j.pos) <= (v_cur.last_seg, v_cur.last_xid, v_cur.last_pos));
      get diagnostics v_k = row_count;
    exception
      when data_corrupted or internal_error or data_exception then
        v_k := millrace.lane_relocate_singly(p_now, p_lane, v_cur, v_hi, v_seg, v_open);
    end;
    v_n := v_n + v_k;
  end loop;
  insert into millrace.claim (slot, seg, lane, no, win_no, last_xid, last_pos, last_seg, min_seg, n, total, claimed_at, win_lo, win_hi,
                              status, open_n, finished_at)
  values (v_open % 16, v_open, p_lane, v_cur.no + 1, v_cur.no + 1, '0', -1, v_open, v_open, 0, v_cur.total, p_now, v_cur.lo, v_hi, 't', 0, p_now);
  return v_n;
end $$;

-- The same for one segment, a job at a time: where one cannot be read. Its row stays behind as a grave, so that the ledger is right.
create or replace function millrace.lane_relocate_singly(p_now timestamptz, p_lane int, p_cur millrace.lane_cursor, p_hi pg_snapshot, p_seg int,
                                                         p_open int)
returns bigint
language plpgsql
as $$
declare
  v_row record;
  v_n   bigint := 0;
begin
  for v_row in
    select j.job_id, j.pos
      from millrace.job j
     where j.slot = p_seg % 16
       and j.lane = p_lane
       and j.xid >= pg_snapshot_xmin(p_cur.lo)
       and not pg_visible_in_snapshot(j.xid, p_cur.lo)
       and pg_visible_in_snapshot(j.xid, p_hi)
       and not (pg_visible_in_snapshot(j.xid, p_cur.hi) and (p_seg, j.xid, j.pos) <= (p_cur.last_seg, p_cur.last_xid, p_cur.last_pos))
  loop
    begin
      update millrace.job j
         set slot = p_open % 16,
             seg = p_open
       where j.slot = p_seg % 16
         and j.job_id = v_row.job_id
         and j.pos = v_row.pos;
      v_n := v_n + 1;
    exception
      when data_corrupted or internal_error or data_exception then
        perform millrace.job_bury_damaged(p_now, p_seg % 16, v_row.job_id, v_row.pos);
        update millrace.job j
           set slot = p_open % 16,
               seg = p_open,
               payload_args = null,
               payload_meta = null,
               payload_state = null,
               payload_blob = null,
               trail = null,
               stale_at = '-infinity'      -- a grave: the cursor passes it without a word
         where j.slot = p_seg % 16
           and j.job_id = v_row.job_id
           and j.pos = v_row.pos;
    end;
  end loop;
  return v_n;
end $$;
