-- SPDX-License-Identifier: PostgreSQL
-- The jobs available in a lane, exactly.
create or replace function millrace.lane_depth(p_now timestamptz, p_lane int)
returns bigint
language plpgsql
as $$
begin
  return greatest(0, millrace.lane_left(p_now, p_lane) - millrace.lane_marked(p_lane));
end $$;

-- The jobs in a lane that are marked and not passed yet: they are no longer available.
create or replace function millrace.lane_marked(p_lane int)
returns bigint
language plpgsql
stable
as $$
begin
  return case when millrace.marks_exist() then (select count(*) from millrace.mark m where m.lane = p_lane and m.letter in ('k', 'w')) else 0 end;
end $$;

-- The jobs that the cursor of a lane has not passed: what the ledger counted, plus what has come since, less what was claimed.
create or replace function millrace.lane_left(p_now timestamptz, p_lane int)
returns bigint
language plpgsql
as $$
declare
  v_tally millrace.tally := millrace.lane_count(p_now, p_lane, '1 second');
  v_claimed bigint := (millrace.lane_cursor(p_lane, pg_sequence_last_value('millrace.seg_seq'::regclass)::int)).total;
begin
  return greatest(0, coalesce(v_tally.counted, 0) - coalesce(v_claimed, 0)
                     + (millrace.window_count(p_lane, coalesce(v_tally.win_hi, '1:1:'), millrace.snapshot())).n);
end $$;

-- The jobs available in a queue, its tenants' included. Of many lanes only those are counted that may have jobs.
create or replace function millrace.queue_depth(p_now timestamptz, p_queue millrace.queue)
returns bigint
language plpgsql
as $$
declare
  v_lanes int[] := millrace.lanes_family(p_queue);
begin
  if p_queue.has_tenants then
    v_lanes := millrace.lanes_ready(v_lanes, null);
  end if;
  return (select coalesce(sum(millrace.lane_depth(p_now, l)), 0) from unnest(v_lanes) l);
end $$;
