-- SPDX-License-Identifier: PostgreSQL
-- When the first job that waits in a lane became available; null when none does.
create or replace function millrace.lane_oldest(p_now timestamptz, p_lane int)
returns timestamptz
language plpgsql
as $$
declare
  v_first millrace.taken := millrace.lane_take(p_now, p_lane, 1, 'o', null, null, false, false);
begin
  return (select coalesce(j.ready_at, j.created_at)
            from millrace.range_jobs(v_first.seg[1] % 16, p_lane, v_first.from_xid[1], v_first.from_pos[1], v_first.to_xid[1], v_first.hi, 1) j);
end $$;
