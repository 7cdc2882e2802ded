-- SPDX-License-Identifier: PostgreSQL
-- The claim that took a row of the job log; null when it is still to be taken. Claims of a lane follow the order of the log
-- (window, segment, xid, pos), so the claim is found by halving: no index on positions is needed.
create or replace function millrace.claim_of(p_lane int, p_seg int, p_xid xid8, p_pos bigint)
returns millrace.claim
language plpgsql
as $$
declare
  v_open  int := pg_sequence_last_value('millrace.seg_seq'::regclass);
  v_claim millrace.claim;
  v_low   bigint;
  v_high  bigint;
  v_mid   bigint;
begin
  for v_seg in greatest(p_seg, v_open - 15) .. v_open loop
    select min(k.no), max(k.no)
      into v_low, v_high
      from millrace.claim k
     where k.slot = v_seg % 16
       and k.lane = p_lane;
    continue when v_high is null or not millrace.claim_reaches(v_seg % 16, p_lane, v_high, p_seg, p_xid, p_pos);
    while v_low < v_high loop
      v_mid := (v_low + v_high) / 2;
      if coalesce(millrace.claim_reaches(v_seg % 16, p_lane, v_mid, p_seg, p_xid, p_pos), false) then
        v_high := v_mid;
      else
        v_low := v_mid + 1;
      end if;
    end loop;
    select k.*
      into v_claim
      from millrace.claim k
     where k.slot = v_seg % 16
       and k.lane = p_lane
       and k.no = v_high;
    exit;
  end loop;
  if v_claim.no is not null and (v_claim.status = 'p' or p_pos = any (v_claim.positions)) then
    return v_claim;
  end if;
  -- Claims of long leases stand apart.
  select k.*
    into v_claim
    from millrace.claim k
   where k.slot = -1
     and k.lane = p_lane
     and p_pos = any (k.positions)
   limit 1;
  return v_claim;
end $$;

-- Whether the cursor that claim p_no left stands at or behind a row of the log. A claim that is parked has left a tick
-- in its place.
create or replace function millrace.claim_reaches(p_slot int, p_lane int, p_no bigint, p_seg int, p_xid xid8, p_pos bigint)
returns boolean
language plpgsql
as $$
begin
  return (select pg_visible_in_snapshot(p_xid, w.win_hi)
                 and (pg_visible_in_snapshot(p_xid, w.win_lo) or (p_seg, p_xid, p_pos) <= (k.last_seg, k.last_xid, k.last_pos))
            from (select k.win_no, k.last_seg, k.last_xid, k.last_pos
                    from millrace.claim k
                   where k.slot = p_slot
                     and k.lane = p_lane
                     and k.no >= p_no
                   order by k.no
                   limit 1) k
           -- The limit makes it a probe: without it, a plan made on an empty leaf walks through the lane.
           cross join lateral (select w.win_lo, w.win_hi
                                 from millrace.claim w
                                where w.slot = p_slot
                                  and w.lane = p_lane
                                  and w.no = k.win_no
                                limit 1) w);
end $$;
