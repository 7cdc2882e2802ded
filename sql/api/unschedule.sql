-- SPDX-License-Identifier: PostgreSQL
-- Removes a schedule. Jobs it has enqueued stay. Errors: MR003 unknown schedule.
create or replace function millrace.unschedule(name text)
returns void
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
  perform millrace.schedule_known(name);
  delete from millrace.schedule s
   where s.schedule_name = name;
end $$;
comment on function millrace.unschedule(text) is
  'removes a schedule';
