-- SPDX-License-Identifier: PostgreSQL
-- The part of a job: by its position, or by its ordering key. A key has its part for good, whatever the number of parts of its queue, so that
-- jobs of one key never stand in two lanes of a priority; an ordered queue has all 32 (parts_seen). Callers pass no key for
-- queues that are not ordered; what stands there when one becomes so is brought to its part by the claim that meets it (turns_bring_home). A plain expression, to be planned as a part of the statement.
create or replace function millrace.part_of(p_key text, p_pos bigint, p_parts int)
returns int
language sql
immutable
as $$
  select case when p_key is null then ((p_pos >> 5) % p_parts)::int else hashtext(p_key) & 31 end
$$;
