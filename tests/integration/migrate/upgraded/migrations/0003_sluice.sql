-- SPDX-License-Identifier: PostgreSQL
alter table millrace.wheel add column wheel_speed integer not null default 0;
