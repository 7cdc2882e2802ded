-- SPDX-License-Identifier: PostgreSQL
-- What autovacuum does sooner or later: without statistics the claim's plan may be a bad one.
analyze textbook.job;
