-- SPDX-License-Identifier: PostgreSQL
-- The most usual claim, for claim_take: the one job that waits, or that was asked for. Null where it is not that simple, and lane_take goes
-- on: the open segment holds the cursor and the job, the job is not odd, nothing is marked, and no second one may be taken with it. n is 0 when the lane
-- is surely empty.
-- It takes the next job of the cursor's window. When nothing is left there and no transaction ran at the window's end, the next window
-- begins right behind it and no job in it can be late: then it is taken, too. Jobs come by xid, so the one is read before the other.
-- Only xids below the first that ran are looked at: all of them have ended, and the rows of a bulk load that still runs are not walked.
-- The cursor's row has the ends of its window (win_min, win_max) when its late commits have been read; where it has not, lane_take notes them.
-- To set a statement up costs more here than to run it: by each step of its plan, each column of a step, each function in it, and a subselect is
-- walked through whole. An expression costs a tenth of a statement. Hence one statement for the cursor and the job, into variables, because
-- the fields of a record are looked up by name, and what only some need after it.
-- The caller holds the lane's lock and has no xid yet. lane_take_one_0 to lane_take_one_15 for the leaves, see by_leaf.
do $do$
begin
  for slot in 0..15 loop
    execute format($sql$
create or replace function millrace.lane_take_one_%1$s(p_now timestamptz, p_open int, p_lane int, p_max int, p_holder text,
                                                       p_lease interval, p_own_lease boolean)
returns millrace.taken
language plpgsql
as $$
declare
  v_token     uuid := gen_random_uuid();
  v_lease     text;
  v_until     timestamptz;
  v_no        bigint;           -- the cursor
  v_win_no    bigint;
  v_total     bigint;
  v_last_seg  int;
  v_last_xid  xid8;
  v_last_pos  bigint;
  v_win_min   xid8;
  v_win_max   xid8;
  v_win_sure  boolean;
  v_win_hi    pg_snapshot;
  v_snap      pg_snapshot;
  v_next      boolean;          -- the job is the next window's
  v_xid       xid8;             -- the job
  v_pos       bigint;
  v_pack_n    int2;
  v_pack      jsonb[];
  v_id        bigint;
  v_attempt   int2;
  v_limit     int2;
  v_kind      text;
  v_args      jsonb;
  v_tenant    text;
  v_ref       text;
  v_source    text;
  v_created   timestamptz;
  v_ready     timestamptz;
  v_run_limit interval;
  v_plain     boolean;
begin
  select k.no + 1, k.win_no, k.total, k.last_seg, k.last_xid, k.last_pos, k.win_min, k.win_max, k.win_sure, k.win_hi,
         pg_current_snapshot(), concat('%1$s.', p_lane, '.', k.no + 1, '.', v_token), p_now + p_lease,
         j.xid >= k.win_max, j.*
    into v_no, v_win_no, v_total, v_last_seg, v_last_xid, v_last_pos, v_win_min, v_win_max, v_win_sure, v_win_hi, v_snap, v_lease, v_until, v_next,
         v_xid, v_pos, v_pack_n, v_pack, v_id, v_attempt, v_limit, v_kind, v_args, v_tenant, v_ref, v_source, v_created, v_ready, v_run_limit,
         v_plain
    from (select k.no, k.win_no, k.total, k.last_seg, k.last_xid, k.last_pos, k.win_min, k.win_max, k.win_sure, k.win_hi
            from millrace.claim_%1$s k
           where k.lane = p_lane
           order by k.lane desc, k.no desc
           limit 1) k
    left join lateral (select j.xid, j.pos, j.pack_n, j.pack, j.job_id, j.attempt, j.attempts_limit, j.job_kind, j.payload_args, j.job_tenant,
                              j.job_ref, j.job_source, j.created_at, j.ready_at, j.run_limit,
                              num_nonnulls(j.stale_at, j.payload_meta, j.payload_state, j.payload_blob, j.trail, j.order_key, j.unique_name,
                                           j.batch_id) = 0
                              -- 1500: c_large of lane_take.
                              and coalesce(pg_column_size(j.payload_args), 0) + coalesce(pg_column_size(j.job_tenant), 0)
                                  + coalesce(pg_column_size(j.job_ref), 0) < 1500 as plain
                         from millrace.job_%1$s j
                        where j.lane = p_lane
                          and (j.xid, j.pos) > (case when k.last_seg > p_open then k.win_max else k.last_xid end,
                                                case when k.last_seg > p_open then -1 else k.last_pos end)
                          and j.xid < case when k.win_min = k.win_max then pg_snapshot_xmin(pg_current_snapshot()) else k.win_min end
                        order by j.lane, j.xid, j.pos
                        limit 1) j on true;
  if (v_last_seg >= p_open and v_plain and pg_sequence_last_value('millrace.mark_hint'::regclass) > 0 is not true) is not true then
    -- Surely empty, if the statement above has looked at all there is. Where the window is apart lane_take leaves a tick.
    if v_pos is null and v_last_seg >= p_open and v_win_hi is not null and v_win_min = v_win_max
       and pg_snapshot_xmin(v_snap) = pg_snapshot_xmax(v_snap)
       and pg_sequence_last_value('millrace.seg_seq'::regclass) = p_open then
      if v_win_sure or exists (select from millrace.segment g where g.seg = p_open - 1 and g.closed_xid <= v_win_max) then
        return row(p_lane, null, null, 0, null, null, null, null, null, null, null, null, null, null)::millrace.taken;
      end if;
    end if;
    return null;
  end if;
  if v_next and (v_win_sure is null or v_win_hi is null) then
    -- A job of the next window may also lie in the segment before.
    if not exists (select from millrace.segment g where g.seg = p_open - 1 and g.closed_xid <= v_win_max) then
      return null;
    end if;
    select w.win_hi
      into v_win_hi
      from millrace.claim_%1$s w
     where w.lane = p_lane
       and w.no = v_win_no;
  end if;
  if p_max > 1 or v_pack_n is not null then
    if p_max = 1 then
      v_id := greatest(v_pos - v_pack_n, case when v_xid = v_last_xid then v_last_pos end) + 1;
      v_args := v_pack[v_id - v_pos + v_pack_n];
      v_pos := v_id;
    elsif v_pack_n is not null or v_win_min <> v_win_max or pg_snapshot_xmin(v_snap) <> pg_snapshot_xmax(v_snap) then
      return null;
    elsif pg_sequence_last_value('millrace.pos_seq'::regclass) > v_pos then
      -- Only then others may wait, but for one that overtook this one: it is for the next claim.
      if exists (select
                   from millrace.job_%1$s n
                  where n.lane = p_lane
                    and (n.xid, n.pos) > (v_xid, v_pos)
                    and n.xid < pg_snapshot_xmin(v_snap)) then
        return null;
      end if;
    end if;
  end if;
  -- The xid first, then the segment, as in lane_take.
  if pg_current_xact_id() is null or pg_sequence_last_value('millrace.seg_seq'::regclass) <> p_open then
    return null;
  end if;
  insert into millrace.claim_%1$s (slot, seg, lane, no, win_no, last_xid, last_pos, last_seg, min_seg, n, total, token, claimed_at, wait_us,
                                   holder, lease_time, win_lo, win_hi, positions, job_ids, leased_till, status, open_n, win_min, win_max, win_sure)
  values (%1$s, p_open, p_lane, v_no, case when v_next then v_no else v_win_no end, v_xid, v_pos, p_open, p_open,
          1, v_total + 1, v_token, p_now, date_part('epoch', p_now - coalesce(v_ready, v_created)) * 1e6, p_holder,
          case when p_own_lease then p_lease end, case when v_next then v_win_hi end, case when v_next then v_snap end,
          array[v_pos], case when v_id <> v_pos then array[v_id] end, v_until, 'r', 1,
          case when v_next then pg_snapshot_xmin(v_snap) else v_win_min end,
          case when v_next then pg_snapshot_xmax(v_snap) else v_win_max end, v_next or v_win_sure);
  return row(p_lane, v_lease, v_until, 1, null, null, null, null, null, null,
             array[row(v_lease, v_id, v_attempt, v_limit, v_kind, v_args, null, null, null,
                       v_tenant, v_ref, p_lane >> 5 & 127, v_source, v_created, v_until,
                       v_run_limit)::millrace.claimed_job], null, null, null)::millrace.taken;
end $$
    $sql$, slot);
  end loop;
  -- For those who do not choose the leaf themselves.
  execute format($sql$
create or replace function millrace.lane_take_one(p_now timestamptz, p_open int, p_lane int, p_max int, p_holder text, p_lease interval,
                                                  p_own_lease boolean)
returns millrace.taken
language plpgsql
as $$
begin
  %s
end $$
  $sql$, millrace.by_leaf('p_open', 'return millrace.lane_take_one_%s(p_now, p_open, p_lane, p_max, p_holder, p_lease, p_own_lease);'));
end $do$;
