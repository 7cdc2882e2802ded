-- SPDX-License-Identifier: PostgreSQL
-- Called by "millrace migrate" at the end: makes a restored schema at home in this cluster. Returns the number of jobs appended again,
-- null when there was nothing to do.
create or replace function millrace.after_migrate()
returns bigint
language plpgsql
as $$
begin
  if exists (select
               from millrace.home h
               join pg_control_system() c on c.system_identifier = h.system_id) then
    return null;
  end if;
  return millrace.rehome(clock_timestamp());
end $$;
