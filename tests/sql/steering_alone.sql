-- SPDX-License-Identifier: PostgreSQL
-- steering.sql once more, with a row of the log for each job instead of packs.
\ir lib/alone.psql
\ir steering.sql
