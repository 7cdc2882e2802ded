-- SPDX-License-Identifier: PostgreSQL
-- A length of time in one unit: 42 s, 7 min, 3 h, 12 d.
create or replace function millrace.age_text(p_age interval)
returns text
language sql
immutable
as $$
  select case
           when s.s < 120 then greatest(s.s, 0)::bigint || ' s'
           when s.s < 7200 then floor(s.s / 60)::bigint || ' min'
           when s.s < 172800 then floor(s.s / 3600)::bigint || ' h'
           else floor(s.s / 86400)::bigint || ' d'
         end
    from (select floor(extract(epoch from p_age)) as s) s
$$;

-- The first few of a list of names for a line of text, and how many there are more.
create or replace function millrace.some_of(p_names text[])
returns text
language sql
immutable
as $$
  select array_to_string(p_names[1:3], ', ') || case when cardinality(p_names) > 3 then format(' and %s more', cardinality(p_names) - 3) else '' end
$$;
