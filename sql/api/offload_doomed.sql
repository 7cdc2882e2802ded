-- SPDX-License-Identifier: PostgreSQL
-- Objects of the blob store that no job names any more, with a larger number than `after`. Remove them, then call offload_removed. Those of the database that this one is a
-- copy of are its own to remove, and are forgotten here. Errors: 22023.
create or replace function millrace.offload_doomed(after bigint = 0,
  max_objects int = 1000)
returns table (no bigint, object_name text)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
declare
  v_home text := millrace.blob_home() || '/';
begin
  perform millrace.at_home();
  perform millrace.check_number('max_objects', max_objects, 1, 10000);
  return query
    with few as materialized (
      select d.doom_no, d.object_key, starts_with(d.object_key, v_home) as ours
        from millrace.blob_doomed d
       where d.doom_no > coalesce(after, 0)
       order by d.doom_no
       limit max_objects),
    forgotten as (
      delete from millrace.blob_doomed d
       using few f
       where d.doom_no = f.doom_no
         and not f.ours)
    select f.doom_no, f.object_key
      from few f
     where f.ours
     order by f.doom_no;
end $$;
comment on function millrace.offload_doomed(bigint, int) is
  'objects of the blob store that no job names any more';
