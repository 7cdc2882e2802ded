-- SPDX-License-Identifier: PostgreSQL
create table millrace.sluice (
    sluice_id bigint not null
);
alter table millrace.wheel add column no_such_type grün_type;
