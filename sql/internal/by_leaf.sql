-- SPDX-License-Identifier: PostgreSQL
-- The body of a function that goes to one of sixteen, one for each leaf of the ring: p_call with the leaf's number for %s, chosen by
-- p_slot with four comparisons. Used when the schema is made.
-- Why statements name their leaf: one on the whole ring locks every leaf and sets up most of them, each time. For a claim or a completion of
-- one job that is more than the work itself. And while upkeep truncates a leaf, which takes long where the disk is busy (each index of the new
-- leaf is synced), it would wait. So whatever a worker or a producer does all the time goes to the leaf it is about, and to no other;
-- what is rare, or asks for any leaf, takes the ring.
create or replace function millrace.by_leaf(p_slot text, p_call text)
returns text
language plpgsql
immutable
as $$
declare
  v_calls text[] := array(select format(p_call, g) from generate_series(0, 15) g order by g);
  v_bit   int;
begin
  foreach v_bit in array array[1, 2, 4, 8] loop
    v_calls := array(select format('if %s & %s = 0 then %s else %s end if;', p_slot, v_bit, v_calls[2 * i - 1], v_calls[2 * i])
                       from generate_series(1, cardinality(v_calls) / 2) i
                      order by i);
  end loop;
  return v_calls[1];
end $$;
