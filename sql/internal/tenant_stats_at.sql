-- SPDX-License-Identifier: PostgreSQL
-- tenant_stats with the time as an argument.
create or replace function millrace.tenant_stats_at(p_now timestamptz, p_queue text, p_tenant text, p_most int)
returns setof millrace.tenant_stats
language plpgsql
as $$
declare
  v_queue millrace.queue;
begin
  perform millrace.at_home();
  perform millrace.check_number('max_tenants', p_most, 1, 1000000);
  v_queue := millrace.queue_known(p_queue);
  if not v_queue.has_tenants then
    perform millrace.tenant_known(p_queue, '');      -- says so
  end if;
  return query
    select (s.tenant).tenant_name, (s.tenant).paused_at is not null, f.available, f.running, f.scheduled, f.retrying, f.dead, f.completed_1h, f.failed_1h,
           f.oldest_seconds, f.avg_wait_seconds_1h, f.avg_run_seconds_1h
      from (select t as tenant
              from millrace.queue t
             where t.parent_id = v_queue.queue_id
               and (p_tenant is null or t.tenant_name = p_tenant)
             order by t.tenant_name
             limit p_most) s
     cross join lateral millrace.queue_figures(p_now, s.tenant) f
     order by 1;
end $$;
