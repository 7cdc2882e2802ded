-- SPDX-License-Identifier: PostgreSQL
-- The size of the original of a stored state or blob, in bytes, as its header declares it; of one that is not coded its length. Null: damaged, or null.
create or replace function millrace.part_size(part bytea)
returns bigint
language sql
immutable
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
  select case when millrace.part_is_coded(part) then (millrace.part_read(part)).bytes else octet_length(part) end
$$;
comment on function millrace.part_size(bytea) is
  'the size of the original of a stored state or blob';
