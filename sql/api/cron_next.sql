-- SPDX-License-Identifier: PostgreSQL
-- The first time after a given one at which a cron expression fires, in a time zone. Errors: 22023 an expression that cannot be read or never
-- fires, an unknown time zone.
create or replace function millrace.cron_next(
  cron text,
  after timestamptz = now(),
  timezone text = 'UTC')
returns timestamptz
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
  if after is null then
    perform millrace.refuse('after must not be null', 'Leave it out for the next time from now on.');
  end if;
  if not isfinite(after) or after > '100000-01-01' then
    perform millrace.refuse(format('after must be a finite time before the year 100000, not %s', after), 'Leave it out for the next time from now on.');
  end if;
  return millrace.schedule_next(cron, after, timezone);
end $$;
comment on function millrace.cron_next(text, timestamptz, text) is
  'when a cron expression fires next';
