-- SPDX-License-Identifier: PostgreSQL
create or replace function millrace.after_migrate()
returns void
language sql
set search_path = pg_catalog, pg_temp
as $body$
    insert into millrace.after_call (called_at) values (now());
$body$;
comment on function millrace.after_migrate() is 'counts its calls';
