-- SPDX-License-Identifier: PostgreSQL
-- Closes the open segment and opens the next one when it is large or old enough and the ring has room.
-- Must run before its transaction has an xid: closed_xid has to be newer than the setval. setval is not undone by a rollback,
-- so a segment's row may be missing: it is written by the next call, before the next rotation.
create or replace function millrace.rotate(p_now timestamptz)
returns bigint
language plpgsql
as $$
declare
  c_rows  constant bigint := 1000000;
  c_bytes constant bigint := 1073741824;
  v_seg   int;
  v_last  millrace.segment;
  v_live  int;
  v_due   boolean;
begin
  if pg_current_xact_id_if_assigned() is not null or not pg_try_advisory_xact_lock(1297219592, 0) then
    return 0;
  end if;
  v_seg := pg_sequence_last_value('millrace.seg_seq'::regclass);
  select g.*
    into v_last
    from millrace.segment g
   order by g.seg desc
   limit 1;
  select count(*)
    into v_live
    from millrace.segments_live();
  if v_last.seg = v_seg - 1 and v_live < 15 then
    -- By size only while half the ring is free: the rest belongs to age, so that retention always fits.
    v_due := v_live < 8 and ((pg_sequence_last_value('millrace.pos_seq'::regclass) - v_last.closed_pos) >> 5 > c_rows
                             or pg_total_relation_size(('millrace.job_' || v_seg % 16)::regclass) > c_bytes)
             or p_now - v_last.closed_at > millrace.log_retention() / 14 and millrace.segment_used(v_seg);
    if v_due then
      v_seg := v_seg + 1;
      perform setval('millrace.seg_seq', v_seg);
    end if;
  end if;
  insert into millrace.segment (seg, closed_xid, closed_at, closed_pos)
  select g, pg_current_xact_id(), p_now, coalesce(pg_sequence_last_value('millrace.pos_seq'::regclass), 0)
    from generate_series(v_last.seg + 1, v_seg - 1) g;
  return v_seg - 1 - v_last.seg;
end $$;

-- Whether a segment holds anything but ticks and counts; an idle log is not rotated for its own bookkeeping.
create or replace function millrace.segment_used(p_seg int)
returns boolean
language plpgsql
as $$
begin
  return exists (select from millrace.job j where j.slot = p_seg % 16)
      or exists (select from millrace.claim k where k.slot = p_seg % 16 and k.status <> 't')
      or exists (select from millrace.result r where r.slot = p_seg % 16)
      or exists (select from millrace.report r where r.slot = p_seg % 16);
end $$;
