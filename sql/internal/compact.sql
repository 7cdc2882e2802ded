-- SPDX-License-Identifier: PostgreSQL
-- Frees the oldest segment where only quiet lanes with few jobs pin it (paused, or nobody consumes): their jobs are moved to the
-- open segment, in order. Up to a thousand jobs a lane at any time, up to ten thousand when the ring gets short. Busy or deep lanes are left
-- alone: the open segment grows and health() names them. The caller holds the lock of upkeep.
create or replace function millrace.compact(p_now timestamptz)
returns bigint
language plpgsql
as $$
declare
  v_segment millrace.segment;
  v_open    int := pg_sequence_last_value('millrace.seg_seq'::regclass);
  v_depth   bigint;
  v_lane    int;
  v_n       bigint := 0;
begin
  select g.*
    into v_segment
    from millrace.segments_live() g
   order by g.seg
   limit 1;
  if not found or v_segment.closed_at > p_now - millrace.log_retention() or not millrace.segment_sealed(v_segment) then
    return 0;
  end if;
  for v_lane in select * from millrace.segment_pinned_by(v_segment) loop
    v_depth := millrace.lane_depth(p_now, v_lane);
    continue when v_depth = 0
               or v_depth > case when v_open - v_segment.seg >= 12 then 10000 else 1000 end
               or millrace.lane_busy(p_now, v_lane, v_open)
               or not pg_try_advisory_xact_lock(1297219591, v_lane)
               or not pg_try_advisory_xact_lock(1297219593, v_lane);      -- a count must not see a job in both places
    v_n := v_n + millrace.lane_relocate(p_now, v_lane);
  end loop;
  return v_n;
end $$;

-- Whether somebody claimed from a lane within the last minute.
create or replace function millrace.lane_busy(p_now timestamptz, p_lane int, p_open int)
returns boolean
language plpgsql
as $$
begin
  return exists (select
                   from (select k.status, k.claimed_at
                           from millrace.claim k
                          where k.slot = p_open % 16
                            and k.lane = p_lane
                          order by k.no desc
                          limit 50) k
                  where k.status in ('r', 'd', 'l')
                    and k.claimed_at > p_now - interval '1 minute');
end $$;
