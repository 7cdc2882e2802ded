-- SPDX-License-Identifier: PostgreSQL
-- Moves the cursor of one lane: the heart of the claim log. Returns what it took; claim_read, claim_batch and claim_packs read the jobs.
--   p_mode r: takes up to p_max jobs under a lease
--          t: takes nothing; appends a cursor that has skipped what is exhausted (a tick)
--          p: takes up to p_max jobs and forgets them (purge)
--          m: takes up to p_max jobs, marked ones too, which go on elsewhere: the caller reads the ranges and sees to the marks (move)
--          o: looks only; tells where the first job that waits lies
-- The caller holds the lane's lock (o needs none). Invariants:
--   1. The window (lo, hi] of a row is frozen: every xid visible in hi has ended, and the statement that reads was
--      started after hi was taken. Windows are disjoint and cover every xid. So a range holds the same rows whenever it is read.
--   2. Inside a window rows come by (segment, xid, pos), so one stored triple resumes.
--   3. The top segment is read after hi: what is visible in hi lies at or below it.
--   4. One leaf is read at a time, whatever the backlog.
-- In every claim a statement costs ten microseconds or more, PERFORM included, and an expression one (each is set up anew in each
-- transaction); a step in a loop over jobs costs a third of one for each job. Hence few of the first and none of the last.
-- Every statement of the usual way names its leaf: one on the whole ring would lock all of them, and wait while upkeep truncates one (see by_leaf).
do $do$
begin
  execute format($sql$
create or replace function millrace.lane_take(p_now timestamptz, p_lane int, p_max int, p_mode "char", p_holder text,
                                              p_lease interval, p_own_lease boolean, p_state boolean)
returns millrace.taken
language plpgsql
as $$
declare
  c_batch_of_odd constant int := 10000;     -- rows passed over in one call: expired, cancelled, damaged
  c_large constant int := 1500;             -- bytes that may lie out of line, see take_odd
  c_budget constant bigint := 16777216;     -- bytes of large jobs in a claim
  c_costly constant interval := '5 ms';     -- an empty poll that took longer leaves a tick
  v_begun   timestamptz;
  v_open    int := pg_sequence_last_value('millrace.seg_seq'::regclass);
  v_cur_no  bigint;
  v_cur_seg int;
  v_win_no  bigint;
  v_total   bigint;
  v_apart   boolean;                         -- the cursor's window is in another row
  v_lo      pg_snapshot;
  v_hi      pg_snapshot;
  v_seg     int;
  v_xid     xid8;
  v_pos     bigint;
  v_fresh   boolean;
  v_top     int;
  v_range   record;
  v_from_xid xid8;
  v_from_pos bigint;
  v_found   record;
  v_few     boolean := p_mode = 'r' and p_max <= 8;      -- read with the cursor's move, not after it: saves a statement
  v_lease   text;
  v_until   timestamptz;
  v_taken   int := 0;                        -- jobs
  v_jobs    millrace.claimed_job[];
  v_in_seg  int[];                           -- the ranges taken
  v_in_xid  xid8[];
  v_in_pos  bigint[];
  v_in_end  xid8[];
  v_in_rows int[];
  v_in_till_xid xid8[];                      -- the last job of each
  v_in_till_pos bigint[];
  v_in      int := 0;                        -- how many they are
  v_token   uuid;
  v_n       int := 0;                        -- rows, odd ones included
  v_min_seg int;
  v_positions bigint[];
  v_ids     bigint[];
  v_wait    interval;
  v_bytes   bigint := 0;
  v_odd     int[];
  v_marks   text;
  v_marked  boolean;                         -- somewhere
  v_hit     boolean;                         -- here
  v_rated   boolean;                         -- jobs of tenants, and they have a rate
  v_hooks   millrace.hook[];                 -- see jobs_ended
  v_plain   boolean;                         -- nothing in a range but jobs to be read later
  v_sort    int;                             -- see range_look
  v_heavy   record;
begin
  -- With the cursor comes what a claim needs once: as a column of this statement it costs less than as one of its own.
  %1$s
  if v_cur_no is null then
    select c.no, c.seg, c.win_no, c.total, c.lo, c.hi, c.last_seg, c.last_xid, c.last_pos, false, v_open, clock_timestamp(), gen_random_uuid(),
           p_now + p_lease, coalesce(pg_sequence_last_value('millrace.mark_hint'::regclass), 0) > 0
      into v_cur_no, v_cur_seg, v_win_no, v_total, v_lo, v_hi, v_seg, v_xid, v_pos, v_apart, v_top, v_begun, v_token, v_until, v_marked
      from millrace.lane_cursor(p_lane, v_open) c;
    if v_cur_no is null then
      v_cur_no := 0;
      v_cur_seg := v_open;
      v_total := 0;
      v_lo := '1:1:';
      v_hi := millrace.snapshot();
      v_fresh := true;
    end if;
  end if;
  if p_mode = 'r' then
    v_lease := concat(v_open %% 16, '.', p_lane, '.', v_cur_no + 1, '.', v_token);
  else
    v_token := null;
    v_until := null;
  end if;

  <<windows>>
  loop
    if v_seg is null then
      v_top := pg_sequence_last_value('millrace.seg_seq'::regclass);
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
        v_from_xid := greatest(v_range.from_xid[i], v_xid);
        v_from_pos := case
                        when v_range.from_xid[i] < v_xid then v_pos
                        when v_range.from_xid[i] = v_xid then greatest(v_range.from_pos[i], v_pos)
                        else v_range.from_pos[i]
                      end;
        loop
          if v_few then
            %2$s
          else
            %3$s
          end if;
          exit when v_found.n = 0;
          v_plain := not (v_found.sort > 0 or v_found.tenanted or v_marked or v_few or p_mode <> 'r' or v_jobs is not null);
          if not v_plain then
            exit windows when p_mode = 't';
            v_hit := v_marked and exists (select from millrace.mark m where m.lane = p_lane and m.pos = any (v_found.positions));
            v_rated := v_found.tenanted and (select q.tenant_rate is not null from millrace.queue q where q.queue_id = p_lane >> 12);
            v_sort := case
                        when p_mode <> 'r' or not (v_found.sort > 0 or v_hit or v_rated) then 0
                        when v_hit or v_rated or v_jobs is not null then 2
                        else v_found.sort
                      end;
            if v_sort = 1 then
              %5$s
              exit windows when v_heavy.n = 0;
              v_bytes := v_bytes + coalesce(v_heavy.bytes, 0);
              if v_heavy.n < v_found.n then
                %6$s
                v_found.cut := true;
              elsif v_heavy.n is null then
                v_sort := 2;
              end if;
            end if;
            if v_sort = 2 then
              exit windows when v_n > 0 and v_jobs is null;      -- a lease is of one sort: these are for the next claim
              %4$s      -- it reads on behind those that were looked at
              exit windows when v_found.n = 0;
              v_bytes := v_bytes + v_found.bytes;
              v_jobs := v_jobs || v_found.jobs;
              v_taken := cardinality(v_jobs);
              v_odd := v_odd || v_found.ordinals;
              v_marks := concat(v_marks, v_found.marks);
              if v_found.hooks is not null then
                v_hooks := v_hooks || array_fill(null::millrace.hook, array[v_n - coalesce(cardinality(v_hooks), 0)]) || v_found.hooks;
              end if;
            elsif v_few then
              v_jobs := v_jobs || v_found.jobs;
              v_taken := v_taken + v_found.n;
            else
              exit windows when cardinality(v_jobs) > 0;
              if p_mode = 'p' and v_found.sort > 0 then
                perform millrace.range_ended(p_now, v_seg %% 16, p_lane, v_from_xid, v_from_pos, v_range.to_xid[i], v_hi, v_found.n);
              end if;
              v_jobs := null;
              v_plain := true;
            end if;
          end if;
          if v_plain then
            v_taken := v_taken + v_found.n;
            if v_in_seg[v_in] = v_seg and v_in_end[v_in] = v_range.to_xid[i] and v_in_till_xid[v_in] = v_from_xid and v_in_till_pos[v_in] = v_from_pos then
              v_in_rows[v_in] := v_in_rows[v_in] + v_found.n;      -- it goes on
            else
              v_in := v_in + 1;
              v_in_seg[v_in] := v_seg;
              v_in_xid[v_in] := v_from_xid;
              v_in_pos[v_in] := v_from_pos;
              v_in_end[v_in] := v_range.to_xid[i];
              v_in_rows[v_in] := v_found.n;
            end if;
            v_in_till_xid[v_in] := v_found.xid;
            v_in_till_pos[v_in] := v_found.positions[v_found.n];
          end if;
          v_n := v_n + v_found.n;
          v_positions := v_positions || v_found.positions;
          v_ids := v_ids || v_found.ids;
          v_wait := v_found.wait + coalesce(v_wait, '0');
          v_min_seg := coalesce(v_min_seg, v_seg);
          v_xid := v_found.xid;
          v_pos := v_found.positions[v_found.n];
          exit windows when v_taken >= p_max or v_n - v_taken >= c_batch_of_odd or v_found.cut;
          exit when not v_found.more;
          v_from_xid := v_xid;
          v_from_pos := v_pos;
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

  if v_n = 0 or p_mode = 'o' then
    if v_n = 0 and p_mode not in ('t', 'o') then
      -- An empty poll writes nothing, but where the next one would be dear: it has taken long, or lanes_ready needs the window at hand.
      if clock_timestamp() - v_begun < c_costly and v_apart is not true then
        return null;
      end if;
      p_mode := 't';
    end if;
    if p_mode = 'o' then
      return row(p_lane, v_lease, v_until, v_taken, v_hi, v_in_seg, v_in_xid, v_in_pos, v_in_end, v_in_rows, v_jobs, null::text, v_in_till_xid, v_in_till_pos);
    elsif p_mode = 't' and v_fresh is not true and v_cur_seg = v_open then
      return null;      -- jobs wait in the window, and its cursor is where it belongs
    end if;
  end if;
  -- The xid first, then the segment: a claim is stored in a segment that is not closed before its transaction's xid, so a sealed
  -- segment gets no more claims. A rotation in between makes the slot in the lease one too small; lease_take knows.
  if pg_current_xact_id() is not null then
    v_open := pg_sequence_last_value('millrace.seg_seq'::regclass);
  end if;
  v_fresh := v_fresh is true or v_cur_seg <> v_open;      -- each leaf holds the windows of its own rows
  insert into millrace.claim (slot, seg, lane, no, win_no, last_xid, last_pos, last_seg, min_seg, n, total, token, claimed_at,
                              wait_us, holder, lease_time, win_lo, win_hi, positions, job_ids, leased_till, status, open_n,
                              finished_at, outcome, hooks, win_min, win_max)
  values (v_open %% 16, v_open, p_lane, v_cur_no + 1, case when v_fresh then v_cur_no + 1 else v_win_no end, v_xid, v_pos, v_seg,
          coalesce(v_min_seg, v_seg), v_n, v_total + v_n, v_token, p_now,
          case when p_mode = 'r' then coalesce(date_part('epoch', v_wait) * 1e6, 0) else 0 end, p_holder, case when p_own_lease then p_lease end,
          case when v_fresh then v_lo end, case when v_fresh then v_hi end,
          case when p_mode in ('r', 'm') then v_positions end, case when p_mode in ('r', 'm') and v_ids <> v_positions then v_ids end,
          case when v_taken > 0 and p_mode = 'r' then v_until end,
          case when p_mode = 'r' and v_taken = 0 or p_mode = 'm' then 'd' else p_mode end,
          case when p_mode = 'r' then v_taken else 0 end,
          case when p_mode <> 'r' or v_taken = 0 then p_now end,
          case when v_odd is not null or v_hooks is not null then millrace.outcome_with(repeat('o', v_n), coalesce(v_odd, '{}'), v_marks)
               when p_mode = 'm' then repeat('w', v_n) end,
          case when v_taken > 0 then v_hooks end,
          case when v_seg > v_open or v_xid >= pg_snapshot_xmax(v_lo) then pg_snapshot_xmin(v_hi) end,      -- for lane_take_one
          case when v_seg > v_open or v_xid >= pg_snapshot_xmax(v_lo) then pg_snapshot_xmax(v_hi) end);
  if v_odd is not null or v_marked or v_taken = 0 then
    if v_hooks is not null and v_odd is not null then
      perform millrace.jobs_ended(p_now, millrace.hooks_of(v_hooks, v_odd), translate(v_marks, 'k', 'w'));      -- k was told
    end if;
    if v_marked and v_n > 0 and p_mode in ('r', 'p') then
      perform millrace.marks_end(p_now, p_lane, case when p_mode = 'p' then v_positions
                                                     else array(select v_positions[o.at]
                                                                  from unnest(v_odd) with ordinality o(at, i)
                                                                 where substr(v_marks, o.i::int, 1) in ('k', 'w')) end);
    end if;
    if p_mode = 'r' and v_taken = 0 then
      if v_n < c_batch_of_odd then
        -- All that was left of the window has expired or was cancelled: the next one may have jobs, and they come before those of a lower priority.
        return millrace.lane_take(p_now, p_lane, p_max, p_mode, p_holder, p_lease, p_own_lease, p_state);
      end if;
      perform millrace.wake(p_lane >> 12, p_now);      -- there may be more behind: a worker that finds nothing here need not wait for long
    end if;
  end if;
  return row(p_lane, v_lease, v_until, v_taken, v_hi, v_in_seg, v_in_xid, v_in_pos, v_in_end, v_in_rows, v_jobs, null::text, v_in_till_xid, v_in_till_pos);
end $$
  $sql$,
    millrace.by_leaf('v_open', $one$
  select k.no, k.win_no, k.total, coalesce(k.win_lo, w.win_lo), coalesce(k.win_hi, w.win_hi), k.last_seg, k.last_xid, k.last_pos, k.win_hi is null,
         v_open, v_open, clock_timestamp(), gen_random_uuid(), p_now + p_lease,
         coalesce(pg_sequence_last_value('millrace.mark_hint'::regclass), 0) > 0
    into v_cur_no, v_win_no, v_total, v_lo, v_hi, v_seg, v_xid, v_pos, v_apart, v_cur_seg, v_top, v_begun, v_token, v_until, v_marked
    from (select k.no, k.win_no, k.total, k.win_lo, k.win_hi, k.last_seg, k.last_xid, k.last_pos
            from millrace.claim_%1$s k
           where k.lane = p_lane
           order by k.lane desc, k.no desc
           limit 1) k
    left join lateral (select w.win_lo, w.win_hi
                         from millrace.claim_%1$s w
                        where w.lane = p_lane
                          and w.no = k.win_no
                          and k.win_hi is null
                        limit 1) w on true;$one$),
    millrace.by_leaf('v_seg', 'v_found := millrace.range_few_%s(p_now, p_lane, v_from_xid, v_from_pos, v_range.to_xid[i], v_hi, p_max - v_taken, v_lease, v_until);'),
    millrace.by_leaf('v_seg', 'v_found := millrace.range_look_%s(p_now, p_lane, v_from_xid, v_from_pos, v_range.to_xid[i], v_hi, p_max - v_taken);'),
    millrace.by_leaf('v_seg', 'v_found := millrace.take_odd_%s(p_now, p_lane, v_from_xid, v_from_pos, v_range.to_xid[i], v_hi, p_max - v_taken, v_n,
                                                              v_taken, c_budget - v_bytes, v_lease, v_until, p_state, v_marked);'),
    millrace.by_leaf('v_seg', 'v_heavy := millrace.range_heavy_%s(p_lane, v_from_xid, v_from_pos, v_range.to_xid[i], v_hi, p_max - v_taken, c_budget - v_bytes, v_taken = 0, p_state);'),
    millrace.by_leaf('v_seg', 'v_found := millrace.range_look_%s(p_now, p_lane, v_from_xid, v_from_pos, v_range.to_xid[i], v_hi, v_heavy.n);'));
end $do$;
