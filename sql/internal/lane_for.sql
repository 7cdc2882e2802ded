-- SPDX-License-Identifier: PostgreSQL
-- The lane of a position: the part of p_lane's (queue, priority) that the position, or in an ordered queue the ordering key, falls to.
create or replace function millrace.lane_for(p_lane int, p_pos bigint, p_key text)
returns int
language plpgsql
as $$
begin
  return (p_lane & ~31) + (select millrace.part_of(case when q.ordered then p_key end, p_pos, q.part_count)
                             from millrace.queue q
                            where q.queue_id = p_lane >> 12);
end $$;
