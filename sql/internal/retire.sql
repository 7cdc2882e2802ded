-- SPDX-License-Identifier: PostgreSQL
-- Truncates the leaves of segments that nobody needs any more: past retention, sealed, drained, archived. Oldest first.
-- The leaves are locked before long leases are parked: a worker that finishes one of them meanwhile waits for the leaf and then finds
-- its claim where it is. Had it to wait for the claim's row, it would be told that the row was moved (40001).
-- The caller holds the lock of upkeep.
create or replace function millrace.retire(p_now timestamptz)
returns bigint
language plpgsql
as $$
declare
  v_segment millrace.segment;
  v_slot    int;
  v_leaves  text[];
  v_n       bigint := 0;
begin
  for v_segment in
    select g.*
      from millrace.segments_live() g
     order by g.seg
  loop
    v_slot := v_segment.seg % 16;
    v_leaves := array['job_' || v_slot, 'claim_' || v_slot, 'result_' || v_slot, 'tally_' || v_slot];
    exit when v_segment.closed_at > p_now - millrace.log_retention()
           or not v_segment.archived
           or not millrace.segment_sealed(v_segment)
           or exists (select from millrace.segment_pinned_by(v_segment))
           or not millrace.lock_leaves(v_leaves, '50ms')
           or not millrace.park(p_now, v_segment)
           or not millrace.truncate_leaves(v_leaves, false, '50ms');
    update millrace.segment g
       set truncated = true
     where g.seg = v_segment.seg;
    v_n := v_n + 1;
  end loop;
  delete from millrace.segment g
   where g.seg < pg_sequence_last_value('millrace.seg_seq'::regclass) - 32;
  return v_n;
end $$;
