-- SPDX-License-Identifier: PostgreSQL
-- Whether every transaction that may have written into a closed segment has ended.
create or replace function millrace.segment_sealed(p_segment millrace.segment)
returns boolean
language plpgsql
as $$
begin
  return pg_snapshot_xmin(millrace.snapshot()) >= p_segment.closed_xid;
end $$;
