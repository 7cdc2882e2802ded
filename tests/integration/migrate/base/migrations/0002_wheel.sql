-- SPDX-License-Identifier: PostgreSQL
create table millrace.wheel (
    wheel_id bigint not null,
    constraint wheel_pkey primary key (wheel_id)
);
comment on table millrace.wheel is 'second migration';

create table millrace.after_call (
    called_at timestamptz not null
);
comment on table millrace.after_call is 'a row for each call of after_migrate()';
