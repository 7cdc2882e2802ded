-- SPDX-License-Identifier: PostgreSQL
--
-- For printed SQL only: refuses a database that the text was not printed for.
--   $1  number of the last migration that has to be there already; 0 for none
do $guard$
declare
    last_number integer;
begin
    select coalesce(max(schema_migration.migration_number), 0)
    into last_number
    from millrace.schema_migration;
    if last_number <> $1 then
        raise exception 'this SQL is for a database at Millrace migration %, but this one is at %', $1, last_number
            using hint = format('Print it with: millrace migrate --print --from %s', last_number);
    end if;
end
$guard$;
