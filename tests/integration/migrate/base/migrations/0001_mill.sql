-- SPDX-License-Identifier: PostgreSQL
create table millrace.mill (
    mill_id bigint generated always as identity,
    mill_text text not null,
    constraint mill_pkey primary key (mill_id)
);
comment on table millrace.mill is 'a semicolon; a quote '' and a colon :name, all of them text';

do $body$
begin
    insert into millrace.mill (mill_text) values ('ground; grün');
end
$body$;
