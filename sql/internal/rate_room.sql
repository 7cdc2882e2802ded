-- SPDX-License-Identifier: PostgreSQL
-- How many jobs a rate allows now, for claim_limited: in no period of the rate's length are more started. The caller holds the queue's lock.
-- p_share: empty for the rate of the whole queue, t and the tenant for a tenant's.
--   at: the time of the next start. Never before the last one, so that rows come in the order of time.
--   total: what was started so far; again: when the oldest start of the period leaves it.
-- A start that lies more than a period ahead was made before the clock was put back; it is forgotten, or the queue would stand until then.
create or replace function millrace.rate_room(p_now timestamptz, p_queue_id int, p_share text, p_rate text, out at timestamptz, out room bigint, out total bigint,
                                              out period interval, out again timestamptz)
language plpgsql
as $$
declare
  v_most bigint;
  v_last timestamptz;
begin
  select r.most, r.period
    into v_most, period
    from millrace.rate_parse(p_rate) r;
  for i in 1..2 loop
    select n.started_at, n.started_total, f.started_at + period, v_most - n.started_total + f.started_total - f.started_n
      into v_last, total, again, room
      from (select s.started_at, s.started_total
              from millrace.started s
             where s.queue_id = p_queue_id
               and s.share = p_share
             order by s.started_at desc, s.started_total desc
             limit 1) n
           -- the first of the period: what was started before it was started before the period
      left join lateral (select s.started_at, s.started_total, s.started_n
                           from millrace.started s
                          where s.queue_id = p_queue_id
                            and s.share = p_share
                            and s.started_at > greatest(p_now, n.started_at) - period
                          order by s.started_at, s.started_total
                          limit 1) f on true;
    exit when (v_last > p_now + period) is not true;
    delete from millrace.started s
     where s.queue_id = p_queue_id
       and s.share = p_share
       and s.started_at > p_now + period;
  end loop;
  at := greatest(p_now, v_last);
  total := coalesce(total, 0);
  room := coalesce(room, v_most);
end $$;

-- The leaf of a start.
create or replace function millrace.started_slot(p_at timestamptz, p_period interval)
returns int
language sql
immutable
as $$
  select case
           when p_period <= interval '1 hour' then date_part('epoch', p_at)::bigint / 3600 % 4
           else 4 + date_part('epoch', p_at)::bigint / 43200 % 4
         end::int
$$;
