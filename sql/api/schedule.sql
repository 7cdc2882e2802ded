-- SPDX-License-Identifier: PostgreSQL
-- Makes or replaces a schedule: a job of this kind each time the cron expression fires. Five fields (minute, hour, day of the month, month, day
-- of the week), or six with the second first, or @hourly, @daily, @weekly, @monthly, @yearly. timezone: whose clock is meant.
-- catch_up: what becomes of occurrences that nobody enqueued within a minute, because nothing called maintain or claim: none, last (one job
-- for all), all (a job each). A schedule that is not active waits for schedule_enable. docs/schedules.md has the rules.
-- The job's meta holds schedule and scheduled_for. Errors: 22023 bad argument, an expression that never fires, an unknown time zone.
create or replace function millrace.schedule(
  name text,
  cron text,
  kind text,
  args jsonb = '{}',
  queue text = 'default',
  timezone text = 'UTC',
  catch_up text = 'last',
  active boolean = true,
  priority int = 50)
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
  perform millrace.schedule_at(clock_timestamp(), name, cron, kind, args, queue, timezone, catch_up, active, priority);
end $$;
comment on function millrace.schedule(text, text, text, jsonb, text, text, text, boolean, int) is
  'makes or replaces a schedule';
