-- SPDX-License-Identifier: PostgreSQL
-- The server and the log: sizes, segments and who pins them, who holds back the removal of dead rows, upkeep, connections, settings. What other sessions run
-- is shown to those who may see it in pg_stat_activity. Without anybody who calls maintain there is nothing to say of upkeep but when a claim did a slice
-- of it. Errors: MR004 restored schema.
create or replace function millrace.system()
returns jsonb
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
  return millrace.system_at(clock_timestamp());
end $$;
comment on function millrace.system() is
  'the server and the log';
