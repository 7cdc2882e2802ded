-- SPDX-License-Identifier: PostgreSQL
--
-- The migrations that are applied.
select
    schema_migration.migration_number,
    schema_migration.migration_name,
    schema_migration.checksum,
    schema_migration.program_version
from millrace.schema_migration
order by schema_migration.migration_number;
