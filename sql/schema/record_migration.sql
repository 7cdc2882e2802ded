-- SPDX-License-Identifier: PostgreSQL
--
-- Notes a migration as applied, in its own transaction.
--   $1 number  $2 name  $3 checksum  $4 version of the program
-- Functions have to be installed again after it, also when this program ends here.
insert into millrace.schema_migration (
    migration_number,
    migration_name,
    checksum,
    applied_at,
    applied_by,
    program_version
)
values ($1, $2, $3, now(), current_user, $4);
delete from millrace.schema_functions;
