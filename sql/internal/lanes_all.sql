-- SPDX-License-Identifier: PostgreSQL
-- Every lane there is.
create or replace function millrace.lanes_all()
returns setof int
language sql
as $$
  select b.base + p
    from (select distinct l.lane as base
            from millrace.lane l) b
    join millrace.queue q on q.queue_id = b.base >> 12
   cross join generate_series(0, q.parts_seen - 1) p
   order by 1
$$;
