-- SPDX-License-Identifier: PostgreSQL
-- Completes all open jobs of many leases in one call. Returns how many jobs. All or none.
-- Errors: MR001 when any lease is lost.
create or replace function millrace.complete_many(leases text[])
returns int
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
  v_lease text;
  v_n     int := 0;
begin
  perform millrace.at_home();
  if leases is null then
    perform millrace.refuse('leases must not be null', 'Pass an array; an empty one is fine.');
  end if;
  foreach v_lease in array leases loop
    v_n := v_n + millrace.complete_at(clock_timestamp(), v_lease, null, null);
  end loop;
  return v_n;
end $$;
comment on function millrace.complete_many(text[]) is
  'completes all open jobs of many leases';
