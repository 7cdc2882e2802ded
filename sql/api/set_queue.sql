-- SPDX-License-Identifier: PostgreSQL
-- Creates a queue or changes its settings: an object of settings by name (see millrace.queue_setting, docs/reference.md). A null value sets
-- the default again. Settings not named stay. Errors: 22023 unknown setting or bad value.
create or replace function millrace.set_queue(name text,
  settings jsonb)
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
  perform millrace.queue_change(name, settings);
end $$;
comment on function millrace.set_queue(text, jsonb) is
  'creates a queue or changes its settings';
