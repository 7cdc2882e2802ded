-- SPDX-License-Identifier: PostgreSQL
-- The next times at which a cron expression fires, as {"cron", "timezone", "next"}: 1 to 100 of them, after a given time. An expression can be tried with
-- it before a schedule is made.
-- Errors: 22023 an expression that cannot be read or never fires, an unknown time zone, times out of range.
create or replace function millrace.cron_times(
  cron text,
  after timestamptz = now(),
  timezone text = 'UTC',
  times int = 5)
returns jsonb
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
begin
  perform millrace.check_number('times', times, 1, 100);
  return jsonb_build_object('cron', cron, 'timezone', timezone,
                            'next', millrace.schedule_times(cron, timezone, millrace.cron_next(cron, after, timezone), times));
end $$;
comment on function millrace.cron_times(text, timestamptz, text, int) is
  'the next times at which a cron expression fires';
