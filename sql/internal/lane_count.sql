-- SPDX-License-Identifier: PostgreSQL
-- Counts a lane on: adds the rows of the window since the last count and the claims that ended since to the running totals, each
-- once. Does nothing when the last count is younger than p_max_age, when another session counts, or in a read-only transaction.
-- Returns the newest row of the ledger.
-- Whoever counts may be in a long transaction (a producer, see gauge.sql), and must hold nobody up: the lock ends with the count, not
-- with the transaction. So others may count from the same row on while this count is not committed. Each row is right
-- by itself, as long as the one that it started from is still the newest at the end: the leaves that it read cannot have been truncated
-- then. The number and the segment are taken under the lock, so the row counted last is the newest whoever commits first.
create or replace function millrace.lane_count(p_now timestamptz, p_lane int, p_max_age interval)
returns millrace.tally
language plpgsql
as $$
declare
  v_old millrace.tally := millrace.lane_tally(p_lane);
  v_new millrace.tally;
begin
  if p_now - v_old.counted_at < p_max_age and p_now >= v_old.counted_at
     or current_setting('transaction_read_only') = 'on'
     or current_setting('transaction_isolation') <> 'read committed' then
    return v_old;
  end if;
  begin
    if pg_try_advisory_xact_lock(1297219593, p_lane) then
      v_old := millrace.lane_tally(p_lane);      -- once more: the lock may have come after another session's count
      v_new := millrace.lane_counted(p_now, p_lane, v_old);
    end if;
    raise exception using errcode = 'MRLET';      -- to let go of the lock
  exception
    when sqlstate 'MRLET' then
      null;
  end;
  if v_new.no is null then
    return v_old;
  end if;
  perform millrace.tally_add(v_new);
  return v_new;
end $$;

-- The row that follows p_old in the ledger of a lane; all null where nothing has happened since, or where the ledger was counted on meanwhile.
-- The caller holds the lock of the lane's ledger.
create or replace function millrace.lane_counted(p_now timestamptz, p_lane int, p_old millrace.tally)
returns millrace.tally
language plpgsql
as $$
declare
  v_new  millrace.tally := p_old;
  v_come record;
begin
  v_new.seg := pg_sequence_last_value('millrace.seg_seq'::regclass);
  v_new.lane := p_lane;
  v_new.counted_at := p_now;
  v_new.win_hi := millrace.snapshot();
  v_come := millrace.window_count(p_lane, coalesce(p_old.win_hi, '1:1:'), v_new.win_hi);
  v_new.counted := coalesce(p_old.counted, 0) + v_come.n;
  v_new.fresh_total := coalesce(p_old.fresh_total, 0) + v_come.fresh;
  v_new := millrace.tally_settled(v_new);
  if p_old.no is not null and v_new.seg = p_old.seg and v_new.counted = p_old.counted and v_new.settled_no = p_old.settled_no
     and v_new.open_nos = p_old.open_nos and v_new.done_total = p_old.done_total and v_new.failed_total = p_old.failed_total
     and pg_snapshot_xmin(p_old.win_hi) >= coalesce(millrace.sealed_xid(), '0') then
    return null;
  end if;
  return millrace.tally_numbered(v_new, p_old.no);
end $$;

-- A row of a lane's ledger with the claims that ended since it was written: each is added to the totals once.
create or replace function millrace.tally_settled(p_old millrace.tally)
returns millrace.tally
language plpgsql
as $$
declare
  v_new   millrace.tally := p_old;
  v_slot  int := pg_sequence_last_value('millrace.seg_seq'::regclass) % 16;      -- open claims are mostly there: one leaf and not seventeen
  v_ended record;
begin
  select coalesce(sum(k.done_n) filter (where k.status <> 'r'), 0) as done,
         coalesce(sum(k.failed_n) filter (where k.status <> 'r'), 0) as failed,
         coalesce(sum(k.wait_us) filter (where k.status <> 'r'), 0) as wait,
         coalesce(sum(k.run_us) filter (where k.status <> 'r'), 0) as run,
         coalesce(sum(length(k.outcome) - length(replace(k.outcome, 'f', ''))) filter (where k.status <> 'r'), 0) as retried,
         coalesce(sum(length(k.outcome) - length(replace(k.outcome, 'd', ''))) filter (where k.status <> 'r'), 0) as dead,
         coalesce(sum(length(k.outcome) - length(replace(k.outcome, 'l', ''))) filter (where k.status <> 'r'), 0) as rescued,
         coalesce(sum(case k.status when 'p' then k.n else length(k.outcome) - length(replace(k.outcome, 'k', '')) end)
                    filter (where k.status <> 'r'), 0) as cancelled,
         array_agg(k.wait_us / k.n) filter (where k.status in ('d', 'l') and k.n > 0 and k.run_us > 0) as waits,
         array_agg(k.run_us / k.n) filter (where k.status in ('d', 'l') and k.n > 0 and k.run_us > 0) as runs,
         array_agg(k.n) filter (where k.status in ('d', 'l') and k.n > 0 and k.run_us > 0) as jobs,
         coalesce(array_agg(k.no) filter (where k.status = 'r'), '{}') as open_nos,
         coalesce(max(k.no), 0) as top
    into v_ended
    from (select k.no, k.status, k.n, k.done_n, k.failed_n, k.wait_us, k.run_us, k.outcome
            from unnest(p_old.open_nos) o
           cross join lateral (select k.no, k.status, k.n, k.done_n, k.failed_n, k.wait_us, k.run_us, k.outcome
                                 from millrace.claim k
                                where k.slot = v_slot
                                  and k.lane = p_old.lane
                                  and k.no = o
                                union all
                               select k.no, k.status, k.n, k.done_n, k.failed_n, k.wait_us, k.run_us, k.outcome
                                 from millrace.claim k
                                where k.lane = p_old.lane
                                  and k.no = o
                                  and k.status <> 't'      -- what a parked claim leaves behind
                                limit 1) k
           union all
          select k.no, k.status, k.n, k.done_n, k.failed_n, k.wait_us, k.run_us, k.outcome
            from millrace.claim k
           where k.lane = p_old.lane
             and k.no > coalesce(p_old.settled_no, 0)) k;
  v_new.settled_no := greatest(coalesce(p_old.settled_no, 0), v_ended.top);
  v_new.open_nos := v_ended.open_nos;
  v_new.done_total := coalesce(p_old.done_total, 0) + v_ended.done;
  v_new.failed_total := coalesce(p_old.failed_total, 0) + v_ended.failed;
  v_new.wait_total := coalesce(p_old.wait_total, 0) + v_ended.wait;
  v_new.run_total := coalesce(p_old.run_total, 0) + v_ended.run;
  v_new.fresh_total := coalesce(v_new.fresh_total, 0);
  v_new.retried_total := coalesce(p_old.retried_total, 0) + v_ended.retried;
  v_new.dead_total := coalesce(p_old.dead_total, 0) + v_ended.dead;
  v_new.rescued_total := coalesce(p_old.rescued_total, 0) + v_ended.rescued;
  v_new.cancelled_total := coalesce(p_old.cancelled_total, 0) + v_ended.cancelled;
  v_new.wait_spread := coalesce(p_old.wait_spread, '{}');
  v_new.run_spread := coalesce(p_old.run_spread, '{}');
  if v_ended.jobs is not null then
    -- A claim knows the sums over its jobs only, so each job counts with the average of its claim.
    v_new.wait_spread := millrace.spread_with(v_new.wait_spread, v_ended.waits, v_ended.jobs);
    v_new.run_spread := millrace.spread_with(v_new.run_spread, v_ended.runs, v_ended.jobs);
  end if;
  return v_new;
end $$;

-- The same row with its place in the ledger: the next number, the open segment. All null where p_after is not the newest row any more.
-- The caller holds the lock of the lane's ledger.
create or replace function millrace.tally_numbered(p_new millrace.tally, p_after bigint)
returns millrace.tally
language plpgsql
as $$
begin
  if (millrace.lane_tally(p_new.lane)).no is distinct from p_after then
    return null;
  end if;
  perform pg_current_xact_id();      -- before the segment is read: see lane_take
  p_new.seg := pg_sequence_last_value('millrace.seg_seq'::regclass);
  p_new.slot := p_new.seg % 16;
  p_new.no := nextval('millrace.tally_seq');
  return p_new;
end $$;

-- Appends a row to a lane's ledger.
create or replace function millrace.tally_add(p_new millrace.tally)
returns void
language plpgsql
as $$
begin
  insert into millrace.tally (slot, seg, lane, no, counted_at, win_hi, counted, settled_no, open_nos, done_total, failed_total,
                              wait_total, run_total, fresh_total, retried_total, dead_total, rescued_total, cancelled_total,
                              wait_spread, run_spread)
  values (p_new.slot, p_new.seg, p_new.lane, p_new.no, p_new.counted_at, p_new.win_hi, p_new.counted, p_new.settled_no, p_new.open_nos,
          p_new.done_total, p_new.failed_total, p_new.wait_total, p_new.run_total, p_new.fresh_total, p_new.retried_total,
          p_new.dead_total, p_new.rescued_total, p_new.cancelled_total, p_new.wait_spread, p_new.run_spread);
end $$;

-- Brings the ledger of a lane on as to what has ended, without counting jobs: it then says that it counted when it did.
-- Nothing happens while another session counts.
create or replace function millrace.lane_settle(p_lane int)
returns void
language plpgsql
as $$
declare
  v_old millrace.tally;
  v_new millrace.tally;
begin
  begin
    if pg_try_advisory_xact_lock(1297219593, p_lane) then
      v_old := millrace.lane_tally(p_lane);
      v_new := v_old;
      v_new.lane := p_lane;
      v_new.counted_at := coalesce(v_old.counted_at, to_timestamp(0));
      v_new.win_hi := coalesce(v_old.win_hi, '1:1:');
      v_new.counted := coalesce(v_old.counted, 0);
      v_new := millrace.tally_numbered(millrace.tally_settled(v_new), v_old.no);
    end if;
    raise exception using errcode = 'MRLET';      -- to let go of the lock, as in lane_count
  exception
    when sqlstate 'MRLET' then
      null;
  end;
  if v_new.no is not null then
    perform millrace.tally_add(v_new);
  end if;
end $$;
