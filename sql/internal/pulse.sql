-- SPDX-License-Identifier: PostgreSQL
-- Writes down the figures of each queue, and of all together (queue_id 0), every ten seconds while they change, so that stats() can tell what the
-- last hour brought and history() what it looked like. Delayed jobs and dead letters are counted here, never more than a twentieth of the time.
create or replace function millrace.pulse(p_now timestamptz)
returns bigint
language plpgsql
set enable_seqscan = on
as $$
declare
  v_begun  timestamptz := clock_timestamp();
  v_queue  millrace.queue;
  v_last   millrace.pulse;
  v_new    millrace.pulse;
  v_sum    millrace.pulse;
  v_family jsonb := '{}';      -- of fair queues: the sum of their tenants
  v_count  jsonb;
  v_counts boolean;
  v_took   real;
  v_n      bigint := 0;
begin
  if not millrace.due('millrace.pulse_clock', p_now, 10000) then
    return 0;
  end if;
  perform setval('millrace.pulse_clock', millrace.epoch_ms(p_now));
  select max(p.took_ms)
    into v_took
    from millrace.pulse p
   where p.slot in (millrace.pulse_slot(p_now), millrace.pulse_slot(p_now - interval '1 hour'))
     and p.taken_at > p_now - interval '1 hour'
     and p.taken_at > p_now - make_interval(secs => p.took_ms / 50);
  v_counts := v_took is null;
  if v_counts then
    select coalesce(jsonb_object_agg(c.queue_id || c.what, c.n), '{}')
      into v_count
      from (select d.lane >> 12 as queue_id, case when d.why in ('r', 'l') then 'retrying' when d.why in ('o', 'k', 't') then 'aside' else 'scheduled' end as what, count(*) as n
              from millrace.delayed d
             group by 1, 2
             union all
            select d.queue_id, 'dead', count(*)
              from millrace.dead d
             group by 1) c;
    v_took := date_part('epoch', clock_timestamp() - v_begun) * 1000;
  end if;
  v_sum := millrace.pulse_plus(null, null);
  for v_queue in select q.* from millrace.queue q order by q.parent_id nulls last loop
    v_last := millrace.pulse_last(v_queue.queue_id);
    v_new := millrace.pulse_of(p_now, v_queue, v_last);
    if v_counts or v_last.queue_id is null then
      v_new.scheduled := coalesce((v_count ->> (v_queue.queue_id || 'scheduled'))::bigint, 0);
      v_new.retrying := coalesce((v_count ->> (v_queue.queue_id || 'retrying'))::bigint, 0);
      v_new.dead_count := coalesce((v_count ->> (v_queue.queue_id || 'dead'))::bigint, 0);
      v_new.aside := coalesce((v_count ->> (v_queue.queue_id || 'aside'))::bigint, 0);
    end if;
    if v_queue.parent_id is not null then
      v_family := v_family || jsonb_build_object(v_queue.parent_id, millrace.pulse_plus(
                                jsonb_populate_record(null::millrace.pulse, v_family -> v_queue.parent_id::text), v_new));
    else
      if v_queue.has_tenants then
        v_new := millrace.pulse_with(v_new, jsonb_populate_record(null::millrace.pulse, v_family -> v_queue.queue_id::text), v_counts or v_last.queue_id is null);
      end if;
      v_sum := millrace.pulse_plus(v_sum, v_new);
    end if;
    v_n := v_n + millrace.pulse_add(p_now, v_queue.queue_id, v_new, v_last, v_took);
  end loop;
  perform millrace.pulse_add(p_now, 0, v_sum, millrace.pulse_last(0), v_took);
  return v_n;
end $$;

-- The leaf of a time: one an hour, of eight.
create or replace function millrace.pulse_slot(p_at timestamptz)
returns int2
language sql
stable
as $$
  select ((date_part('epoch', p_at)::bigint / 3600) % 8)::int2
$$;

-- The newest row of a queue; all null where there is none.
create or replace function millrace.pulse_last(p_queue_id int)
returns millrace.pulse
language plpgsql
set enable_seqscan = off
as $$
declare
  v_last millrace.pulse;
begin
  select p.*
    into v_last
    from millrace.pulse p
   where p.queue_id = p_queue_id
   order by p.taken_at desc
   limit 1;
  return v_last;
end $$;

-- What the ledger says of a queue this moment, in a copy of its last row.
create or replace function millrace.pulse_of(p_now timestamptz, p_queue millrace.queue, p_last millrace.pulse)
returns millrace.pulse
language plpgsql
set enable_seqscan = off
as $$
declare
  v_new   millrace.pulse := p_last;
  v_total record := millrace.queue_totals(p_queue);
begin
  v_new.done_total := v_total.done_total;
  v_new.failed_total := v_total.failed_total;
  v_new.wait_total := v_total.wait_total;
  v_new.run_total := v_total.run_total;
  v_new.fresh_total := v_total.fresh_total;
  v_new.retried_total := v_total.retried_total;
  v_new.dead_total := v_total.dead_total;
  v_new.rescued_total := v_total.rescued_total;
  v_new.cancelled_total := v_total.cancelled_total;
  v_new.wait_spread := v_total.wait_spread;
  v_new.run_spread := v_total.run_spread;
  select coalesce(sum(millrace.lane_depth(p_now, l)), 0), coalesce(sum((millrace.lane_open(l, millrace.lane_tally(l))).jobs), 0)
    into v_new.available, v_new.running
    from unnest(millrace.lanes_of(p_queue, 0)) l;
  return v_new;
end $$;

-- The sum of two rows.
create or replace function millrace.pulse_plus(p_sum millrace.pulse, p_one millrace.pulse)
returns millrace.pulse
language plpgsql
as $$
begin
  p_sum.done_total := coalesce(p_sum.done_total, 0) + coalesce(p_one.done_total, 0);
  p_sum.failed_total := coalesce(p_sum.failed_total, 0) + coalesce(p_one.failed_total, 0);
  p_sum.wait_total := coalesce(p_sum.wait_total, 0) + coalesce(p_one.wait_total, 0);
  p_sum.run_total := coalesce(p_sum.run_total, 0) + coalesce(p_one.run_total, 0);
  p_sum.fresh_total := coalesce(p_sum.fresh_total, 0) + coalesce(p_one.fresh_total, 0);
  p_sum.retried_total := coalesce(p_sum.retried_total, 0) + coalesce(p_one.retried_total, 0);
  p_sum.dead_total := coalesce(p_sum.dead_total, 0) + coalesce(p_one.dead_total, 0);
  p_sum.rescued_total := coalesce(p_sum.rescued_total, 0) + coalesce(p_one.rescued_total, 0);
  p_sum.cancelled_total := coalesce(p_sum.cancelled_total, 0) + coalesce(p_one.cancelled_total, 0);
  p_sum.scheduled := coalesce(p_sum.scheduled, 0) + coalesce(p_one.scheduled, 0);
  p_sum.retrying := coalesce(p_sum.retrying, 0) + coalesce(p_one.retrying, 0);
  p_sum.dead_count := coalesce(p_sum.dead_count, 0) + coalesce(p_one.dead_count, 0);
  p_sum.aside := coalesce(p_sum.aside, 0) + coalesce(p_one.aside, 0);
  p_sum.available := coalesce(p_sum.available, 0) + coalesce(p_one.available, 0);
  p_sum.running := coalesce(p_sum.running, 0) + coalesce(p_one.running, 0);
  p_sum.wait_spread := millrace.spread_sum(p_sum.wait_spread, p_one.wait_spread);
  p_sum.run_spread := millrace.spread_sum(p_sum.run_spread, p_one.run_spread);
  return p_sum;
end $$;

-- The row of a fair queue with those of its tenants. What was not counted anew (p_counted false) is in it already.
create or replace function millrace.pulse_with(p_own millrace.pulse, p_tenants millrace.pulse, p_counted boolean)
returns millrace.pulse
language plpgsql
as $$
begin
  if not p_counted then
    p_tenants.scheduled := 0;
    p_tenants.retrying := 0;
    p_tenants.dead_count := 0;
    p_tenants.aside := 0;
  end if;
  return millrace.pulse_plus(p_own, p_tenants);
end $$;

-- Appends a row; 0 where nothing has changed for less than ten minutes.
create or replace function millrace.pulse_add(p_now timestamptz, p_queue_id int, p_new millrace.pulse, p_last millrace.pulse, p_took real)
returns int
language plpgsql
as $$
begin
  p_new.slot := p_last.slot;
  p_new.queue_id := p_last.queue_id;
  p_new.taken_at := p_last.taken_at;
  p_new.took_ms := p_last.took_ms;
  if p_new = p_last and p_last.taken_at > p_now - interval '10 minutes' then
    return 0;
  end if;
  insert into millrace.pulse (slot, queue_id, taken_at, done_total, failed_total, wait_total, run_total, scheduled, retrying, dead_count,
                              took_ms, aside, fresh_total, retried_total, dead_total, rescued_total, cancelled_total, available, running,
                              wait_spread, run_spread)
  values (millrace.pulse_slot(p_now), p_queue_id, p_now, p_new.done_total, p_new.failed_total, p_new.wait_total, p_new.run_total,
          p_new.scheduled, p_new.retrying, p_new.dead_count, p_took, p_new.aside, p_new.fresh_total, p_new.retried_total, p_new.dead_total,
          p_new.rescued_total, p_new.cancelled_total, p_new.available, p_new.running, p_new.wait_spread, p_new.run_spread);
  return 1;
end $$;
