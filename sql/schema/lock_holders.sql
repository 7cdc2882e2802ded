-- SPDX-License-Identifier: PostgreSQL
--
-- Who was in the way when a lock was not granted: sessions of this database, other than
-- this one, that hold the migration lock or a lock on a relation of the schema; the
-- oldest transaction first. The number is the one of begin.sql, in two halves.
select
    holder.pid,
    coalesce(pg_stat_activity.usename, '') as user_name,
    coalesce(pg_stat_activity.application_name, '') as application_name,
    coalesce(pg_stat_activity.state, '') as session_state
from (
    select distinct pg_locks.pid
    from pg_catalog.pg_locks
    left join pg_catalog.pg_class on pg_class.oid = pg_locks.relation
    left join pg_catalog.pg_namespace on pg_namespace.oid = pg_class.relnamespace
    where pg_locks.granted
    and pg_locks.pid <> pg_backend_pid()
    and pg_locks.database = (
        select pg_database.oid
        from pg_catalog.pg_database
        where pg_database.datname = current_database()
    )
    and (
        pg_namespace.nspname = 'millrace'
        or (
            pg_locks.locktype = 'advisory'
            and pg_locks.objsubid = 1
            and pg_locks.classid::bigint << 32 | pg_locks.objid::bigint = 7811887347127673
        )
    )
) as holder
left join pg_catalog.pg_stat_activity on pg_stat_activity.pid = holder.pid
order by pg_stat_activity.xact_start nulls last, holder.pid
limit 5;
