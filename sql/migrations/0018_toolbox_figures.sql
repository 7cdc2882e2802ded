-- SPDX-License-Identifier: PostgreSQL
-- A look at the cache says how much of it to look at (see cache_sweep.sql).
drop function if exists millrace.cache_sample(timestamptz);

-- Looking at a lane no longer counts it on: one snapshot has all figures (see lane_figures.sql).
drop function if exists millrace.lane_figures(timestamptz, int, interval);
