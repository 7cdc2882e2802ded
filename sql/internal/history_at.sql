-- SPDX-License-Identifier: PostgreSQL
-- history with the time as an argument. Points stand at the end of steps of at least ten seconds, which is how often a pulse is taken. A pulse that would
-- say what the last one said is left out for up to ten minutes; where there is none for longer, nobody looked, and nothing is known.
create or replace function millrace.history_at(p_now timestamptz, p_queue text, p_minutes int)
returns jsonb
language plpgsql
as $$
declare
  c_points constant int := 180;
  v_id     int := 0;
  v_since  timestamptz := (select h.installed_at from millrace.home h);      -- before that there was nothing
  v_step   int;
  v_n      int;
  v_from   timestamptz;
  v_points jsonb;
begin
  perform millrace.at_home();
  perform millrace.check_number('minutes', p_minutes, 1, 360);
  if p_queue is not null then
    select q.queue_id, q.created_at
      into v_id, v_since
      from millrace.queue_known(p_queue) q;
  end if;
  v_step := greatest(10, ceil(p_minutes * 60.0 / c_points / 10)::int * 10);
  v_n := p_minutes * 60 / v_step;
  v_from := p_now - make_interval(secs => v_n * v_step);
  select jsonb_agg(millrace.history_point(v_from + make_interval(secs => s.g * v_step), v_step, s.pulse, s.before,
                                          v_since > v_from + make_interval(secs => (s.g - 1) * v_step)) order by s.g)
    into v_points
    from (select s.g, s.pulse, lag(s.pulse) over (order by s.g) as before
            from (select g, millrace.pulse_before(v_id, v_from + make_interval(secs => g * v_step)) as pulse
                    from generate_series(0, v_n) g) s) s
   where s.g > 0;
  return jsonb_build_object('queue', p_queue, 'from', v_from, 'to', p_now, 'step_seconds', v_step, 'points', coalesce(v_points, '[]'));
end $$;

-- The figures that held at a time; all null where they are not known.
create or replace function millrace.pulse_before(p_queue_id int, p_at timestamptz)
returns millrace.pulse
language plpgsql
as $$
declare
  v_pulse millrace.pulse;
begin
  select p.*
    into v_pulse
    from millrace.pulse p
   where p.queue_id = p_queue_id
     and p.taken_at <= p_at
     and p.taken_at > p_at - interval '11 minutes'
   order by p.taken_at desc
   limit 1;
  return v_pulse;
end $$;

-- One point. p_new: the queue is younger than the step, so that its totals began at nothing. A round of upkeep comes a little later than every ten seconds,
-- so that a step may have no pulse of its own: of such a step no rate is known. A rate is what a total grew by, over the time between its pulses; where
-- some were left out because nothing changed, over the step.
create or replace function millrace.history_point(p_at timestamptz, p_step int, p_pulse millrace.pulse, p_before millrace.pulse, p_new boolean)
returns jsonb
language plpgsql
immutable
as $$
declare
  c_late    constant interval := '15 seconds';
  v_seconds double precision := p_step;
  v_ended   bigint;
  v_wait    jsonb;
  v_run     jsonb;
begin
  if p_pulse.taken_at = p_before.taken_at and p_at - p_pulse.taken_at < c_late then
    p_before := null;
  elsif p_pulse.taken_at > p_before.taken_at and p_pulse.taken_at - p_before.taken_at < make_interval(secs => p_step) + c_late then
    v_seconds := date_part('epoch', p_pulse.taken_at - p_before.taken_at);
  elsif p_before.taken_at is null and p_new then
    p_before.fresh_total := 0;
    p_before.done_total := 0;
    p_before.failed_total := 0;
    p_before.wait_total := 0;
    p_before.run_total := 0;
    p_before.wait_spread := '{}';
    p_before.run_spread := '{}';
  end if;
  v_ended := nullif(millrace.rise(p_pulse.done_total, p_before.done_total) + millrace.rise(p_pulse.failed_total, p_before.failed_total), 0);
  if v_ended > 0 and p_before.wait_spread is not null then
    v_wait := millrace.spread_percentiles(millrace.spread_rise(p_pulse.wait_spread, p_before.wait_spread));
    v_run := millrace.spread_percentiles(millrace.spread_rise(p_pulse.run_spread, p_before.run_spread));
  end if;
  return jsonb_strip_nulls(jsonb_build_object(
    'at', p_at, 'enqueued', millrace.rise(p_pulse.fresh_total, p_before.fresh_total) / v_seconds,
    'completed', millrace.rise(p_pulse.done_total, p_before.done_total) / v_seconds,
    'failed', millrace.rise(p_pulse.failed_total, p_before.failed_total) / v_seconds,
    'available', p_pulse.available + p_pulse.aside, 'running', p_pulse.running, 'retrying', p_pulse.retrying, 'dead', p_pulse.dead_count,
    'wait_seconds', millrace.rise(p_pulse.wait_total, p_before.wait_total) / 1e6::double precision / v_ended,
    'run_seconds', millrace.rise(p_pulse.run_total, p_before.run_total) / 1e6::double precision / v_ended,
    'wait', v_wait, 'run', v_run));
end $$;

-- What a total has grown by; 0 where it began anew, as the sum of all queues does when one is dropped.
create or replace function millrace.rise(p_now bigint, p_before bigint)
returns bigint
language sql
immutable
as $$
  select case when p_now < p_before then 0 else p_now - p_before end
$$;
