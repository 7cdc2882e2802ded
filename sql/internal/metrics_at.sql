-- SPDX-License-Identifier: PostgreSQL
-- metrics with the time as an argument.
create or replace function millrace.metrics_at(p_now timestamptz)
returns jsonb
language plpgsql
as $$
declare
  v_rounds jsonb := millrace.rounds_last();
begin
  perform millrace.at_home();
  return millrace.toolbox_figures(p_now) || jsonb_build_object(
    'at', p_now, 'queues', millrace.overview_queues(p_now, false),
    'segments', (select jsonb_object_agg(s.state, s.n)
                   from (select s.state, count(g.state) as n
                           from unnest(array['open', 'closed', 'sealed', 'leaving', 'free']) s(state)
                           left join millrace.segment_states() g on g.state = s.state
                          group by s.state) s),
    'pinned_segments', millrace.pinned_segments(p_now),
    'xmin_age_seconds', coalesce((select max(h.age_seconds) from millrace.xmin_holders(p_now) h), 0),
    'database_bytes', pg_database_size(current_database()), 'data_directory', millrace.data_directory(),
    'maintain_seconds', (select coalesce(jsonb_object_agg(d.key, (d.value ->> 'ms')::double precision / 1000), '{}') from jsonb_each(v_rounds) d),
    'removed_total', jsonb_build_object('segments', coalesce((v_rounds -> 'retire' ->> 'total')::bigint, 0),
                                        'jobs', coalesce((v_rounds -> 'retire' ->> 'jobs')::bigint, 0),
                                        'dead_letters', coalesce((v_rounds -> 'dead' ->> 'total')::bigint, 0),
                                        'cache_keys', coalesce((v_rounds -> 'cache' ->> 'total')::bigint, 0),
                                        'objects', millrace.hint('millrace.objects_removed')));
end $$;

-- The state of each of the sixteen places of the ring.
create or replace function millrace.segment_states()
returns table (state text)
language plpgsql
as $$
begin
  return query
    select 'open'
     union all
    select case when g.parked then 'leaving' when millrace.segment_sealed(g) then 'sealed' else 'closed' end
      from millrace.segments_live() g
     union all
    select 'free'
      from generate_series(1, 15 - (select count(*) from millrace.segments_live()));
end $$;

-- For each queue how many segments wait for it that nobody else's retention keeps any more.
create or replace function millrace.pinned_segments(p_now timestamptz)
returns jsonb
language plpgsql
as $$
begin
  return (select coalesce(jsonb_object_agg(p.queue_name, p.n), '{}')
            from (select q.queue_name, count(*) as n
                    from millrace.segments_pinned() s
                    join millrace.segments_live() g on g.seg = s.seg
                    join millrace.queue q on q.queue_id = s.queue_id
                   where g.closed_at <= p_now - millrace.log_retention()
                   group by q.queue_name) p);
end $$;
