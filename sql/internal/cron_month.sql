-- SPDX-License-Identifier: PostgreSQL
-- The days of a month, given by its first day, on which an expression fires, rising. Where both fields of days name some, either
-- is enough, as in every cron.
create or replace function millrace.cron_month(p_spec millrace.cron_spec, p_first date)
returns int[]
language sql
immutable
as $$
  select array(
    select d.day
      from (select date_part('day', p_first + interval '1 month' - interval '1 day')::int as last, date_part('dow', p_first)::int as start) m
     cross join lateral (select g as day, (m.start + g - 1) % 7 as week_day from generate_series(1, m.last) g) d
     where ((p_spec).days is null and (p_spec).week_days is null)
        or d.day = any ((p_spec).days)
        or 200 + m.last - d.day = any ((p_spec).days)
        or exists (select
                     from unnest((p_spec).days) s
                    cross join lateral (select case when s = 300 then m.last else s - 100 end as near) n
                    where (s = 300 or s between 101 and 131)
                      and n.near <= m.last
                      and d.day = n.near + case (m.start + n.near - 1) % 7
                                             when 6 then case when n.near = 1 then 2 else -1 end
                                             when 0 then case when n.near = m.last then -2 else 1 end
                                             else 0
                                           end)
        or d.week_day = any ((p_spec).week_days)
        or ((d.day - 1) / 7 + 1) * 10 + d.week_day = any ((p_spec).week_days)
        or (d.day > m.last - 7 and 60 + d.week_day = any ((p_spec).week_days))
     order by d.day)
$$;
