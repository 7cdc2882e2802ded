-- SPDX-License-Identifier: PostgreSQL
-- The window (p_lo, p_hi] as ranges of xids in ascending order: from (from_xid, from_pos) exclusive to to_xid exclusive.
--   A. one range for each xid that ran in p_lo and has ended in p_hi: the late commits;
--   B. xid >= xmax(p_lo) up to xmax(p_hi), cut at the oldest eight xids that still run in p_hi.
-- Cutting keeps a claim from walking the uncommitted rows of a long bulk load; what is not cut is filtered by visibility.
-- Ranges that end at or before p_from are left out: a claim resumes inside its window.
create or replace function millrace.window_ranges(p_lo pg_snapshot, p_hi pg_snapshot, p_from xid8,
                                                  out from_xid xid8[], out from_pos bigint[], out to_xid xid8[], out late boolean)
language plpgsql
stable
as $$
declare
  v_start constant bigint := -1;
  v_end   constant bigint := 9223372036854775807;
  v_lo_end xid8 := pg_snapshot_xmax(p_lo);
  v_hi_end xid8 := pg_snapshot_xmax(p_hi);
begin
  late := false;
  if pg_snapshot_xmin(p_hi) = v_hi_end and (p_from >= v_lo_end or pg_snapshot_xmin(p_lo) = v_lo_end) then
    from_xid := array[v_lo_end];
    from_pos := array[v_start];
    to_xid := array[v_hi_end];
    return;
  end if;
  select array_agg(r.f order by r.f, r.p), array_agg(r.p order by r.f, r.p), array_agg(r.t order by r.f, r.p),
         coalesce(bool_or(r.late_one), false)
    into from_xid, from_pos, to_xid, late
    from (select x as f, v_start as p, (x::text::bigint + 1)::text::xid8 as t, true as late_one
            from pg_snapshot_xip(p_lo) a(x)
           where x >= p_from
             and pg_visible_in_snapshot(x, p_hi)
           union all
          select c.x, c.p, lead(c.x, 1, v_hi_end) over (order by c.x, c.p), false
            from (select v_lo_end as x, v_start as p
                   union all
                  (select x, v_end
                     from pg_snapshot_xip(p_hi) b(x)
                    where x >= v_lo_end
                    order by x
                    limit 8)) c) r
   where r.t > p_from;
end $$;
