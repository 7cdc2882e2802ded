-- SPDX-License-Identifier: PostgreSQL
-- The lanes of a queue in the order a claim probes them: by priority, and inside one from part p_first on.
create or replace function millrace.lanes_of(p_queue millrace.queue, p_first int)
returns int[]
language plpgsql
as $$
begin
  if p_queue.parts_seen = 1 then
    return array(select distinct l.lane
                   from millrace.lane l
                  where l.lane >= p_queue.queue_id << 12
                    and l.lane < (p_queue.queue_id + 1) << 12
                  order by l.lane);
  end if;
  return array(select b.base + (p_first + p) % p_queue.parts_seen
                 from (select distinct l.lane as base
                         from millrace.lane l
                        where l.lane >= p_queue.queue_id << 12
                          and l.lane < (p_queue.queue_id + 1) << 12) b
                cross join generate_series(0, p_queue.parts_seen - 1) p
                order by b.base, p);
end $$;
