-- SPDX-License-Identifier: PostgreSQL
--
-- What a migration has to know before it may touch anything: one row. Reads catalogues
-- only, so that any user may ask, and names no object that may be missing.
select
    current_database() as database_name,
    quote_ident(current_database()) as database_ident,
    quote_ident(current_user) as user_ident,
    pg_is_in_recovery() as in_recovery,
    current_setting('transaction_read_only')::boolean as read_only,
    schema_owner.rolname as schema_owner,
    coalesce(pg_has_role(pg_namespace.nspowner, 'usage'), false) as owns_schema,
    exists (
        select
        from pg_catalog.pg_class
        where pg_class.relnamespace = pg_namespace.oid
        and pg_class.relname = 'schema_migration'
        and pg_class.relkind = 'r'
    ) and exists (
        select
        from pg_catalog.pg_class
        where pg_class.relnamespace = pg_namespace.oid
        and pg_class.relname = 'schema_functions'
        and pg_class.relkind = 'r'
    ) as has_bookkeeping,
    exists (
        select
        from pg_catalog.pg_class
        where pg_class.relnamespace = pg_namespace.oid
        union all
        select
        from pg_catalog.pg_proc
        where pg_proc.pronamespace = pg_namespace.oid
        union all
        select
        from pg_catalog.pg_type
        where pg_type.typnamespace = pg_namespace.oid
    ) as has_objects
from (values (true)) as one_row (always)
left join pg_catalog.pg_namespace on pg_namespace.nspname = 'millrace'
left join pg_catalog.pg_roles as schema_owner on schema_owner.oid = pg_namespace.nspowner;
