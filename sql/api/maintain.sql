-- SPDX-License-Identifier: PostgreSQL
-- All upkeep: rotate, promote, schedule, rescue, batch, depend, count, pulse, dead, archive, tick, compact, retire, clean. Safe anywhere, any time, any number at once. Call it
-- outside of a transaction block, about once a second. Returns what each duty did. A duty that fails warns and leaves the others alone.
create or replace function millrace.maintain()
returns setof millrace.duty_done
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
  return query
    select *
      from millrace.maintain_at(clock_timestamp());
end $$;
comment on function millrace.maintain() is
  'all upkeep';
