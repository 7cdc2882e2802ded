-- SPDX-License-Identifier: PostgreSQL
-- overview with the time as an argument.
create or replace function millrace.overview_at(p_now timestamptz)
returns jsonb
language plpgsql
as $$
declare
  v_queues jsonb;
begin
  perform millrace.at_home();
  v_queues := millrace.overview_queues(p_now, true);
  return jsonb_build_object('at', p_now, 'version', (select f.program_version from millrace.schema_functions f limit 1), 'queues', v_queues,
                            'log', (select jsonb_agg(jsonb_build_object('status', l.status, 'message', l.message)) from millrace.log_verdict(p_now) l),
                            'totals', millrace.overview_totals(v_queues));
end $$;

-- The queues of overview, in order of their names. Delayed jobs and dead letters are counted up to a thousand a queue: more are known by the last pulse.
create or replace function millrace.overview_queues(p_now timestamptz, p_spread boolean)
returns jsonb
language plpgsql
as $$
declare
  c_counted constant int := 1000;
  c_claims  constant int := 4000;      -- looked at for percentiles, of all queues together
  v_each    int := least(1000, greatest(50, c_claims / greatest((select count(*) from millrace.queue), 1)));
begin
  return coalesce((select jsonb_agg(millrace.queue_face(p_now, q, c_counted, case when p_spread then v_each end) order by q.queue_name)
                     from millrace.queue q), '[]');
end $$;

-- A queue as overview and queue_story show it. p_claims: so many finished claims are looked at for percentiles; null: none.
create or replace function millrace.queue_face(p_now timestamptz, p_queue millrace.queue, p_counted int, p_claims int)
returns jsonb
language plpgsql
as $$
declare
  v_figures millrace.queue_figures := millrace.queue_figures(p_now, p_queue, p_counted);
  v_verdict record := millrace.queue_verdict(p_queue, v_figures.available, v_figures.oldest_seconds);
begin
  return jsonb_strip_nulls(to_jsonb(v_figures) || jsonb_build_object('paused', p_queue.paused_at is not null, 'status', v_verdict.status,
                                                                     'message', v_verdict.message))
         || case when p_claims is null then '{}' else millrace.queue_spread(p_queue, p_claims) end;
end $$;

-- The sums over queues, as far as figures can be added.
create or replace function millrace.overview_totals(p_queues jsonb)
returns jsonb
language sql
as $$
  select coalesce(jsonb_object_agg(s.key, s.n), '{}')
    from (select f.key, sum((f.value #>> '{}')::numeric) as n
            from jsonb_array_elements(p_queues) q(queue)
           cross join lateral jsonb_each(q.queue) f
           where f.key in ('available', 'running', 'scheduled', 'retrying', 'dead', 'completed_1h', 'failed_1h', 'claims_open')
              or f.key like '%\_total'
           group by f.key) s
$$;
