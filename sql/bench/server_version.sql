-- SPDX-License-Identifier: PostgreSQL
-- The server's version without what a distribution adds to it.
select split_part(current_setting('server_version'), ' ', 1);
