-- SPDX-License-Identifier: PostgreSQL
-- Which of some objects of the blob store no job has ever named: whoever wrote them did not live to commit the name. Ask for objects that are older than any transaction may be that names one.
create or replace function millrace.offload_unknown(keys text[])
returns setof text
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
begin
  perform millrace.at_home();
  return query
    select k
      from unnest(keys) k
     where not exists (select from millrace.blob_object o where o.object_key = k)
       and not exists (select from millrace.blob_doomed d where d.object_key = k);
end $$;
comment on function millrace.offload_unknown(text[]) is
  'which objects of the blob store nobody knows';
