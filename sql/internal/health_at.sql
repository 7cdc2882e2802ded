-- SPDX-License-Identifier: PostgreSQL
-- health with the time as an argument.
create or replace function millrace.health_at(p_now timestamptz)
returns setof millrace.queue_health
language plpgsql
as $$
declare
  v_stats   millrace.queue_stats;
  v_queue   millrace.queue;
  v_segment millrace.segment;
  v_live    int;
  v_lanes   text;
begin
  perform millrace.at_home();
  for v_stats in select s.* from millrace.stats_at(p_now, null) s loop
    select q.*
      into v_queue
      from millrace.queue q
     where q.queue_name = v_stats.queue
       and q.parent_id is null;
    continue when not found;      -- dropped this moment
    return next row(v_stats.queue,
                    case
                      when v_stats.available > v_queue.critical_depth then 'CRITICAL'
                      when v_stats.available > v_queue.warn_depth or v_stats.available >= v_queue.depth_limit then 'WARNING'
                      else 'OK'
                    end,
                    format('%s pending%s%s%s', v_stats.available,
                           case when v_stats.available >= v_queue.depth_limit then ', full (depth_limit ' || v_queue.depth_limit || ')' else '' end,
                           coalesce(', oldest ' || round(v_stats.oldest_seconds::numeric, 1) || ' s', ''),
                           case when v_queue.paused_at is not null then ', paused' else '' end))::millrace.queue_health;
  end loop;
  select count(*)
    into v_live
    from millrace.segments_live();
  select g.*
    into v_segment
    from millrace.segments_live() g
   order by g.seg
   limit 1;
  if v_segment.closed_at < p_now - millrace.log_retention() - interval '1 minute' then
    select string_agg(distinct quote_literal(q.queue_name), ', ')
      into v_lanes
      from millrace.segment_pinned_by(v_segment) l
      join millrace.queue q on q.queue_id = l >> 12;
    return next row(null, case when v_live >= 15 then 'CRITICAL' else 'WARNING' end,
                    case
                      when not millrace.segment_sealed(v_segment) then
                        'an open transaction holds segments of the log, in this or another database of the server; see pg_stat_activity for the oldest xact_start'
                      when v_lanes is not null then
                        format('segments of the log are pinned by queues %s: resume or purge them, or start workers', v_lanes)
                      else 'segments of the log wait to be truncated: run maintain(); a reader such as pg_dump may hold them'
                    end)::millrace.queue_health;
  else
    return next row(null, 'OK', format('%s of 16 segments in use', v_live + 1))::millrace.queue_health;
  end if;
end $$;
