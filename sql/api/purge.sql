-- SPDX-License-Identifier: PostgreSQL
-- Removes every job that waits in a queue, available or scheduled; running ones go on. Returns how many. tenant: only those of one tenant of a fair queue.
-- Errors: MR003 unknown queue or tenant, 22023 not a fair queue, MR004 restored schema.
create or replace function millrace.purge(queue text,
  tenant text = null)
returns bigint
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
  return millrace.purge_at(clock_timestamp(), millrace.tenant_known(queue, tenant));
end $$;
comment on function millrace.purge(text, text) is
  'removes every waiting job of a queue';
