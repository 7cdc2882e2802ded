-- SPDX-License-Identifier: PostgreSQL
-- looking_pages.sql once more, with a row of the log for each job instead of packs.
\ir lib/alone.psql
\ir looking_pages.sql
