-- SPDX-License-Identifier: PostgreSQL
-- All that is known of a lane: the newest row of its ledger; how many jobs wait, exactly, and since when the first; how many claims are open, and how many
-- jobs in them. All but the age is read in the caller's snapshot, for which this and every function in it is stable: a job that moves meanwhile is counted
-- where that snapshot has it, once. So it cannot bring the ledger on: that is done before (lanes_count).
create or replace function millrace.lane_figures(p_now timestamptz, p_lane int, out depth bigint, out oldest_at timestamptz, out claims bigint,
                                                 out jobs bigint, out tally millrace.tally)
language plpgsql
stable
as $$
declare
  v_cur  millrace.lane_cursor := millrace.lane_cursor(p_lane, pg_sequence_last_value('millrace.seg_seq'::regclass)::int);
  v_open record;
begin
  tally := millrace.lane_tally(p_lane);
  depth := greatest(0, coalesce(tally.counted, 0) - coalesce(v_cur.total, 0)
                       + (millrace.window_count(p_lane, coalesce(tally.win_hi, '1:1:'), millrace.snapshot())).n - millrace.lane_marked(p_lane));
  if depth > 0 then
    oldest_at := millrace.lane_oldest(p_now, p_lane);
  end if;
  claims := 0;
  jobs := 0;
  if tally.open_nos <> '{}' or coalesce(v_cur.no > coalesce(tally.settled_no, 0), false) then      -- else all has ended that was claimed
    v_open := millrace.lane_open(p_lane, tally);
    claims := v_open.claims;
    jobs := v_open.jobs;
  end if;
end $$;

-- Brings the ledgers of some lanes on where they are older than p_age.
create or replace function millrace.lanes_count(p_now timestamptz, p_lanes int[], p_age interval)
returns void
language plpgsql
as $$
begin
  perform millrace.lane_count(p_now, l, p_age)
     from unnest(p_lanes) l;
end $$;
