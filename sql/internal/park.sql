-- SPDX-License-Identifier: PostgreSQL
-- Moves what long leases still need off a segment that is about to go: their claims and their open jobs, to the leaves "parked".
-- So a lease of six hours costs the size of its own jobs and pins nothing. Returns false when a claim is busy this moment.
create or replace function millrace.park(p_now timestamptz, p_segment millrace.segment)
returns boolean
language plpgsql
as $$
declare
  v_lane  int;
  v_claim millrace.claim;
begin
  for v_lane in select * from millrace.lanes_all() loop
    for v_claim in
      select k.*
        from millrace.lane_open_claims(v_lane, millrace.lane_tally(v_lane)) k
       where k.slot = p_segment.seg % 16
          or k.min_seg <= p_segment.seg
    loop
      perform
         from millrace.claim k
        where k.slot = v_claim.slot
          and k.lane = v_claim.lane
          and k.no = v_claim.no
          and k.status = 'r'
          for update skip locked;
      if not found then
        return false;
      end if;
      perform millrace.pack_open(p_segment.seg % 16, v_claim.positions);
      -- Without a word of the lane: with one the index on lanes looks better, and it is walked for each job.
      update millrace.job j
         set slot = -1
        from unnest(coalesce(v_claim.job_ids, v_claim.positions), v_claim.positions) u(job_id, pos)
       where j.slot = p_segment.seg % 16
         and j.job_id = u.job_id
         and j.pos = u.pos;
      update millrace.claim k
         set slot = -1,
             win_lo = null,
             win_hi = null
       where k.slot = p_segment.seg % 16
         and k.slot = v_claim.slot
         and k.lane = v_claim.lane
         and k.no = v_claim.no;
      if v_claim.slot = p_segment.seg % 16 then
        -- A tick stays in its place: later claims may speak of its window, and claim_of looks for a job by halving the numbers.
        insert into millrace.claim (slot, seg, lane, no, win_no, last_xid, last_pos, last_seg, min_seg, n, total, claimed_at, win_lo, win_hi,
                                    status, open_n, finished_at)
        values (v_claim.slot, v_claim.seg, v_claim.lane, v_claim.no, v_claim.win_no, v_claim.last_xid, v_claim.last_pos, v_claim.last_seg,
                v_claim.min_seg, 0, v_claim.total, v_claim.claimed_at, v_claim.win_lo, v_claim.win_hi, 't', 0, p_now);
      end if;
    end loop;
  end loop;
  -- Jobs that were parked from an older segment while their claim stayed in this one go with the claim that ended.
  if exists (select from millrace.job j where j.slot = -1) then
    perform millrace.archive_parked(p_now, k)
       from millrace.claim k
      where k.slot = p_segment.seg % 16
        and k.min_seg < p_segment.seg
        and k.status <> 'r';
    delete from millrace.job j
     using (select u.job_id, u.pos
              from millrace.claim k
             cross join lateral unnest(coalesce(k.job_ids, k.positions), k.positions) u(job_id, pos)
             where k.slot = p_segment.seg % 16
               and k.min_seg < p_segment.seg
               and k.status <> 'r') f
     where j.slot = -1
       and j.job_id = f.job_id
       and j.pos = f.pos;
  end if;
  return true;
end $$;

-- Removes parked claims and jobs whose lease ended longer ago than the log keeps anything, once the ledger knows how.
create or replace function millrace.unpark(p_now timestamptz)
returns bigint
language plpgsql
as $$
declare
  v_claim millrace.claim;
  v_n     bigint := 0;
begin
  for v_claim in
    select k.*
      from millrace.claim k
     where k.slot = -1
       and k.status <> 'r'
       and k.finished_at < p_now - millrace.log_retention()
       and k.no <> all (coalesce((millrace.lane_tally(k.lane)).open_nos, '{}'))
     limit 1000
       for update skip locked
  loop
    perform millrace.archive_parked(p_now, v_claim);
    delete from millrace.job j
     using unnest(coalesce(v_claim.job_ids, v_claim.positions), v_claim.positions) u(job_id, pos)
     where j.slot = -1
       and j.job_id = u.job_id
       and j.pos = u.pos;
    delete from millrace.claim k
     where k.slot = -1
       and k.lane = v_claim.lane
       and k.no = v_claim.no;
    v_n := v_n + 1;
  end loop;
  return v_n;
end $$;
