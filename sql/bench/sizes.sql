-- SPDX-License-Identifier: PostgreSQL
-- Bytes of the tables of a schema, with their TOAST, and of their indexes.
--   $1  the schema
select coalesce(sum(pg_table_size(c.oid)), 0)::bigint,
       coalesce(sum(pg_indexes_size(c.oid)), 0)::bigint
  from pg_catalog.pg_class c
  join pg_catalog.pg_namespace n on n.oid = c.relnamespace
 where n.nspname = $1
   and c.relkind = 'r';
