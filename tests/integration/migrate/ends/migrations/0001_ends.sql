-- SPDX-License-Identifier: PostgreSQL
create table millrace.left_behind (
    left_id bigint not null
);
commit;
