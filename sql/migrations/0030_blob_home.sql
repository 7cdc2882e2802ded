-- SPDX-License-Identifier: PostgreSQL
-- Names of objects are those of one database. A copy within the same cluster (a template, a dump that is restored beside the original) is at home as it is and draws no
-- new name: it would take the other's objects for orphans of its own. So the name belongs to the database that drew it; millrace.blob_home() has the name of any other.
alter table millrace.home add column blob_database oid;
comment on column millrace.home.blob_database is 'the database that blob_home is of; a copy of it in the same cluster has another name';
update millrace.home
   set blob_database = (select d.oid
                          from pg_database d
                         where d.datname = current_database());
