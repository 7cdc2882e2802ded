-- SPDX-License-Identifier: PostgreSQL
--
-- Notes which functions, views and grants are installed, in their own transaction.
--   $1 checksum  $2 version of the program
insert into millrace.schema_functions (
    checksum,
    applied_at,
    applied_by,
    program_version
)
values ($1, now(), current_user, $2)
on conflict on constraint schema_functions_pkey
do update set
    checksum = excluded.checksum,
    applied_at = excluded.applied_at,
    applied_by = excluded.applied_by,
    program_version = excluded.program_version;
