-- SPDX-License-Identifier: PostgreSQL
-- Checks of doctor that read the logs and the queues.

-- maintain writes the time of its last round into pulse_clock, every ten seconds.
create or replace function millrace.doctor_upkeep(p_now timestamptz)
returns table (topic text, verdict text, evidence text, remedy text)
language plpgsql
as $$
declare
  v_last timestamptz := to_timestamp(nullif(millrace.hint('millrace.pulse_clock'), 0) / 1000.0);
  v_used boolean := millrace.hint('millrace.pos_seq') > 0;
  v_late boolean := v_last is null or v_last < p_now - interval '1 minute';
begin
  return query
    select 'upkeep', case when not v_late or not v_used then 'ok' when v_last > p_now - interval '10 minutes' then 'warning' else 'critical' end,
           case
             when v_last is null and not v_used then 'maintain() has not run yet, and there was no job yet'
             when v_last is null then 'maintain() has never run: the log is not rotated and grows'
             else format('maintain() ran %s ago', millrace.age_text(p_now - v_last))
           end,
           'Run `millrace serve` with the role maintain, or call millrace.maintain() every second.';
end $$;

-- The newest times that were written down, against the clock: the clock went back, or it was ahead.
create or replace function millrace.doctor_clock(p_now timestamptz)
returns table (topic text, verdict text, evidence text, remedy text)
language plpgsql
as $$
declare
  v_newest timestamptz;
begin
  select greatest(max(t.counted_at), to_timestamp(max(millrace.hint(c.clock)) / 1000.0))
    into v_newest
    from unnest(array['millrace.pulse_clock', 'millrace.upkeep_clock', 'millrace.clean_clock']::regclass[]) c(clock)
    left join (select (millrace.lane_tally(l)).counted_at from millrace.lanes_all() l) t on true;
  return query
    select 'clock', case when v_newest > p_now + interval '1 minute' then 'critical' when v_newest > p_now + interval '2 seconds' then 'warning' else 'ok' end,
           format('%s%s', to_char(p_now at time zone 'utc', 'YYYY-MM-DD HH24:MI:SS "UTC"'),
                  case when v_newest > p_now + interval '2 seconds' then ', but the log has times ' || millrace.age_text(v_newest - p_now) || ' ahead of it: the clock went back' else '' end),
           'Let chrony or systemd-timesyncd keep the clock. Leases and delays that were given before end later by that much.';
end $$;

-- What health() says of the log and of the queues; and queues in which a job has waited for a minute while nobody took one, paused ones apart.
create or replace function millrace.doctor_queues(p_now timestamptz)
returns table (topic text, verdict text, evidence text, remedy text)
language plpgsql
as $$
declare
  v_queues jsonb := millrace.overview_queues(p_now, false);
begin
  return query
    select 'segments', case l.status when 'OK' then 'ok' when 'WARNING' then 'warning' else 'critical' end, l.message,
           'Nothing is lost: the log grows until the cause is gone. Resume or purge the queues named, end the transaction, or run maintain().'
      from millrace.log_verdict(p_now) l;
  return query
    select 'depth', case when q.critical <> '{}' then 'critical' when q.warning <> '{}' then 'warning' else 'ok' end,
           case
             when q.critical <> '{}' then 'over critical_depth: ' || millrace.some_of(q.critical)
             when q.warning <> '{}' then 'over warn_depth or full: ' || millrace.some_of(q.warning)
             else format('%s queues, none over its warn_depth', q.n)
           end,
           'More workers, or see what they wait for: `millrace status`. If that many are normal: `millrace queue set QUEUE warn_depth=N critical_depth=N`'
      from (select count(*) as n, coalesce(array_agg(format('%L (%s)', h.queue, h.message) order by h.queue) filter (where h.status = 'CRITICAL'), '{}') as critical,
                   coalesce(array_agg(format('%L (%s)', h.queue, h.message) order by h.queue) filter (where h.status = 'WARNING'), '{}') as warning
              from jsonb_to_recordset(v_queues) h(queue text, status text, message text)) q;
  return query
    select 'workers', case when w.idle <> '{}' then 'warning' when w.paused <> '{}' then 'note' else 'ok' end,
           case
             when w.idle <> '{}' then 'nobody takes the jobs of ' || millrace.some_of(w.idle)
             when w.paused <> '{}' then 'paused, with jobs that wait: ' || millrace.some_of(w.paused)
             else format('%s took jobs in the last minute', w.n)
           end,
           case when w.idle <> '{}' then 'Start workers: `millrace serve`, or `millrace work QUEUE --exec CMD`.' else '`millrace resume QUEUE` when it should go on.' end
      from millrace.doctor_idlers(p_now, v_queues) w;
end $$;

-- Queues that nobody serves, with how many jobs wait and for how long; and how many workers took jobs in the last minute.
create or replace function millrace.doctor_idlers(p_now timestamptz, p_queues jsonb)
returns table (n bigint, idle text[], paused text[])
language plpgsql
as $$
declare
  v_taken text[];
begin
  select count(distinct l.worker) filter (where l.last_claim_at > p_now - interval '1 minute'), array_agg(l.queue)
    into n, v_taken
    from millrace.worker_list() l
   where l.last_claim_at > p_now - interval '1 minute'
      or l.claims_open > 0;
  select coalesce(array_agg(w.shown order by w.queue) filter (where not w.paused and w.queue <> all (coalesce(v_taken, '{}'))), '{}'),
         coalesce(array_agg(w.shown order by w.queue) filter (where w.paused), '{}')
    into idle, paused
    from (select q.queue, q.paused, format('%L (%s, oldest %s)', q.queue, q.available, millrace.age_text(make_interval(secs => q.oldest_seconds))) as shown
            from jsonb_to_recordset(p_queues) q(queue text, paused boolean, available bigint, oldest_seconds double precision)
           where q.available > 0
             and q.oldest_seconds > 60) w;
  return next;
end $$;

create or replace function millrace.doctor_dead(p_now timestamptz)
returns table (topic text, verdict text, evidence text, remedy text)
language plpgsql
as $$
declare
  c_exact constant int := 2000;      -- counted; above it the figure of the last ten seconds does
begin
  return query
    select 'dead letters', case when d.worst >= 100 or d.full <> '{}' then 'warning' when d.worst > 0 then 'note' else 'ok' end,
           case
             when d.full <> '{}' then 'near their dead_max, the oldest are removed then: ' || millrace.some_of(d.full)
             when d.worst > 0 then 'in the last hour: ' || millrace.some_of(d.growing)
             else 'none in the last hour'
           end,
           '`millrace dead list` shows the errors; `millrace dead replay --queue QUEUE` when the cause is gone, `millrace dead purge QUEUE` when they are of no use'
      from (select max(q.fresh) as worst, coalesce(array_agg(format('%L %s', q.queue_name, q.fresh) order by q.fresh desc) filter (where q.fresh > 0), '{}') as growing,
                   coalesce(array_agg(format('%L %s of %s', q.queue_name, q.dead_count, q.dead_limit) order by q.queue_name) filter (where q.dead_count >= q.dead_limit * 0.8), '{}') as full
              from (select u.queue_name, u.dead_limit,
                           (select count(*) from (select from millrace.dead x where x.queue_id = u.queue_id and x.died_at > p_now - interval '1 hour' limit c_exact) x) as fresh,
                           greatest((select count(*) from (select from millrace.dead x where x.queue_id = u.queue_id limit c_exact) x),
                                    (select p.dead_count from millrace.pulse p where p.queue_id = u.queue_id and u.dead_limit > c_exact order by p.taken_at desc limit 1)) as dead_count
                      from millrace.queue u) q) d;
end $$;

create or replace function millrace.doctor_schedules(p_now timestamptz)
returns table (topic text, verdict text, evidence text, remedy text)
language plpgsql
as $$
begin
  return query
    select 'schedules', case when s.failing <> '{}' or s.late <> '{}' then 'warning' else 'ok' end,
           case
             when s.failing <> '{}' then 'their last job could not be enqueued: ' || millrace.some_of(s.failing)
             when s.late <> '{}' then 'should have fired: ' || millrace.some_of(s.late)
             else format('%s active', s.n)
           end,
           case when s.failing <> '{}' then '`millrace cron list` shows the error.' else 'Run `millrace serve` with the role maintain, or call millrace.maintain() every second.' end
      from (select count(*) as n, coalesce(array_agg(quote_literal(c.schedule_name) order by c.schedule_name) filter (where c.last_error is not null), '{}') as failing,
                   coalesce(array_agg(quote_literal(c.schedule_name) order by c.schedule_name) filter (where c.next_at < p_now - interval '1 minute'), '{}') as late
              from millrace.schedule c
             where c.enabled) s;
end $$;

-- Queues whose payloads should be carried to the blob store and back, and whether somebody does.
create or replace function millrace.doctor_payloads(p_now timestamptz)
returns table (topic text, verdict text, evidence text, remedy text)
language plpgsql
as $$
declare
  v_queues text[] := array(select quote_literal(q.queue_name) from millrace.queue q where q.parent_id is null and (q.offload_after is not null or q.offload_dead) order by q.queue_name);
  v_late   text := (select string_agg(format('%L: %s', q.queue_name, a.message), '; ' order by q.queue_name)
                      from millrace.away_verdicts(p_now) a
                      join millrace.queue q on q.queue_id = a.queue_id);
  v_holder text := (select h.holder from millrace.lock_newest(millrace.cache_key('millrace: offload'), 'millrace: offload') h where h.held_until > p_now - interval '1 minute');
begin
  return query
    select 'payloads', case when v_late is not null or v_queues <> '{}' and v_holder is null then 'warning' else 'ok' end,
           case
             when v_late is not null then v_late
             when v_queues = '{}' then 'no queue moves its payloads to a blob store'
             when v_holder is null then 'nobody carries the payloads of ' || millrace.some_of(v_queues)
             else format('of %s, carried by %s', millrace.some_of(v_queues), v_holder)
           end,
           'Run `millrace serve` with the role maintain and the address of a blob store (`blobs`, or MILLRACE_BLOBS); `millrace doctor` with MILLRACE_BLOBS looks whether it can be used.';
end $$;
