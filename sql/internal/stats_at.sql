-- SPDX-License-Identifier: PostgreSQL
-- stats with the time as an argument.
create or replace function millrace.stats_at(p_now timestamptz, p_queue text)
returns setof millrace.queue_stats
language plpgsql
as $$
begin
  perform millrace.at_home();
  return query
    select f.queue, f.available, f.running, f.scheduled, f.retrying, f.dead, f.completed_1h, f.failed_1h, f.oldest_seconds,
           f.avg_wait_seconds_1h, f.avg_run_seconds_1h
      from millrace.queue q
     cross join lateral millrace.queue_figures(p_now, q, 10000) f
     where p_queue is null
        or q.queue_name = p_queue
     order by q.queue_name;
end $$;

-- All figures of a queue. Delayed jobs and dead letters are counted up to p_most of each; above that they are as of the last count by maintain.
create or replace function millrace.queue_figures(p_now timestamptz, p_queue millrace.queue, p_most int)
returns millrace.queue_figures
language plpgsql
as $$
declare
  v_figures millrace.queue_figures;
  v_pulse   millrace.pulse := millrace.pulse_last(p_queue.queue_id);
  v_hour    millrace.pulse;
  v_total   record;
  v_first   int := p_queue.queue_id << 12;
  v_aside   bigint;
  v_oldest  double precision;
begin
  v_figures.queue := p_queue.queue_name;
  select coalesce(sum(millrace.lane_depth(p_now, l)), 0), coalesce(sum(o.jobs), 0), coalesce(sum(o.claims), 0),
         max(date_part('epoch', p_now - millrace.lane_oldest(p_now, l)))
    into v_figures.available, v_figures.running, v_figures.claims_open, v_figures.oldest_seconds
    from unnest(millrace.lanes_of(p_queue, 0)) l
   cross join lateral millrace.lane_open(l) o;
  select count(*) filter (where d.why in ('s', 'z', 'p', 'w')), count(*) filter (where d.why in ('r', 'l')), count(*) filter (where d.why = 'o'),
         date_part('epoch', p_now - min(d.created_at) filter (where d.why = 'o'))
    into v_figures.scheduled, v_figures.retrying, v_aside, v_oldest
    from (select d.why, d.created_at
            from millrace.delayed d
           where d.lane >= v_first
             and d.lane < v_first + 4096
           limit p_most + 1) d;
  if v_figures.scheduled + v_figures.retrying + v_aside > p_most then
    v_figures.scheduled := coalesce(v_pulse.scheduled, v_figures.scheduled);
    v_figures.retrying := coalesce(v_pulse.retrying, v_figures.retrying);
    v_aside := coalesce(v_pulse.aside, v_aside);
  end if;
  v_figures.available := v_figures.available + v_aside;      -- waits for its turn only
  v_figures.oldest_seconds := greatest(v_figures.oldest_seconds, v_oldest);
  select count(*)
    into v_figures.dead
    from (select
            from millrace.dead d
           where d.queue_id = p_queue.queue_id
           limit p_most + 1) d;
  if v_figures.dead > p_most then
    v_figures.dead := greatest(v_pulse.dead_count, v_figures.dead);
  end if;
  select p.*
    into v_hour
    from millrace.pulse p
   where p.queue_id = p_queue.queue_id
     and p.taken_at <= p_now - interval '1 hour'
   order by p.taken_at desc
   limit 1;
  v_total := millrace.queue_totals(p_queue);      -- after lane_depth has counted on
  v_figures.completed_1h := v_total.done_total - coalesce(v_hour.done_total, 0);
  v_figures.failed_1h := v_total.failed_total - coalesce(v_hour.failed_total, 0);
  v_figures.avg_wait_seconds_1h := (v_total.wait_total - coalesce(v_hour.wait_total, 0)) / 1e6
                                   / nullif(v_figures.completed_1h + v_figures.failed_1h, 0);
  v_figures.avg_run_seconds_1h := (v_total.run_total - coalesce(v_hour.run_total, 0)) / 1e6
                                  / nullif(v_figures.completed_1h + v_figures.failed_1h, 0);
  v_figures.enqueued_total := v_total.fresh_total;
  v_figures.completed_total := v_total.done_total;
  v_figures.failed_total := v_total.failed_total;
  v_figures.retried_total := v_total.retried_total;
  v_figures.dead_total := v_total.dead_total;
  v_figures.rescued_total := v_total.rescued_total;
  v_figures.cancelled_total := v_total.cancelled_total;
  return v_figures;
end $$;
