-- SPDX-License-Identifier: PostgreSQL
-- How many sessions of a name there are, beside this one.
--   $1  the name
select count(*)
  from pg_catalog.pg_stat_activity a
 where a.application_name = $1
   and a.pid <> pg_backend_pid();
