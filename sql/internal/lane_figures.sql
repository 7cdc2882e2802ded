-- SPDX-License-Identifier: PostgreSQL
-- All that is known of a lane: the newest row of its ledger, brought on where it is older than p_age; how many jobs wait, exactly, and since when the
-- first; how many claims are open, and how many jobs in them.
create or replace function millrace.lane_figures(p_now timestamptz, p_lane int, p_age interval, out depth bigint, out oldest_at timestamptz, out claims bigint,
                                                 out jobs bigint, out tally millrace.tally)
language plpgsql
as $$
declare
  v_cur  millrace.lane_cursor := millrace.lane_cursor(p_lane, pg_sequence_last_value('millrace.seg_seq'::regclass)::int);
  v_open record;
begin
  tally := millrace.lane_count(p_now, p_lane, p_age);
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
