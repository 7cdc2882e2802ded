-- SPDX-License-Identifier: PostgreSQL
-- How the jobs of a queue reach their workers: direct, or redis (by way of a relay, which asks here whether it is to work). direct for an unknown queue.
-- Errors: MR004 restored schema.
create or replace function millrace.transport(queue text)
returns text
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
  perform millrace.at_home();
  return coalesce((select q.transport
                     from millrace.queue q
                    where q.queue_name = queue
                      and q.parent_id is null), 'direct');
end $$;
comment on function millrace.transport(text) is
  'how the jobs of a queue reach their workers';
