-- SPDX-License-Identifier: PostgreSQL
-- The number of available jobs of a queue, exactly. Its cost does not depend on the depth: each job is counted once, and a call
-- that finds the count older than a second counts on. (In an ordered queue, or one with limits for keys or tenants, it does depend on the jobs that are set aside: they are counted.) 0 for an
-- unknown queue or tenant. tenant: only the jobs of one tenant of a fair queue.
create or replace function millrace.depth(queue text,
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
  return coalesce((select millrace.queue_depth(clock_timestamp(), q) + millrace.queue_aside(q)
                     from millrace.queue q
                    where q.queue_name = queue
                      and q.parent_id is null
                      and tenant is null), 0)
         + coalesce((select millrace.queue_depth(clock_timestamp(), t)
                       from millrace.queue q
                       join millrace.queue t on t.parent_id = q.queue_id and t.tenant_name = tenant
                      where q.queue_name = queue
                        and q.parent_id is null), 0);
end $$;
comment on function millrace.depth(text, text) is
  'the number of available jobs of a queue';
