-- SPDX-License-Identifier: PostgreSQL
-- A snapshot that keeps vacuum from removing anything, until the session ends.
begin isolation level repeatable read;
select pg_current_snapshot();
