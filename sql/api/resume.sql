-- SPDX-License-Identifier: PostgreSQL
-- Lets a paused queue hand out jobs again, or one tenant of a fair queue. Errors: MR003 unknown queue or tenant, 22023 not a fair queue.
create or replace function millrace.resume(queue text,
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
     set paused_at = null
   where q.queue_id = v_id;
  perform millrace.wake(v_id, clock_timestamp());
end $$;
comment on function millrace.resume(text, text) is
  'lets a paused queue hand out jobs again';
