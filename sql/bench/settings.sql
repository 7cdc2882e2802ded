-- SPDX-License-Identifier: PostgreSQL
-- What a reader has to know of the server to make sense of a figure: name and value.
select s.name,
       current_setting(s.name)
  from pg_catalog.pg_settings s
 where s.name in ('fsync', 'full_page_writes', 'shared_buffers', 'synchronous_commit', 'wal_compression', 'wal_level')
 order by s.name;
