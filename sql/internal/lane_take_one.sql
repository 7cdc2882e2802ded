-- SPDX-License-Identifier: PostgreSQL
-- The most usual claim, for claim_take: the one job that waits, or that was asked for. Null where it is not that simple, and lane_take goes
-- on: the open segment holds the cursor and the job, the job is not odd, nothing is marked, and no second one may be taken with it. n is 0 when the lane
-- is surely empty.
-- It takes the next job of the cursor's window. When nothing is left there and no transaction ran at the window's end, the next window
-- begins right behind it and no job in it can be late: then it is taken, too. Jobs come by xid, so the one is read before the other.
-- Only xids below the first that ran are looked at: all of them have ended, and the rows of a bulk load that still runs are not walked.
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
  v_cur   record;
  v_apart boolean;
  v_job   record;
begin
  select k.no + 1 as no, k.win_no, k.total, k.last_seg, k.last_xid, k.last_pos, pg_snapshot_xmax(k.win_lo) as start, k.win_hi,
         pg_current_snapshot() as snap, gen_random_uuid() as token,
         coalesce(pg_sequence_last_value('millrace.mark_hint'::regclass), 0) > 0 as marked
    into v_cur
    from millrace.claim_%1$s k
   where k.lane = p_lane
   order by k.lane desc, k.no desc
   limit 1;
  if (v_cur.last_seg >= p_open) is not true or v_cur.marked then
    return null;
  end if;
  if v_cur.win_hi is null then
    v_apart := true;
    select pg_snapshot_xmax(w.win_lo), w.win_hi
      into v_cur.start, v_cur.win_hi
      from millrace.claim_%1$s w
     where w.lane = p_lane
       and w.no = v_cur.win_no;
  end if;
  if v_cur.last_seg > p_open then
    -- Nothing is left of the window. Behind it are only xids that had not begun at its end.
    if pg_snapshot_xmin(v_cur.win_hi) <> pg_snapshot_xmax(v_cur.win_hi) then
      return null;
    end if;
    v_cur.last_xid := pg_snapshot_xmax(v_cur.win_hi);
    v_cur.last_pos := -1;
  end if;
  select j.xid, a.at as pos, case when j.pack_n is null then j.job_id else a.at end as job_id, j.attempt, j.attempts_limit, j.job_kind,
         case when j.pack_n is null then j.payload_args else j.pack[a.at - j.pos + j.pack_n] end as payload_args,
         j.job_tenant, j.job_ref, j.job_source, j.created_at, j.run_limit, j.xid >= pg_snapshot_xmax(v_cur.win_hi) as next,
         date_part('epoch', p_now - coalesce(j.ready_at, j.created_at)) * 1e6 as wait_us,
         concat('%1$s.', p_lane, '.', v_cur.no, '.', v_cur.token) as lease, p_now + p_lease as until,
         coalesce(pg_column_size(j.payload_args), 0) + coalesce(pg_column_size(j.job_tenant), 0)
         + coalesce(pg_column_size(j.job_ref), 0) >= 1500      -- c_large of lane_take
         or num_nonnulls(j.stale_at, j.payload_meta, j.payload_state, j.payload_blob, j.trail, j.order_key, j.unique_name, j.batch_id) > 0
         or p_max > 1 and (a.at < j.pos
                           or pg_snapshot_xmin(s.seen) < pg_snapshot_xmax(s.seen)
                           or exists (select
                                        from millrace.job_%1$s n
                                       where n.lane = p_lane
                                         and (n.xid, n.pos) > (j.xid, j.pos)
                                         and n.xid < pg_snapshot_xmin(s.seen))) as odd
    into v_job
    from (select case when pg_snapshot_xmin(v_cur.win_hi) = pg_snapshot_xmax(v_cur.win_hi) then v_cur.snap else v_cur.win_hi end as seen) s,
         millrace.job_%1$s j
   cross join lateral (select case
                                when j.pack_n is null then j.pos
                                when j.xid = v_cur.last_xid then greatest(j.pos - j.pack_n, v_cur.last_pos) + 1
                                else j.pos - j.pack_n + 1
                              end as at) a
   where v_cur.last_xid >= v_cur.start
     and j.lane = p_lane
     and (j.xid, j.pos) > (v_cur.last_xid, v_cur.last_pos)
     and j.xid < pg_snapshot_xmin(s.seen)
   order by j.lane, j.xid, j.pos
   limit 1;
  if v_job.odd then
    return null;
  elsif v_job.next is not false then
    -- A job of the next window may also lie in the segment before.
    if not exists (select from millrace.segment g where g.seg = p_open - 1 and g.closed_xid <= pg_snapshot_xmax(v_cur.win_hi)) then
      return null;
    elsif v_job.pos is null then
      -- Surely empty, if the statement above has looked at all there is. Where the window is apart lane_take leaves a tick.
      if v_apart or v_cur.last_xid < v_cur.start or pg_snapshot_xmin(v_cur.win_hi) <> pg_snapshot_xmax(v_cur.win_hi)
         or pg_snapshot_xmin(v_cur.snap) <> pg_snapshot_xmax(v_cur.snap)
         or pg_sequence_last_value('millrace.seg_seq'::regclass) <> p_open then
        return null;
      end if;
      return row(p_lane, null, null, 0, null, null, null, null, null, null, null, null)::millrace.taken;
    end if;
  end if;
  -- The xid first, then the segment, as in lane_take.
  if pg_current_xact_id() is null or pg_sequence_last_value('millrace.seg_seq'::regclass) <> p_open then
    return null;
  end if;
  insert into millrace.claim_%1$s (slot, seg, lane, no, win_no, last_xid, last_pos, last_seg, min_seg, n, total, token, claimed_at, wait_us,
                                   holder, lease_time, win_lo, win_hi, positions, job_ids, leased_till, status, open_n)
  values (%1$s, p_open, p_lane, v_cur.no, case when v_job.next then v_cur.no else v_cur.win_no end, v_job.xid, v_job.pos, p_open, p_open,
          1, v_cur.total + 1, v_cur.token, p_now, v_job.wait_us, p_holder, case when p_own_lease then p_lease end,
          case when v_job.next then v_cur.win_hi end, case when v_job.next then v_cur.snap end, array[v_job.pos],
          case when v_job.job_id <> v_job.pos then array[v_job.job_id] end, v_job.until, 'r', 1);
  return row(p_lane, v_job.lease, v_job.until, 1, null, null, null, null, null, null,
             array[row(v_job.lease, v_job.job_id, v_job.attempt, v_job.attempts_limit, v_job.job_kind, v_job.payload_args, null, null, null,
                       v_job.job_tenant, v_job.job_ref, p_lane >> 5 & 127, v_job.job_source, v_job.created_at, v_job.until,
                       v_job.run_limit)::millrace.claimed_job], null)::millrace.taken;
end $$
    $sql$, slot);
  end loop;
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
