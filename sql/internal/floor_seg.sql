-- SPDX-License-Identifier: PostgreSQL
-- The first segment that may hold a row whose xid is p_xid or larger: the oldest one not known to be closed before it.
-- Never the value of seg_seq: between setval and the commit of the segment's row that would skip a segment with writers in it.
-- Newest sixteen rows only: older versions of this small table are never walked, whatever vacuum does.
create or replace function millrace.floor_seg(p_xid xid8)
returns int
language plpgsql
stable
as $$
begin
  return (select coalesce(min(s.seg) filter (where s.closed_xid > p_xid and not s.truncated), max(s.seg) + 1)
            from (select g.seg, g.closed_xid, g.truncated
                    from millrace.segment g
                   order by g.seg desc
                   limit 16) s);
end $$;
