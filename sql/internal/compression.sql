-- SPDX-License-Identifier: PostgreSQL
-- Columns that hold what jobs carry, of every table and partition, with how values of theirs are compressed: l is lz4, p is pglz.
create or replace function millrace.payload_columns()
returns table (table_name regclass, column_name name, method text)
language sql
stable
as $$
  select a.attrelid::regclass, a.attname,
         coalesce(nullif(to_jsonb(a) ->> 'attcompression', ''), left(current_setting('default_toast_compression', true), 1), 'p')
    from pg_attribute a
    join pg_class c on c.oid = a.attrelid
   where c.relnamespace = 'millrace'::regnamespace
     and c.relkind in ('r', 'p')
     and a.attname ~ '^payload_|^trail$'
     and not a.attisdropped
$$;

-- For the owner of a schema that was made on a server without lz4, and moved to one with it: new rows get it, old ones stay readable.
-- Waits for no reader longer than lock_timeout allows: each table is locked for a moment. How many columns were changed.
create or replace function millrace.use_lz4()
returns int
language plpgsql
as $$
declare
  v_column record;
  v_n      int := 0;
begin
  for v_column in select p.table_name, p.column_name from millrace.payload_columns() p where p.method <> 'l' order by 1, 2 loop
    execute format('alter table %s alter column %I set compression lz4', v_column.table_name, v_column.column_name);
    v_n := v_n + 1;
  end loop;
  return v_n;
end $$;
