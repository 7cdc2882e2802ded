-- SPDX-License-Identifier: PostgreSQL
-- The newest claim of a lane with its window; all null for a lane without any.
-- Leaf by leaf from the open segment downwards: the newest claim is in the highest segment that has one,
-- because a claimer reads the segment's number under the lane's lock. Never "order by no desc" over the whole log.
do $do$
begin
  execute format($sql$
create or replace function millrace.lane_cursor(p_lane int, p_open int)
returns millrace.lane_cursor
language plpgsql
stable
as $$
declare
  v_cur millrace.lane_cursor;
begin
  for v_seg in reverse p_open .. greatest(p_open - 15, 0) loop
    %1$s
    continue when v_cur.no is null;
    if v_cur.hi is null then
      %2$s
    end if;
    return v_cur;
  end loop;
  return v_cur;
end $$
  $sql$,
    millrace.by_leaf('v_seg', $one$
    select k.no, k.total, k.seg, k.win_no, k.win_lo, k.win_hi, k.last_seg, k.last_xid, k.last_pos, k.status, k.claimed_at
      into v_cur
      from millrace.claim_%s k
     where k.lane = p_lane
     order by k.lane desc, k.no desc
     limit 1;$one$),
    millrace.by_leaf('v_seg', $one$
      select k.win_lo, k.win_hi
        into v_cur.lo, v_cur.hi
        from millrace.claim_%s k
       where k.lane = p_lane
         and k.no = v_cur.win_no;$one$));
end $do$;
