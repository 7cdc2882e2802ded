-- SPDX-License-Identifier: PostgreSQL
-- Parts of offload_due with their bytes, or with the reason why they cannot be had for good: missing, damaged. All parts of a job come with one call. The job is due then, or a dead letter
-- with that reason. One that has moved or changed meanwhile is passed over. Returns how many jobs are due, and how many are dead letters. Errors: 22023, 25000.
create or replace function millrace.offload_restore(ids bigint[],
  parts text[],
  keys text[],
  bodies bytea[],
  errors text[] = null)
returns table (restored int, buried int)
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
  if cardinality(ids) is distinct from cardinality(parts) or cardinality(ids) is distinct from cardinality(keys) then
    perform millrace.refuse('ids, parts and keys must have an element for each part', 'Pass what offload_due returned, and of each object its bytes or an error.');
  end if;
  perform millrace.check_isolation('offload_restore');
  return query select * from millrace.offload_restore_at(clock_timestamp(), ids, parts, keys, bodies, errors);
end $$;
comment on function millrace.offload_restore(bigint[], text[], text[], bytea[], text[]) is
  'puts payload parts back that were read from the blob store';
