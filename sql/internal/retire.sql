-- SPDX-License-Identifier: PostgreSQL
-- Takes segments that nobody needs any more out of the ring, oldest first: past retention, sealed, drained. In steps, each for good:
-- parked (what is open moves away, so that nothing left can change), archived, known to the ledger, truncated.
-- The leaves are locked before long leases are parked: a worker that finishes one of them meanwhile waits for the leaf and then finds
-- its claim where it is. Had it to wait for the claim's row, it would be told that the row was moved (40001).
-- Whoever works with another leaf does not notice, because it names its leaf (see by_leaf). A claim's slice of upkeep looks at all of them, so it is
-- kept out.
-- The caller holds the lock of upkeep.
create or replace function millrace.retire(p_now timestamptz)
returns bigint
language plpgsql
as $$
declare
  v_segment millrace.segment;
  v_leaves  text[];
  v_jobs    bigint;
  v_n       bigint := 0;
begin
  for v_segment in
    select g.*
      from millrace.segments_live() g
     order by g.seg
  loop
    v_leaves := array(select l || v_segment.seg % 16 from unnest(array['tally_', 'claim_', 'job_', 'result_', 'report_']) l);      -- as whoever reads them comes by
    exit when v_segment.closed_at > p_now - millrace.log_retention()
           or not millrace.segment_sealed(v_segment)
           or exists (select from millrace.segment_pinned_by(v_segment))
           or not pg_try_advisory_xact_lock(1297219594, 0);
    if not v_segment.parked then
      exit when not millrace.lock_leaves(v_leaves, '50ms')
             or not millrace.park(p_now, v_segment);
      v_segment.archived := not exists (select from millrace.queue q where q.retention_time > millrace.log_retention());
      update millrace.segment g
         set parked = true,
             archived = v_segment.archived
       where g.seg = v_segment.seg;
    end if;
    exit when not v_segment.archived
           or not millrace.segment_counted(v_segment);
    v_jobs := millrace.jobs_until(v_segment.seg);
    exit when not millrace.truncate_leaves(v_leaves, false, '50ms');
    perform set_config('millrace.retired_jobs', v_jobs::text, true);
    update millrace.segment g
       set truncated = true
     where g.seg = v_segment.seg;
    v_n := v_n + 1;
  end loop;
  delete from millrace.segment g
   where g.seg < pg_sequence_last_value('millrace.seg_seq'::regclass) - 32;
  return v_n;
end $$;

-- How many jobs the ledgers had counted at the end of the oldest segment of the ring: of a lane that has no ledger there, the first one behind it.
create or replace function millrace.jobs_until(p_seg int)
returns bigint
language plpgsql
as $$
declare
  v_open int := pg_sequence_last_value('millrace.seg_seq'::regclass);
begin
  return (select coalesce(sum(coalesce(t.counted, n.counted)), 0)
            from millrace.lanes_all() l(lane)
            left join lateral (select t.counted
                                 from millrace.tally t
                                where t.slot = p_seg % 16
                                  and t.lane = l.lane
                                order by t.no desc
                                limit 1) t on true
            left join lateral (select f.counted
                                 from generate_series(p_seg + 1, v_open) s(seg)
                                cross join lateral (select t.counted
                                                      from millrace.tally t
                                                     where t.slot = s.seg % 16
                                                       and t.lane = l.lane
                                                     order by t.no
                                                     limit 1) f
                                where t.counted is null
                                order by s.seg
                                limit 1) n on true);
end $$;

-- Whether the ledger knows how each claim of a parked segment ended: one that it saw open and that is not parked has ended since.
create or replace function millrace.segment_counted(p_segment millrace.segment)
returns boolean
language plpgsql
as $$
begin
  return not exists (select
                       from millrace.lanes_all() l
                      cross join lateral unnest((millrace.lane_tally(l)).open_nos) o
                       join millrace.claim k on k.slot = p_segment.seg % 16 and k.lane = l and k.no = o and k.status <> 't');
end $$;
