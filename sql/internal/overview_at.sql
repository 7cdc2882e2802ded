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
                            'totals', millrace.overview_totals(v_queues) || millrace.overview_spread(p_now));
end $$;

-- Percentiles over all queues, of what ended in the last minute, as the pulse has them: of the minute up to the newest one.
create or replace function millrace.overview_spread(p_now timestamptz)
returns jsonb
language plpgsql
as $$
declare
  v_last   millrace.pulse := millrace.pulse_before(0, p_now);
  v_before millrace.pulse := millrace.pulse_before(0, v_last.taken_at - interval '1 minute');
begin
  if v_before.taken_at is null and (select h.installed_at from millrace.home h) > v_last.taken_at - interval '1 minute' then
    v_before.wait_spread := '{}';      -- before that there was nothing
    v_before.run_spread := '{}';
  elsif v_before.taken_at is null then      -- somebody has begun to look: what is known of the minute
    select p.*
      into v_before
      from millrace.pulse p
     where p.queue_id = 0
       and p.taken_at > v_last.taken_at - interval '1 minute'
       and p.taken_at < v_last.taken_at
     order by p.taken_at
     limit 1;
  end if;
  if v_before.wait_spread is null or v_last.taken_at < p_now - interval '1 minute' then
    return '{}';      -- nobody looked, or nothing has changed since
  end if;
  return jsonb_strip_nulls(jsonb_build_object(
    'wait', millrace.spread_percentiles(millrace.spread_rise(v_last.wait_spread, v_before.wait_spread)),
    'run', millrace.spread_percentiles(millrace.spread_rise(v_last.run_spread, v_before.run_spread))));
end $$;

-- The queues of overview. p_spread: with percentiles.
create or replace function millrace.overview_queues(p_now timestamptz, p_spread boolean)
returns jsonb
language plpgsql
as $$
declare
  c_counted constant int := 1000;
  c_claims  constant int := 2000;      -- looked at for percentiles, of all queues together
  v_each    int := least(1000, greatest(20, c_claims / greatest((select count(*) from millrace.queue), 1)));
begin
  return millrace.queue_faces(p_now, null, c_counted, case when p_spread then v_each end);
end $$;

-- A queue as overview and queue_story show it, or all in order of their names. p_counted: delayed jobs and dead letters are counted up to so many; p_claims:
-- so many finished claims of a queue are looked at for percentiles, null: none.
create or replace function millrace.queue_faces(p_now timestamptz, p_queue text, p_counted int, p_claims int)
returns jsonb
language plpgsql
as $$
begin
  return coalesce((select jsonb_agg(jsonb_strip_nulls(to_jsonb(f) || jsonb_build_object('paused', q.paused_at is not null, 'status', v.status, 'message', v.message))
                                    || case when p_claims is null or f.completed_1h + f.failed_1h = 0 then '{}'
                                            else millrace.queue_spread(q, p_claims) end order by f.queue)
                     from millrace.queue_figures(p_now, p_queue, p_counted, millrace.counted_by_maintain(p_now)) f
                     join millrace.queue q on q.queue_name = f.queue and q.parent_id is null
                    cross join lateral millrace.queue_verdict(q, f.available, f.oldest_seconds) v), '[]');
end $$;

-- How old the ledger may be for those who look often. Where maintain counts it on every second they need not: what came since is added anyway. A lane in
-- which nothing happens is not written down again, so that its row may be old and yet up to date.
create or replace function millrace.counted_by_maintain(p_now timestamptz)
returns interval
language plpgsql
as $$
begin
  return case when (millrace.rounds_last() -> 'count' ->> 'last_at')::timestamptz > p_now - interval '15 seconds' then interval '1000 years' else interval '5 seconds' end;
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
