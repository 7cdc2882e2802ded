-- SPDX-License-Identifier: PostgreSQL
-- stats with the time as an argument.
create or replace function millrace.stats_at(p_now timestamptz, p_queue text)
returns setof millrace.queue_stats
language plpgsql
as $$
declare
  v_queue millrace.queue;
  v_stats millrace.queue_stats;
begin
  perform millrace.at_home();
  for v_queue in
    select q.*
      from millrace.queue q
     where (p_queue is null or q.queue_name = p_queue)
       and q.parent_id is null
     order by q.queue_name
  loop
    v_stats := millrace.queue_figures(p_now, v_queue);
    if v_queue.has_tenants then
      v_stats := millrace.family_figures(p_now, v_queue, v_stats);
    end if;
    return next v_stats;
  end loop;
end $$;

-- The figures of a fair queue and its tenants together; dead letters are the queue's. Few statements for all, because there may be thousands: p_own has what
-- was found for the queue itself.
create or replace function millrace.family_figures(p_now timestamptz, p_queue millrace.queue, p_own millrace.queue_stats)
returns millrace.queue_stats
language plpgsql
as $$
declare
  v_lanes int[] := millrace.lanes_family(p_queue);
  v_stats millrace.queue_stats := p_own;
  v_sum   record;
begin
  select coalesce(sum(millrace.lane_depth(p_now, l)), 0), max(date_part('epoch', p_now - millrace.lane_oldest(p_now, l)))
    into v_stats.available, v_stats.oldest_seconds
    from unnest(millrace.lanes_ready(v_lanes, null)) l;
  v_stats.running := (millrace.lanes_running(p_now, v_lanes, 1000000)).running;
  select p_own.scheduled + coalesce(sum(d.scheduled), 0), p_own.retrying + coalesce(sum(d.retrying), 0)
    into v_stats.scheduled, v_stats.retrying
    from millrace.queue t
   cross join lateral (select count(*) filter (where d.why not in ('r', 'l')) as scheduled, count(*) filter (where d.why in ('r', 'l')) as retrying
                         from (select d.why
                                 from millrace.delayed d
                                where d.lane >= t.queue_id << 12
                                  and d.lane < (t.queue_id + 1) << 12
                                limit 10001) d) d
   where t.parent_id = p_queue.queue_id;
  select sum(t.done_total) as done, sum(t.failed_total) as failed, sum(t.wait_total) as wait, sum(t.run_total) as run
    into v_sum
    from (select t.done_total, t.failed_total, t.wait_total, t.run_total
            from unnest(v_lanes) l
           cross join lateral millrace.lane_tally(l) t
           union all
          select -p.done_total, -p.failed_total, -p.wait_total, -p.run_total
            from millrace.family(p_queue.queue_id) f
           cross join lateral (select p.*
                                 from millrace.pulse p
                                where p.queue_id = f
                                  and p.taken_at <= p_now - interval '1 hour'
                                order by p.taken_at desc
                                limit 1) p) t;
  v_stats.completed_1h := coalesce(v_sum.done, 0);
  v_stats.failed_1h := coalesce(v_sum.failed, 0);
  v_stats.avg_wait_seconds_1h := v_sum.wait / 1e6 / nullif(v_sum.done + v_sum.failed, 0);
  v_stats.avg_run_seconds_1h := v_sum.run / 1e6 / nullif(v_sum.done + v_sum.failed, 0);
  return v_stats;
end $$;

-- The figures of a queue's own lanes, or of a tenant's.
create or replace function millrace.queue_figures(p_now timestamptz, p_queue millrace.queue)
returns millrace.queue_stats
language plpgsql
as $$
declare
  v_stats millrace.queue_stats;
  v_pulse millrace.pulse;
  v_hour  millrace.pulse;
  v_total record;
  v_first int;
  v_aside bigint;
  v_oldest double precision;
begin
  v_first := p_queue.queue_id << 12;
  v_stats.queue := p_queue.queue_name;
  select coalesce(sum(millrace.lane_depth(p_now, l)), 0),
         coalesce(sum((select sum(k.open_n) from millrace.lane_open_claims(l, millrace.lane_tally(l)) k)), 0),
         max(date_part('epoch', p_now - millrace.lane_oldest(p_now, l)))
    into v_stats.available, v_stats.running, v_stats.oldest_seconds
    from unnest(millrace.lanes_of(p_queue, 0)) l;
  select p.*
    into v_pulse
    from millrace.pulse p
   where p.queue_id = p_queue.queue_id
   order by p.taken_at desc
   limit 1;
  select count(*) filter (where d.why in ('s', 'z', 'p', 'w')), count(*) filter (where d.why in ('r', 'l')), count(*) filter (where d.why in ('o', 'k', 't')),
         date_part('epoch', p_now - min(d.created_at) filter (where d.why in ('o', 'k', 't')))
    into v_stats.scheduled, v_stats.retrying, v_aside, v_oldest
    from (select d.why, d.created_at
            from millrace.delayed d
           where d.lane >= v_first
             and d.lane < v_first + 4096
           limit 10001) d;
  if v_stats.scheduled + v_stats.retrying + v_aside > 10000 then
    v_stats.scheduled := coalesce(v_pulse.scheduled, v_stats.scheduled);
    v_stats.retrying := coalesce(v_pulse.retrying, v_stats.retrying);
    v_aside := coalesce(v_pulse.aside, v_aside);
  end if;
  v_stats.available := v_stats.available + v_aside;      -- waits for its turn only
  v_stats.oldest_seconds := greatest(v_stats.oldest_seconds, v_oldest);
  select count(*)
    into v_stats.dead
    from (select
            from millrace.dead d
           where d.queue_id = coalesce(p_queue.parent_id, p_queue.queue_id)
             and (p_queue.parent_id is null or d.job_tenant = p_queue.tenant_name)
           limit 10001) d;
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
