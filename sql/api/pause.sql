-- SPDX-License-Identifier: PostgreSQL
-- Stops a queue from handing out jobs; running ones go on, new ones are taken in. tenant: only those of one tenant of a fair queue.
-- Errors: MR003 unknown queue or tenant, 22023 not a fair queue.
create or replace function millrace.pause(queue text,
  tenant text = null)
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
  v_id int;
begin
  perform millrace.at_home();
  v_id := (millrace.tenant_known(queue, tenant)).queue_id;
  update millrace.queue q
     set paused_at = coalesce(q.paused_at, clock_timestamp())
   where q.queue_id = v_id;
end $$;
comment on function millrace.pause(text, text) is
  'stops a queue from handing out jobs';
