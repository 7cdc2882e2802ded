-- SPDX-License-Identifier: PostgreSQL
-- How many of the first jobs of a range a claim may take that have large parts and nothing else for take_odd, and their bytes: as many as p_budget
-- allows, but one at least where p_first. Each of their parts is read here, so that none can fail when the result is sent; a claim that met such a
-- job there would stop its lane for ever. n is null where one cannot be read: they are for take_odd, which buries it.
-- They are read once more when they are sent. That is a third of the cost of carrying them from here to there, through arrays and rows that are
-- copied at each level.
-- range_heavy_0 to range_heavy_15 for the leaves, see by_leaf.
do $do$
begin
  for slot in 0..15 loop
    execute format($sql$
create or replace function millrace.range_heavy_%1$s(p_lane int, p_from_xid xid8, p_from_pos bigint, p_to_xid xid8, p_hi pg_snapshot, p_limit int,
                                                   p_budget bigint, p_first boolean, p_state boolean, out n int, out bytes bigint)
language plpgsql
as $$
declare
  v_read bigint;
begin
  select count(*), max(r.bytes),
         sum(case when p_state and octet_length(r.payload_state) > 0 then get_byte(r.payload_state, 0) end)
         + sum(case when octet_length(r.payload_blob) > 0 then get_byte(r.payload_blob, 0) end)
         + sum(length(r.job_tenant || r.job_ref))
         -- a small one is not out of line
         + sum(case when pg_column_size(r.payload_args) >= 1500 then length(r.payload_args::text) end)
         + sum(case when pg_column_size(r.payload_meta) >= 1500 then length(r.payload_meta::text) end)
    into n, bytes, v_read
    from (select j.*, row_number() over o as rank,
                 -- as in take_odd: JSON is measured as it is stored, and may take eight times as much
                 sum(8 * (coalesce(pg_column_size(j.payload_args), 0) + coalesce(pg_column_size(j.payload_meta), 0))
                     + coalesce(octet_length(j.payload_blob), 0) + case when p_state then coalesce(octet_length(j.payload_state), 0) else 0 end) over o as bytes
            from millrace.range_jobs_%1$s(p_lane, p_from_xid, p_from_pos, p_to_xid, p_hi, p_limit) j
          window o as (order by j.xid, j.pos rows unbounded preceding)) r
   where r.bytes <= p_budget
      or (r.rank = 1 and p_first);
exception
  when data_corrupted or internal_error or data_exception or program_limit_exceeded then
    n := null;
end $$
    $sql$, slot);
  end loop;
end $do$;
