-- SPDX-License-Identifier: PostgreSQL
-- For how many days from now objects of the blob store may be needed: until the last of the jobs that are away is due, and for as long as dead letters of queues with offload_dead, and
-- completed jobs and dead letters of queues with offload, are kept. A lifecycle rule of the bucket has to wait longer.
create or replace function millrace.offload_span()
returns double precision
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
  return (select coalesce(max(extract(epoch from s.span)) / 86400, 0)
            from (select (select d.due_at
                            from millrace.delayed d
                           where d.away_due is not null
                             and d.due_at < 'infinity'
                           order by d.due_at desc
                           limit 1) - clock_timestamp() as span
                   union all
                  select q.dead_time from millrace.queue q where q.offload_dead
                   union all
                  select greatest(q.dead_time, q.retention_time) from millrace.queue q where q.offload_above is not null) s);
end $$;
comment on function millrace.offload_span() is
  'for how many days objects of the blob store may be needed';
