-- SPDX-License-Identifier: PostgreSQL
-- Is the server still there?
select 1;
