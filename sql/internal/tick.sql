-- SPDX-License-Identifier: PostgreSQL
-- Appends an empty claim to each lane whose cursor or window stands in a closed segment, so that a quiet lane pins no segment and its
-- newest claim is found in the open leaf. Also to one whose window ended while a transaction ran that has ended since;
-- of the lanes of tenants, which may be thousands, only where that transaction is older than the last rotation.
-- The caller holds the lock of upkeep.
create or replace function millrace.tick(p_now timestamptz)
returns bigint
language plpgsql
as $$
declare
  v_open int := pg_sequence_last_value('millrace.seg_seq'::regclass);
  v_closed xid8 := (select g.closed_xid from millrace.segment g where g.seg = v_open - 1);
  v_sealed xid8 := coalesce(millrace.sealed_xid(), '0');
  v_cur  millrace.lane_cursor;
  v_lane int;
  v_n    bigint := 0;
begin
  for v_lane in select * from millrace.lanes_all() loop
    v_cur := millrace.lane_cursor(v_lane, v_open);
    continue when v_cur.seg = v_open and pg_snapshot_xmax(v_cur.hi) >= v_closed and pg_snapshot_xmin(v_cur.hi) >= case when v_lane < 65536 << 12 then v_sealed else least(v_sealed, v_closed) end
               or not pg_try_advisory_xact_lock(1297219591, v_lane);
    perform millrace.lane_take(p_now, v_lane, 1, 't', null, null, false, false);
    v_n := v_n + 1;
  end loop;
  return v_n;
end $$;
