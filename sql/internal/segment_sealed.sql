-- SPDX-License-Identifier: PostgreSQL
-- Whether every transaction that may have written into a closed segment has ended.
create or replace function millrace.segment_sealed(p_segment millrace.segment)
returns boolean
language plpgsql
as $$
begin
  return pg_snapshot_xmin(millrace.snapshot()) >= p_segment.closed_xid;
end $$;

-- The closed_xid of the newest sealed segment that is not truncated yet; null when there is none. A window that ended with an older
-- transaction still running pins that segment.
create or replace function millrace.sealed_xid()
returns xid8
language plpgsql
as $$
declare
  v_running xid8 := pg_snapshot_xmin(millrace.snapshot());
begin
  return (select s.closed_xid
            from (select g.seg, g.closed_xid, g.truncated
                    from millrace.segment g
                   order by g.seg desc
                   limit 16) s
           where not s.truncated
             and s.closed_xid <= v_running
           order by s.seg desc
           limit 1);
end $$;
