-- SPDX-License-Identifier: PostgreSQL
-- Removes a scratch database, whoever is in it.
--   $1  its name
drop database if exists $1 with (force);
