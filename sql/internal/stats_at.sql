-- SPDX-License-Identifier: PostgreSQL
-- stats with the time as an argument.
create or replace function millrace.stats_at(p_now timestamptz, p_queue text)
returns setof millrace.queue_stats
language plpgsql
as $$
declare
  v_queue millrace.queue;
  v_stats millrace.queue_stats;
  v_pulse millrace.pulse;
  v_hour  millrace.pulse;
  v_total record;
  v_first int;
  v_aside bigint;
  v_oldest double precision;
begin
  perform millrace.at_home();
  for v_queue in
    select q.*
      from millrace.queue q
     where p_queue is null
        or q.queue_name = p_queue
     order by q.queue_name
  loop
    v_first := v_queue.queue_id << 12;
    v_stats.queue := v_queue.queue_name;
    select coalesce(sum(millrace.lane_depth(p_now, l)), 0),
           coalesce(sum((select sum(k.open_n) from millrace.lane_open_claims(l, millrace.lane_tally(l)) k)), 0),
           max(date_part('epoch', p_now - millrace.lane_oldest(p_now, l)))
      into v_stats.available, v_stats.running, v_stats.oldest_seconds
      from unnest(millrace.lanes_of(v_queue, 0)) l;
    select p.*
      into v_pulse
      from millrace.pulse p
     where p.queue_id = v_queue.queue_id
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
             where d.queue_id = v_queue.queue_id
             limit 10001) d;
    if v_stats.dead > 10000 then
      v_stats.dead := greatest(v_pulse.dead_count, v_stats.dead);
    end if;
    select p.*
      into v_hour
      from millrace.pulse p
     where p.queue_id = v_queue.queue_id
       and p.taken_at <= p_now - interval '1 hour'
     order by p.taken_at desc
     limit 1;
    v_total := millrace.queue_totals(v_queue);
    v_stats.completed_1h := v_total.done_total - coalesce(v_hour.done_total, 0);
    v_stats.failed_1h := v_total.failed_total - coalesce(v_hour.failed_total, 0);
    v_stats.avg_wait_seconds_1h := (v_total.wait_total - coalesce(v_hour.wait_total, 0)) / 1e6
                                   / nullif(v_stats.completed_1h + v_stats.failed_1h, 0);
    v_stats.avg_run_seconds_1h := (v_total.run_total - coalesce(v_hour.run_total, 0)) / 1e6
                                  / nullif(v_stats.completed_1h + v_stats.failed_1h, 0);
    return next v_stats;
  end loop;
end $$;
