-- SPDX-License-Identifier: PostgreSQL
-- upkeep.sql once more, with a row of the log for each job instead of packs.
-- server: own
\ir lib/alone.psql
\ir upkeep.sql
