-- SPDX-License-Identifier: PostgreSQL
grant usage on schema millrace to millrace_reader;
grant select on millrace.schema_migration, millrace.schema_functions, millrace.wheels to millrace_reader;
