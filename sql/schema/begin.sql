-- SPDX-License-Identifier: PostgreSQL
--
-- Opens one step of a migration: a transaction that owns the migration lock.
--   $1  how long to wait for another migration, in milliseconds
--   $2  how long a statement of this step waits for a lock, in milliseconds
-- The lock belongs to the transaction, not to the session, so that a pooler in
-- transaction mode is no trouble; each step therefore looks again at what is left to do.
-- Its number is arbitrary and may never change.
begin isolation level read committed;
set local search_path = pg_catalog, pg_temp;
set local client_min_messages = warning;
set local statement_timeout = 0;
set local lock_timeout = $1;
do $lock$
begin
    perform pg_advisory_xact_lock(7811887347127673);
end
$lock$;
set local lock_timeout = $2;
