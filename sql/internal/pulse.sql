-- SPDX-License-Identifier: PostgreSQL
-- Writes down the figures of each queue, every ten seconds while they change, so that stats() can tell what the last hour brought.
-- Delayed jobs and dead letters are counted here, never more than a twentieth of the time.
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
  v_count  jsonb;
  v_counts boolean;
  v_took   real;
  v_total  record;
  v_n      bigint := 0;
begin
  if not millrace.due('millrace.pulse_clock', p_now, 10000) then
    return 0;
  end if;
  perform setval('millrace.pulse_clock', millrace.epoch_ms(p_now));
  select max(p.took_ms)
    into v_took
    from millrace.pulse p
   where p.taken_at > p_now - interval '1 hour'
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
  for v_queue in select q.* from millrace.queue q loop
    select p.*
      into v_last
      from millrace.pulse p
     where p.queue_id = v_queue.queue_id
     order by p.taken_at desc
     limit 1;
    v_total := millrace.queue_totals(v_queue);
    v_new := v_last;
    v_new.done_total := v_total.done_total;
    v_new.failed_total := v_total.failed_total;
    v_new.wait_total := v_total.wait_total;
    v_new.run_total := v_total.run_total;
    if v_counts or v_last.queue_id is null then
      v_new.scheduled := coalesce((v_count ->> (v_queue.queue_id || 'scheduled'))::bigint, 0);
      v_new.retrying := coalesce((v_count ->> (v_queue.queue_id || 'retrying'))::bigint, 0);
      v_new.dead_count := coalesce((v_count ->> (v_queue.queue_id || 'dead'))::bigint, 0);
      v_new.aside := coalesce((v_count ->> (v_queue.queue_id || 'aside'))::bigint, 0);
    end if;
    continue when v_new = v_last and v_last.taken_at > p_now - interval '10 minutes';
    insert into millrace.pulse (slot, queue_id, taken_at, done_total, failed_total, wait_total, run_total, scheduled, retrying, dead_count,
                                took_ms, aside)
    values ((date_part('epoch', p_now)::bigint / 3600) % 4, v_queue.queue_id, p_now, v_new.done_total, v_new.failed_total,
            v_new.wait_total, v_new.run_total, v_new.scheduled, v_new.retrying, v_new.dead_count, v_took, v_new.aside);
    v_n := v_n + 1;
  end loop;
  return v_n;
end $$;
