-- SPDX-License-Identifier: PostgreSQL
-- The first p_limit of some lanes that may have a job, in the same order; the others before the last of these surely have none.
-- One statement instead of a claim on each: a queue with twenty priorities must not cost twenty claims.
-- A lane is surely empty when its cursor stands in the open segment, no transaction that ran at its window's end has ended since and left a row
-- in it, no segment was closed since (a window may be read for long), and no row lies behind the cursor. p_limit null: all of them.
-- lanes_ready_0 to lanes_ready_15 for the leaves, see by_leaf.
do $do$
begin
  for slot in 0..15 loop
    execute format($sql$
create or replace function millrace.lanes_ready_%1$s(p_lanes int[], p_limit int, p_open int)
returns int[]
language plpgsql
as $$
declare
  v_snap  pg_snapshot := pg_current_snapshot();      -- own jobs may count as ready: the claim itself knows better
  v_end   xid8 := pg_snapshot_xmax(v_snap);
  v_closed xid8 := (select g.closed_xid from millrace.segment g where g.seg = p_open - 1);
  v_from_xid xid8[];
  v_from_pos bigint[];
  v_to_xid   xid8[];
begin
  if v_end::text::bigint - pg_snapshot_xmin(v_snap)::text::bigint > 200 then
    -- An old transaction runs and may have written much: its rows are not walked, but cut out (see window_ranges).
    select r.from_xid, r.from_pos, r.to_xid
      into v_from_xid, v_from_pos, v_to_xid
      from millrace.window_ranges('1:1:', v_snap, '0') r;
  end if;
  return array(
    select l.lane
      from unnest(p_lanes) with ordinality l(lane, ord)
     where coalesce((select k.last_seg < p_open
                            or (pg_snapshot_xmax(k.win_hi) < v_closed) is not false
                            or (pg_snapshot_xmin(k.win_hi) < pg_snapshot_xmax(k.win_hi)
                                and exists (select
                                              from pg_snapshot_xip(k.win_hi) x
                                             where pg_visible_in_snapshot(x, v_snap)
                                               -- not exists(), which a plan may answer with a hash of the whole lane
                                               and (x < v_closed or (select true
                                                                       from millrace.job_%1$s j
                                                                      where j.lane = l.lane
                                                                        and j.xid = x
                                                                      limit 1))))
                            or case
                                 when v_to_xid is null then
                                   exists (select
                                             from millrace.job_%1$s j
                                            where j.lane = l.lane
                                              and (j.xid, j.pos) > (case when k.last_seg = p_open then k.last_xid else pg_snapshot_xmax(k.win_hi) end,
                                                                    case when k.last_seg = p_open then k.last_pos else -1 end)
                                              and j.xid < v_end)
                                 else
                                   millrace.lane_news_%1$s(l.lane,
                                                      case when k.last_seg = p_open then k.last_xid else pg_snapshot_xmax(k.win_hi) end,
                                                      case when k.last_seg = p_open then k.last_pos else -1 end,
                                                      v_from_xid, v_from_pos, v_to_xid)
                               end
                       from (select k.last_seg, k.last_xid, k.last_pos,
                                    -- a window that began with an earlier claim of the same leaf is in its row
                                    coalesce(k.win_hi, (select w.win_hi
                                                          from millrace.claim_%1$s w
                                                         where w.lane = l.lane
                                                           and w.no = k.win_no)) as win_hi
                               from millrace.claim_%1$s k
                              where k.lane = l.lane
                              order by k.lane desc, k.no desc
                              limit 1
                             offset 0) k), true)
     order by l.ord
     limit p_limit);
end $$
    $sql$, slot);
  end loop;
  execute format($sql$
create or replace function millrace.lanes_ready(p_lanes int[], p_limit int)
returns int[]
language plpgsql
as $$
declare
  v_open int := pg_sequence_last_value('millrace.seg_seq'::regclass);
begin
  %s
end $$
  $sql$, millrace.by_leaf('v_open', 'return millrace.lanes_ready_%s(p_lanes, p_limit, v_open);'));
end $do$;

-- Whether a row of a lane lies behind a position in one of some ranges of xids. One lower bound for each, the greater of the two: an
-- index scan starts at the first it is given.
do $do$
begin
  for slot in 0..15 loop
    execute format($sql$
create or replace function millrace.lane_news_%1$s(p_lane int, p_xid xid8, p_pos bigint, p_from_xid xid8[], p_from_pos bigint[],
                                              p_to_xid xid8[])
returns boolean
language plpgsql
as $$
declare
  v_from_xid xid8;
  v_from_pos bigint;
begin
  for i in 1 .. cardinality(p_to_xid) loop
    continue when p_to_xid[i] <= p_xid;
    v_from_xid := p_from_xid[i];
    v_from_pos := p_from_pos[i];
    if (v_from_xid, v_from_pos) < (p_xid, p_pos) then
      v_from_xid := p_xid;
      v_from_pos := p_pos;
    end if;
    if exists (select
                 from millrace.job_%1$s j
                where j.lane = p_lane
                  and (j.xid, j.pos) > (v_from_xid, v_from_pos)
                  and j.xid < p_to_xid[i]) then
      return true;
    end if;
  end loop;
  return false;
end $$
    $sql$, slot);
  end loop;
end $do$;
