-- SPDX-License-Identifier: PostgreSQL
-- Stops a schedule from enqueueing until schedule_enable. Jobs it has enqueued stay. Errors: MR003 unknown schedule.
create or replace function millrace.schedule_disable(name text)
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
  update millrace.schedule s
     set enabled = false,
         next_at = null,
         look_at = null
   where s.schedule_name = name;
end $$;
comment on function millrace.schedule_disable(text) is
  'stops a schedule from enqueueing';
