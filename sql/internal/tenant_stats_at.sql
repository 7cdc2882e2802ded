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
     cross join lateral millrace.tenant_figures(p_now, s.tenant) f
     order by 1;
end $$;

-- The figures of one tenant; where its jobs are, in one snapshot, as in queue_figures.
create or replace function millrace.tenant_figures(p_now timestamptz, p_queue millrace.queue)
returns millrace.queue_stats
language plpgsql
as $$
declare
  v_stats millrace.queue_stats;
  v_pulse millrace.pulse;
  v_hour  millrace.pulse;
  v_total record;
  v_first int;
  v_lanes int[] := millrace.lanes_of(p_queue, 0);
  v_aside bigint;
  v_oldest double precision;
begin
  v_first := p_queue.queue_id << 12;
  v_stats.queue := p_queue.queue_name;
  select p.*
    into v_pulse
    from millrace.pulse p
   where p.queue_id = p_queue.queue_id
   order by p.taken_at desc
   limit 1;
  perform millrace.lanes_count(p_now, v_lanes, '1 second');
  select l.available, l.running, l.oldest, d.scheduled, d.retrying, d.aside, d.oldest, b.n
    into v_stats.available, v_stats.running, v_stats.oldest_seconds, v_stats.scheduled, v_stats.retrying, v_aside, v_oldest, v_stats.dead
    from (select coalesce(sum(f.depth), 0) as available, coalesce(sum(f.jobs), 0) as running, date_part('epoch', p_now - min(f.oldest_at)) as oldest
            from unnest(v_lanes) l
           cross join lateral millrace.lane_figures(p_now, l) f) l
   cross join (select count(*) filter (where d.why in ('s', 'z', 'p', 'w')) as scheduled, count(*) filter (where d.why in ('r', 'l')) as retrying,
                      count(*) filter (where d.why in ('o', 'k', 't')) as aside,
                      date_part('epoch', p_now - min(d.created_at) filter (where d.why in ('o', 'k', 't'))) as oldest
                 from (select d.why, d.created_at
                         from millrace.delayed d
                        where d.lane >= v_first
                          and d.lane < v_first + 4096
                        limit 10001) d) d
   cross join (select count(*) as n
                 from (select
                         from millrace.dead d
                        where d.queue_id = coalesce(p_queue.parent_id, p_queue.queue_id)
                          and (p_queue.parent_id is null or d.job_tenant = p_queue.tenant_name)
                        limit 10001) d) b;
  if v_stats.scheduled + v_stats.retrying + v_aside > 10000 then
    v_stats.scheduled := coalesce(v_pulse.scheduled, v_stats.scheduled);
    v_stats.retrying := coalesce(v_pulse.retrying, v_stats.retrying);
    v_aside := coalesce(v_pulse.aside, v_aside);
  end if;
  v_stats.available := v_stats.available + v_aside;      -- waits for its turn only
  v_stats.oldest_seconds := greatest(v_stats.oldest_seconds, v_oldest);
  if v_stats.dead > 10000 then
    v_stats.dead := greatest(v_pulse.dead_count, v_stats.dead);
  end if;
  select p.*
    into v_hour
    from millrace.pulse p
   where p.queue_id = p_queue.queue_id
     and p.taken_at <= p_now - interval '1 hour'
   order by p.taken_at desc
   limit 1;
  v_total := millrace.queue_totals(p_queue);
  v_stats.completed_1h := v_total.done_total - coalesce(v_hour.done_total, 0);
  v_stats.failed_1h := v_total.failed_total - coalesce(v_hour.failed_total, 0);
  v_stats.avg_wait_seconds_1h := (v_total.wait_total - coalesce(v_hour.wait_total, 0)) / 1e6
                                 / nullif(v_stats.completed_1h + v_stats.failed_1h, 0);
  v_stats.avg_run_seconds_1h := (v_total.run_total - coalesce(v_hour.run_total, 0)) / 1e6
                                / nullif(v_stats.completed_1h + v_stats.failed_1h, 0);
  return v_stats;
end $$;
