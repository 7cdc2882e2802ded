-- SPDX-License-Identifier: PostgreSQL
-- An array in parts of p_n elements. An element is found by walking over those before it: who wants few at a time out of many cuts twice.
create or replace function millrace.array_parts(p_all jsonb[], p_n int)
returns table (slice jsonb[])
language sql
immutable
as $$
  select p_all[f : f + p_n - 1]
    from generate_series(1, cardinality(p_all), p_n) f
  offset 0
$$;
