-- SPDX-License-Identifier: PostgreSQL
-- stats with the time as an argument.
create or replace function millrace.stats_at(p_now timestamptz, p_queue text)
returns setof millrace.queue_stats
language plpgsql
as $$
begin
  perform millrace.at_home();
  return query
    select f.queue, f.available, f.running, f.scheduled, f.retrying, f.dead, f.completed_1h, f.failed_1h, f.oldest_seconds,
           f.avg_wait_seconds_1h, f.avg_run_seconds_1h
      from millrace.queue_figures(p_now, p_queue, 10000, '1 second') f;
end $$;

-- All figures of a queue, or of all, in order of their names; of a fair one with those of its tenants. Delayed jobs and dead
-- letters are counted up to p_most of each; above that they are as of the last count by maintain. p_age: how old the ledger may be. One statement for all queues: to begin one on tables with dozens of leaves costs more
-- than what it reads. And one snapshot for waiting, running, delayed and dead: a job that goes from one to the other meanwhile (a claim, a failure,
-- a rescue, a promotion) is counted in one of them, never in none.
create or replace function millrace.queue_figures(p_now timestamptz, p_queue text, p_most int, p_age interval)
returns setof millrace.queue_figures
language plpgsql
as $$
begin
  perform millrace.lanes_count(p_now, millrace.lanes_family(q), p_age)
     from millrace.queue q
    where q.parent_id is null
      and (p_queue is null or q.queue_name = p_queue);
  return query
    select q.queue_name, l.depth + c.aside, l.jobs, c.scheduled, c.retrying, c.dead, e.completed, e.failed,
           -- a job that came after p_now was read is not from the future; without jobs there is no age
           case when coalesce(l.oldest_at, c.oldest_at) is not null then greatest(date_part('epoch', p_now - least(l.oldest_at, c.oldest_at)), 0) end,
           (l.wait_total - coalesce(h.wait_total, 0)) / 1e6::double precision / nullif(e.completed + e.failed, 0),
           (l.run_total - coalesce(h.run_total, 0)) / 1e6::double precision / nullif(e.completed + e.failed, 0),
           l.claims, l.fresh_total, l.done_total, l.failed_total, l.retried_total, l.dead_total, l.rescued_total, l.cancelled_total
      from millrace.queue q
     cross join lateral (select coalesce(sum(f.depth), 0)::bigint as depth, coalesce(sum(f.jobs), 0)::bigint as jobs,
                                coalesce(sum(f.claims), 0)::bigint as claims, min(f.oldest_at) as oldest_at,
                                coalesce(sum((f.tally).done_total), 0)::bigint as done_total,
                                coalesce(sum((f.tally).failed_total), 0)::bigint as failed_total,
                                coalesce(sum((f.tally).wait_total), 0)::bigint as wait_total, coalesce(sum((f.tally).run_total), 0)::bigint as run_total,
                                coalesce(sum((f.tally).fresh_total), 0)::bigint as fresh_total,
                                coalesce(sum((f.tally).retried_total), 0)::bigint as retried_total,
                                coalesce(sum((f.tally).dead_total), 0)::bigint as dead_total,
                                coalesce(sum((f.tally).rescued_total), 0)::bigint as rescued_total,
                                coalesce(sum((f.tally).cancelled_total), 0)::bigint as cancelled_total
                           from unnest(millrace.lanes_family(q)) n(lane)
                          cross join lateral millrace.lane_figures(p_now, n.lane) f) l
     cross join lateral (select coalesce(sum(d.scheduled), 0)::bigint as scheduled, coalesce(sum(d.retrying), 0)::bigint as retrying,
                                coalesce(sum(d.aside), 0)::bigint as aside, min(d.oldest_at) as oldest_at, bool_or(d.many) as many
                           from millrace.family(q.queue_id) f(id)
                          cross join lateral (select count(*) filter (where d.why in ('s', 'z', 'p', 'w')) as scheduled,
                                                     count(*) filter (where d.why in ('r', 'l')) as retrying,
                                                     count(*) filter (where d.why in ('o', 'k', 't')) as aside,
                                                     min(d.created_at) filter (where d.why in ('o', 'k', 't')) as oldest_at, count(*) > p_most as many
                                                from (select d.why, d.created_at
                                                        from millrace.delayed d
                                                       where d.lane >= f.id << 12
                                                         and d.lane < (f.id + 1) << 12
                                                       limit p_most + 1) d) d) d
     cross join lateral (select count(*) as n
                           from (select
                                   from millrace.dead d
                                  where d.queue_id = q.queue_id
                                  limit p_most + 1) d) b
      -- the pulse of a fair queue has its tenants in it
      left join lateral (select p.scheduled, p.retrying, p.aside, p.dead_count
                           from millrace.pulse p
                          where p.queue_id = q.queue_id
                            and (d.many or b.n > p_most)
                          order by p.taken_at desc
                          limit 1) p on true
      left join lateral (select p.done_total, p.failed_total, p.wait_total, p.run_total
                           from millrace.pulse p
                          where p.queue_id = q.queue_id
                            and p.taken_at <= p_now - interval '1 hour'
                          order by p.taken_at desc
                          limit 1) h on true
     cross join lateral (select case when d.many then coalesce(p.scheduled, d.scheduled) else d.scheduled end as scheduled,
                                case when d.many then coalesce(p.retrying, d.retrying) else d.retrying end as retrying,
                                case when d.many then coalesce(p.aside, d.aside) else d.aside end as aside,      -- waits for its turn only
                                case when b.n > p_most then greatest(p.dead_count, b.n) else b.n end as dead, d.oldest_at) c
     cross join lateral (select l.done_total - coalesce(h.done_total, 0) as completed, l.failed_total - coalesce(h.failed_total, 0) as failed) e
     where q.parent_id is null
       and (p_queue is null or q.queue_name = p_queue)
     order by q.queue_name;
end $$;
