-- SPDX-License-Identifier: PostgreSQL
-- When the first job that waits in a lane became available; null when none does.
create or replace function millrace.lane_oldest(p_now timestamptz, p_lane int)
returns timestamptz
language plpgsql
as $$
begin
  return (select t.created_at
            from millrace.lane_take(p_now, p_lane, 1, 'o', null, null, false, false) t);
end $$;
