-- SPDX-License-Identifier: PostgreSQL
-- Moves the cursor of one lane: the heart of the claim log.
--   p_mode r: takes up to p_max jobs under a lease and returns them
--          t: takes nothing; appends a cursor that has skipped what is exhausted (a tick)
--          p: takes up to p_max jobs and forgets them (purge)
--          o: looks only; returns the first job that waits, its created_at replaced by the time it became available
-- The caller holds the lane's lock (o needs none). Invariants:
--   1. The window (lo, hi] of a row is frozen: every xid visible in hi has ended, and the statement that reads was
--      started after hi was taken. Windows are disjoint and cover every xid.
--   2. Inside a window rows come by (segment, xid, pos), so one stored triple resumes.
--   3. The top segment is read after hi: what is visible in hi lies at or below it.
--   4. One leaf is read at a time, whatever the backlog.
create or replace function millrace.lane_take(p_now timestamptz, p_lane int, p_max int, p_mode "char", p_holder text,
                                              p_lease interval, p_own_lease boolean, p_state boolean)
returns setof millrace.claimed_job
language plpgsql
as $$
declare
  -- Few defaults and plain scalars on purpose: each costs a part of a microsecond in every claim.
  c_batch_of_odd constant int := 10000;     -- expired or damaged rows passed over in one call
  c_costly constant interval := '5 ms';     -- an empty poll that took longer leaves a tick
  v_begun   timestamptz := clock_timestamp();
  v_open    int := pg_sequence_last_value('millrace.seg_seq'::regclass);
  v_cur_no  bigint;
  v_cur_seg int := v_open;
  v_win_no  bigint;
  v_total   bigint;
  v_token   uuid;
  v_lease   text;
  v_until   timestamptz;
  v_rank    int;
  v_lo      pg_snapshot;
  v_hi      pg_snapshot;
  v_seg     int;
  v_xid     xid8;
  v_pos     bigint;
  v_fresh   boolean;
  v_apart   boolean := false;                -- the cursor's window is in another row
  v_top     int;
  v_range   record;
  v_from_xid xid8;
  v_from_pos bigint;
  v_limit   int;
  v_k       int;
  v_row     record;
  v_taken   int := 0;
  v_n       int := 0;
  v_min_seg int;
  v_positions bigint[];
  v_ids     bigint[];
  v_plain   boolean := true;
  v_odd     int[];
  v_marks   text;
  v_wait    interval;
begin
  select k.no, k.win_no, k.total, k.win_lo, k.win_hi, k.last_seg, k.last_xid, k.last_pos
    into v_cur_no, v_win_no, v_total, v_lo, v_hi, v_seg, v_xid, v_pos
    from millrace.claim k
   where k.slot = v_open % 16
     and k.lane = p_lane
   order by k.no desc
   limit 1;
  if v_cur_no is null then
    select c.no, c.seg, c.win_no, c.total, c.lo, c.hi, c.last_seg, c.last_xid, c.last_pos
      into v_cur_no, v_cur_seg, v_win_no, v_total, v_lo, v_hi, v_seg, v_xid, v_pos
      from millrace.lane_cursor(p_lane, v_open) c;
  elsif v_hi is null then
    v_apart := true;
    select k.win_lo, k.win_hi
      into v_lo, v_hi
      from millrace.claim k
     where k.slot = v_open % 16
       and k.lane = p_lane
       and k.no = v_win_no;
  end if;
  if v_cur_no is null then
    v_cur_no := 0;
    v_total := 0;
    v_lo := '1:1:';
    v_hi := millrace.snapshot();
    v_fresh := true;
  end if;
  if p_mode = 'r' then
    v_token := gen_random_uuid();
    v_lease := format('%s.%s.%s.%s', v_open % 16, p_lane, v_cur_no + 1, v_token);
    v_until := p_now + p_lease;
    v_rank := (p_lane >> 5) & 127;
    v_wait := '0';
  end if;

  <<windows>>
  loop
    v_top := pg_sequence_last_value('millrace.seg_seq'::regclass);
    if v_seg is null then
      v_xid := '0';
      v_pos := -1;
      v_range := millrace.window_ranges(v_lo, v_hi, '0');
      v_seg := millrace.floor_seg(case when v_range.late then pg_snapshot_xmin(v_lo) else pg_snapshot_xmax(v_lo) end);
    elsif v_seg <= v_top then
      v_range := millrace.window_ranges(v_lo, v_hi, case when v_seg = v_top then v_xid else '0' end);
    end if;
    while v_seg <= v_top loop
      for i in 1 .. coalesce(cardinality(v_range.to_xid), 0) loop
        continue when v_range.to_xid[i] <= v_xid;
        v_from_xid := v_range.from_xid[i];
        v_from_pos := v_range.from_pos[i];
        if v_from_xid < v_xid then
          v_from_xid := v_xid;
          v_from_pos := v_pos;
        elsif v_from_xid = v_xid then
          v_from_pos := greatest(v_from_pos, v_pos);
        end if;
        loop
          v_limit := p_max - v_taken;
          v_k := 0;
          for v_row in
            -- A row with a part out of line is read by job_read, one at a time: to build it here would raise if the part is damaged.
            select case
                     when coalesce(pg_column_size(j.payload_args), 0) + coalesce(pg_column_size(j.payload_meta), 0) + coalesce(pg_column_size(j.payload_state), 0)
                          + coalesce(pg_column_size(j.payload_blob), 0) + coalesce(pg_column_size(j.job_tenant), 0)
                          + coalesce(pg_column_size(j.job_ref), 0) + coalesce(pg_column_size(j.trail), 0) < 1500
                     then row(v_lease, j.job_id, j.attempt, j.attempts_limit, j.job_kind, j.payload_args, j.payload_meta,
                              case when p_state then j.payload_state end, j.payload_blob, j.job_tenant, j.job_ref, v_rank,
                              j.job_source, j.created_at, v_until, j.run_limit)::millrace.claimed_job
                   end as job,
                   j.xid, j.pos, j.job_id, coalesce(j.ready_at, j.created_at) as ready_at, j.stale_at
              from millrace.job j
             where j.slot = v_seg % 16
               and j.lane = p_lane
               and (j.xid, j.pos) > (v_from_xid, v_from_pos)
               and j.xid < v_range.to_xid[i]
               and pg_visible_in_snapshot(j.xid, v_hi)
             order by j.lane, j.xid, j.pos
             limit v_limit
          loop
            exit windows when p_mode = 't';
            if p_mode = 'o' then
              v_row.job.created_at := v_row.ready_at;
              return next v_row.job;
              return;
            end if;
            v_k := v_k + 1;
            v_n := v_n + 1;
            v_positions := v_positions || v_row.pos;
            v_ids := v_ids || v_row.job_id;
            if v_row.job_id <> v_row.pos then
              v_plain := false;
            end if;
            if v_min_seg is null then
              v_min_seg := v_seg;
            end if;
            if p_mode = 'r' then
              if v_row.stale_at <= p_now then
                v_odd := v_odd || v_n;
                v_marks := concat(v_marks, case when v_row.stale_at = '-infinity' then 'd' else 'x' end);
                continue;
              elsif v_row.job is null then
                v_row.job := millrace.job_read(v_seg % 16, v_row.job_id, v_row.pos, v_lease, v_rank, v_until, p_state);
                if v_row.job is null then
                  v_odd := v_odd || v_n;
                  v_marks := concat(v_marks, 'd');
                  perform millrace.job_bury_damaged(p_now, v_seg % 16, v_row.job_id, v_row.pos);
                  continue;
                end if;
              end if;
              v_wait := v_wait + (p_now - v_row.ready_at);
              return next v_row.job;
            end if;
            v_taken := v_taken + 1;
          end loop;
          if v_k > 0 then
            v_xid := v_row.xid;
            v_pos := v_row.pos;
            v_from_xid := v_xid;
            v_from_pos := v_pos;
          end if;
          exit windows when v_taken >= p_max or v_n - v_taken >= c_batch_of_odd;
          exit when v_k < v_limit;
        end loop;
      end loop;
      v_seg := v_seg + 1;
      v_xid := '0';
      v_pos := -1;
    end loop;
    exit when v_n > 0 or v_fresh;
    v_lo := v_hi;
    v_hi := millrace.snapshot();
    v_seg := null;
    v_fresh := true;
  end loop;

  if v_n = 0 and p_mode <> 't' then
    -- An empty poll writes nothing, but where the next one would be dear: it has taken long, or lanes_ready needs the window at hand.
    if p_mode = 'o' or clock_timestamp() - v_begun < c_costly and not v_apart then
      return;
    end if;
    p_mode := 't';
  end if;
  if p_mode = 't' and v_fresh is not true and v_cur_seg = v_open then
    return;      -- jobs wait in the window, and its cursor is where it belongs
  end if;
  -- The xid first, then the segment: a claim is stored in a segment that is not closed before its transaction's xid, so a sealed
  -- segment gets no more claims. A rotation in between makes the slot in the lease one too small; lease_take knows.
  perform pg_current_xact_id();
  v_open := pg_sequence_last_value('millrace.seg_seq'::regclass);
  v_fresh := v_fresh is true or v_cur_seg <> v_open;      -- each leaf holds the windows of its own rows
  insert into millrace.claim (slot, seg, lane, no, win_no, last_xid, last_pos, last_seg, min_seg, n, total, token, claimed_at,
                              wait_us, holder, lease_time, win_lo, win_hi, positions, job_ids, leased_till, status, open_n,
                              finished_at, outcome)
  values (v_open % 16, v_open, p_lane, v_cur_no + 1, case when v_fresh then v_cur_no + 1 else v_win_no end, v_xid, v_pos, v_seg,
          coalesce(v_min_seg, v_seg), v_n, v_total + v_n, v_token, p_now,
          coalesce(date_part('epoch', v_wait) * 1e6, 0), p_holder, case when p_own_lease then p_lease end,
          case when v_fresh then v_lo end, case when v_fresh then v_hi end,
          case when p_mode = 'r' then v_positions end, case when p_mode = 'r' and not v_plain then v_ids end,
          case when v_taken > 0 and p_mode = 'r' then v_until end,
          case when p_mode = 'r' and v_taken = 0 then 'd' else p_mode end,
          case when p_mode = 'r' then v_taken else 0 end,
          case when p_mode <> 'r' or v_taken = 0 then p_now end,
          case when v_odd is not null then millrace.outcome_with(repeat('o', v_n), v_odd, v_marks) end);
end $$;
