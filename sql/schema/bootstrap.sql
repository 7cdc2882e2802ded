-- SPDX-License-Identifier: PostgreSQL
--
-- The schema and the two tables that say what is installed in it. Runs again whenever a
-- role was missing, so everything here tolerates being there.
do $bootstrap$
begin
    if not exists (
        select
        from pg_catalog.pg_namespace
        where pg_namespace.nspname = 'millrace'
    ) then
        create schema millrace;
        comment on schema millrace is 'Millrace: jobs on PostgreSQL';
    end if;
end
$bootstrap$;

create table if not exists millrace.schema_migration (
    migration_number integer not null,
    migration_name text not null,
    checksum text not null,
    applied_at timestamptz not null,
    applied_by text not null,
    program_version text not null,
    constraint schema_migration_pkey primary key (migration_number),
    constraint schema_migration_number_positive check (migration_number > 0)
);
comment on table millrace.schema_migration is 'migrations applied to this schema, one row each';
comment on column millrace.schema_migration.checksum is 'SHA-256 of the file that was applied, in hex';
comment on column millrace.schema_migration.program_version is 'version of the millrace program that carried the file';

create table if not exists millrace.schema_functions (
    only_row boolean not null default true,
    checksum text not null,
    applied_at timestamptz not null,
    applied_by text not null,
    program_version text not null,
    constraint schema_functions_pkey primary key (only_row),
    constraint schema_functions_one_row check (only_row)
);
comment on table millrace.schema_functions is 'the functions, views and grants installed last; empty while they have to be installed again';
comment on column millrace.schema_functions.checksum is 'SHA-256 over the checksums of all their files, in hex';
comment on column millrace.schema_functions.program_version is 'version of the millrace program that carried the files';

-- roles that were missing have no grants yet
delete from millrace.schema_functions;
