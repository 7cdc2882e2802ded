-- SPDX-License-Identifier: PostgreSQL
--
-- The application's own table: a row for each job that was charged.
create table if not exists ledger (job_id bigint primary key, amount int not null);
