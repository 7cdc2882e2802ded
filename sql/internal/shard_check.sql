-- SPDX-License-Identifier: PostgreSQL
-- Refuses a number of a shard that is none, and numbers that do not have it or have one twice.
create or replace function millrace.shard_check(p_number int, p_numbers int[])
returns void
language plpgsql
as $$
begin
  if (p_number between 0 and 31) is not true then
    perform millrace.refuse(format('the number of a shard is from 0 to 31, not %s', coalesce(p_number::text, 'null')), 'Larger ones would not leave ids exact in a double.');
  end if;
  if (p_number = any (p_numbers)
      and (select bool_and(m between 0 and 31) and count(*) = count(distinct m) from unnest(p_numbers) m)) is not true then
    perform millrace.refuse(format('numbers must be the numbers of the set, %s among them', p_number), 'Pass each number once, such as {0,1,2}.');
  end if;
end $$;
