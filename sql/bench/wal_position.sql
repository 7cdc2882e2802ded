-- SPDX-License-Identifier: PostgreSQL
-- Bytes of WAL that the server has written so far.
select pg_current_wal_insert_lsn() - '0/0'::pg_lsn;
