-- SPDX-License-Identifier: PostgreSQL
--
-- Lets the engine put a schema in order that was migrated, or restored from a dump.
do $after$
begin
    if exists (
        select
        from pg_catalog.pg_proc
        join pg_catalog.pg_namespace on pg_namespace.oid = pg_proc.pronamespace
        where pg_namespace.nspname = 'millrace'
        and pg_proc.proname = 'after_migrate'
        and pg_proc.pronargs = 0
    ) then
        perform millrace.after_migrate();
    end if;
end
$after$;
