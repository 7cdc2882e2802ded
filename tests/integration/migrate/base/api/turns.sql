-- SPDX-License-Identifier: PostgreSQL
create or replace function millrace.turns()
returns bigint
language sql
stable
set search_path = pg_catalog, pg_temp
as $body$
    select count(*) from millrace.wheel;
$body$;
comment on function millrace.turns() is 'rows in wheel';
