-- SPDX-License-Identifier: PostgreSQL
-- The database of a server that the program has made for itself. One statement a line: the server reads it in single-user mode.
create database millrace;
