-- SPDX-License-Identifier: PostgreSQL
-- health with the time as an argument.
create or replace function millrace.health_at(p_now timestamptz)
returns setof millrace.queue_health
language plpgsql
as $$
begin
  perform millrace.at_home();
  return query
    select s.queue, case when coalesce(c.message, a.message) is not null and v.status = 'OK' then 'WARNING' else v.status end, concat_ws('; ', v.message, c.message, a.message)
      from millrace.stats_at(p_now, null) s
      join millrace.queue q on q.queue_name = s.queue and q.parent_id is null
     cross join lateral millrace.queue_verdict(q, s.available, s.oldest_seconds) v
      left join millrace.capture_verdicts(p_now) c on c.queue = s.queue
      left join millrace.away_verdicts(p_now) a on a.queue_id = q.queue_id
     order by s.queue;
  return next millrace.log_verdict(p_now);
end $$;

-- How a queue with so many jobs waiting is: OK, WARNING or CRITICAL by its settings, and in words.
create or replace function millrace.queue_verdict(p_queue millrace.queue, p_available bigint, p_oldest double precision, out status text, out message text)
language plpgsql
as $$
begin
  status := case
              when p_available > p_queue.critical_depth then 'CRITICAL'
              when p_available > p_queue.warn_depth or p_available >= p_queue.depth_limit then 'WARNING'
              else 'OK'
            end;
  message := format('%s pending%s%s%s', p_available,
                    case when p_available >= p_queue.depth_limit then ', full (depth_limit ' || p_queue.depth_limit || ')' else '' end,
                    coalesce(', oldest ' || round(p_oldest::numeric, 1) || ' s', ''),
                    case when p_queue.paused_at is not null then ', paused' else '' end);
end $$;

-- How the log is: a ring that fills up, and who holds it.
create or replace function millrace.log_verdict(p_now timestamptz)
returns millrace.queue_health
language plpgsql
as $$
declare
  v_segment millrace.segment;
  v_live    int;
  v_lanes   text;
begin
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
    return row(null, case when v_live >= 15 then 'CRITICAL' else 'WARNING' end,
                    case
                      when not millrace.segment_sealed(v_segment) then
                        'an open transaction holds segments of the log, in this or another database of the server; see pg_stat_activity for the oldest xact_start'
                      when v_lanes is not null then
                        format('segments of the log are pinned by queues %s: resume or purge them, or start workers', v_lanes)
                      else 'segments of the log wait to be truncated: run maintain(); a reader such as pg_dump may hold them'
                    end)::millrace.queue_health;
  else
    return row(null, 'OK', format('%s of 16 segments in use', v_live + 1))::millrace.queue_health;
  end if;
end $$;
