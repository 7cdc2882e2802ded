-- SPDX-License-Identifier: PostgreSQL
-- progress.sql once more, with a row of the log for each job instead of packs.
\ir lib/alone.psql
\ir progress.sql
