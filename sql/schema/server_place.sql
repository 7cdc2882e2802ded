-- SPDX-License-Identifier: PostgreSQL
--
-- What `millrace doctor` compares with its own side: where the server keeps its data (null for
-- a user who may not know), its clock in microseconds since 1970, and the process that answers.
select
    (
        select pg_settings.setting
        from pg_catalog.pg_settings
        where pg_settings.name = 'data_directory'
    ),
    (extract(epoch from pg_catalog.clock_timestamp()) * 1000000)::bigint,
    pg_catalog.pg_backend_pid();
