-- SPDX-License-Identifier: PostgreSQL
-- What rate_room tells, for some tenants of a queue at once: a claim may meet hundreds.
create or replace function millrace.tenants_room(p_now timestamptz, p_queue_id int, p_tenants text[], p_rate text)
returns table (tenant text, at timestamptz, room bigint, total bigint, period interval, again timestamptz)
language plpgsql
as $$
declare
  v_rate  record := millrace.rate_parse(p_rate);
  v_found record;
begin
  for i in 1..2 loop
    select array_agg(t.tenant) as tenants, array_agg(greatest(p_now, n.started_at)) as ats,
           array_agg(coalesce(v_rate.most - n.started_total + f.started_total - f.started_n, v_rate.most)) as rooms,
           array_agg(coalesce(n.started_total, 0)) as totals, array_agg(f.started_at + v_rate.period) as agains,
           array_agg('t' || t.tenant) filter (where n.started_at > p_now + v_rate.period) as ahead
      into v_found
      from unnest(p_tenants) t(tenant)
      left join lateral (select s.started_at, s.started_total
                           from millrace.started s
                          where s.queue_id = p_queue_id
                            and s.share = 't' || t.tenant
                          order by s.started_at desc, s.started_total desc
                          limit 1) n on true
      left join lateral (select s.started_at, s.started_total, s.started_n
                           from millrace.started s
                          where s.queue_id = p_queue_id
                            and s.share = 't' || t.tenant
                            and s.started_at > greatest(p_now, n.started_at) - v_rate.period
                          order by s.started_at, s.started_total
                          limit 1) f on n.started_at is not null;
    exit when v_found.ahead is null;
    delete from millrace.started s
     where s.queue_id = p_queue_id
       and s.share = any (v_found.ahead)
       and s.started_at > p_now + v_rate.period;
  end loop;
  return query
    select f.tenant, f.at, f.room, f.total, v_rate.period, f.again
      from unnest(v_found.tenants, v_found.ats, v_found.rooms, v_found.totals, v_found.agains) f(tenant, at, room, total, again);
end $$;
