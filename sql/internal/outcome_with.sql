-- SPDX-License-Identifier: PostgreSQL
-- The outcome of a claim with other letters at some ordinals: p_marks has one letter for each of them. To find a letter in a text PostgreSQL walks it: many at once
-- are put in by a statement, whose cost does not grow with the square.
create or replace function millrace.outcome_with(p_outcome text, p_ordinals int[], p_marks text)
returns text
language plpgsql
immutable
as $$
begin
  if cardinality(p_ordinals) > 16 then
    return (select string_agg(coalesce(m.letter, o.letter), '' order by o.ord)
              from unnest(string_to_array(p_outcome, null)) with ordinality o(letter, ord)
              left join unnest(p_ordinals, string_to_array(p_marks, null)) m(at, letter) on m.at = o.ord);
  end if;
  for i in 1 .. cardinality(p_ordinals) loop
    p_outcome := overlay(p_outcome placing substr(p_marks, i, 1) from p_ordinals[i] for 1);
  end loop;
  return p_outcome;
end $$;
