-- SPDX-License-Identifier: PostgreSQL
-- The bridges and how much they remember.
drop view if exists millrace.bridges;
create view millrace.bridges as
select b.bridge_name as name, b.stream_key as stream, b.group_key as stream_group,
       case when b.floor_place > 0 then div(b.floor_place, 18446744073709551616) || '-' || mod(b.floor_place, 18446744073709551616) end as floor,
       b.floor_set_at, s.spans, s.last_at as applied_at, b.made_at
  from millrace.bridge b
 cross join lateral (select count(*) as spans, max(s.made_at) as last_at
                       from millrace.bridge_span s
                      where s.span <@ numrange(b.bridge_id * 340282366920938463463374607431768211456::numeric,
                                               (b.bridge_id + 1) * 340282366920938463463374607431768211456::numeric, '[)')) s;
comment on view millrace.bridges is 'bridges from streams: what has been applied, and how many rows say so';
