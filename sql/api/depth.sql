-- SPDX-License-Identifier: PostgreSQL
-- The number of available jobs of a queue, exactly. Its cost does not depend on the depth: each job is counted once, and a call
-- that finds the count older than a second counts on. (In an ordered queue, or one with limits for keys or tenants, it does depend on the jobs that are set aside: they are counted.) 0 for an
-- unknown queue.
create or replace function millrace.depth(queue text)
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
  return coalesce((select sum(millrace.lane_depth(clock_timestamp(), l))::bigint
                     from millrace.queue q
                    cross join lateral unnest(millrace.lanes_of(q, 0)) l
                    where q.queue_name = queue), 0)
         + coalesce((select millrace.queue_aside(q)
                       from millrace.queue q
                      where q.queue_name = queue), 0);
end $$;
comment on function millrace.depth(text) is
  'the number of available jobs of a queue';
