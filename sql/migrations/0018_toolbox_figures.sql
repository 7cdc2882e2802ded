-- SPDX-License-Identifier: PostgreSQL
-- A look at the cache says how much of it to look at (see cache_sweep.sql).
drop function if exists millrace.cache_sample(timestamptz);
