-- SPDX-License-Identifier: PostgreSQL
-- plans.sql once more, with a row of the log for each job instead of packs.
\ir lib/alone.psql
\ir plans.sql
