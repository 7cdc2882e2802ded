-- SPDX-License-Identifier: PostgreSQL
-- The outcome of a claim with other letters at some ordinals: p_marks has one letter for each of them.
create or replace function millrace.outcome_with(p_outcome text, p_ordinals int[], p_marks text)
returns text
language plpgsql
immutable
as $$
begin
  for i in 1 .. cardinality(p_ordinals) loop
    p_outcome := overlay(p_outcome placing substr(p_marks, i, 1) from p_ordinals[i] for 1);
  end loop;
  return p_outcome;
end $$;
