-- SPDX-License-Identifier: PostgreSQL
-- Objects of offload_doomed that have been removed, by their numbers, and how many others were that offload_unknown named. Returns how many were counted.
create or replace function millrace.offload_removed(numbers bigint[],
  orphans bigint = 0)
returns bigint
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
  v_n bigint;
begin
  perform millrace.at_home();
  delete from millrace.blob_doomed d
   where d.doom_no = any (numbers);
  get diagnostics v_n = row_count;
  v_n := v_n + greatest(coalesce(orphans, 0), 0);
  if v_n > 0 then
    perform setval('millrace.objects_removed', millrace.hint('millrace.objects_removed') + v_n);
  end if;
  return v_n;
end $$;
comment on function millrace.offload_removed(bigint[], bigint) is
  'takes note of objects that were removed from the blob store';
