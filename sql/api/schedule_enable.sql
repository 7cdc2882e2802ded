-- SPDX-License-Identifier: PostgreSQL
-- Lets a schedule enqueue again, from now on: what it would have done meanwhile is not caught up. One that is active stays as it is.
-- Errors: MR003 unknown schedule; 22023 its time zone no longer exists.
create or replace function millrace.schedule_enable(name text)
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
declare
  v_schedule millrace.schedule;
  v_next     timestamptz;
begin
  perform millrace.at_home();
  v_schedule := millrace.schedule_known(name);
  if not v_schedule.enabled then
    v_next := millrace.schedule_next(v_schedule.cron_text, clock_timestamp(), v_schedule.zone_name);
    update millrace.schedule s
       set enabled = true,
           next_at = v_next,
           look_at = v_next,
           last_error = null
     where s.schedule_name = name;
  end if;
end $$;
comment on function millrace.schedule_enable(text) is
  'lets a schedule enqueue again';
