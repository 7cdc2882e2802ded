-- SPDX-License-Identifier: PostgreSQL
-- What a stored state or blob is: plain (the bytes themselves, or wrapped because they begin with the signature: part_size is smaller then than the
-- value), zstd, object, or damaged: it begins like a coded one, and is none. docs/compression.md says what the bytes are. Null of null.
create or replace function millrace.part_coding(part bytea)
returns text
language sql
immutable
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
  select case
           when not millrace.part_is_coded(part) then 'plain'
           when part is not null then
             (select case r.letter when 'p' then 'plain' when 'z' then 'zstd' when 'o' then 'object' else 'damaged' end
                from millrace.part_read(part) r)
         end
$$;
comment on function millrace.part_coding(bytea) is
  'what a stored state or blob is: plain, zstd, object or damaged';
