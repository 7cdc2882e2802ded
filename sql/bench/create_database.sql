-- SPDX-License-Identifier: PostgreSQL
-- A scratch database.
--   $1  its name
--   $2  what it is a copy of
create database $1 template $2;
