-- SPDX-License-Identifier: PostgreSQL
-- Runs what capture_plan or capture_change has written, with the rights of whoever called capture: they own the table, the schema's owner may not.
create or replace function millrace.capture_run(p_statements text[])
returns void
language plpgsql
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_statement text;
begin
  foreach v_statement in array p_statements loop
    execute v_statement;
  end loop;
end $$;
