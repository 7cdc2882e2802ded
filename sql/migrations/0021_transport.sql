-- SPDX-License-Identifier: PostgreSQL
-- How the jobs of a queue reach their workers: straight from here, or by way of Redis, where a relay puts them (docs/delivery.md).
alter table millrace.queue
  add column transport text not null default 'direct'
  constraint queue_transport check (transport in ('direct', 'redis'));
comment on column millrace.queue.transport is 'direct: workers claim; redis: a relay claims and puts the jobs into a stream. Whoever claims by SQL may, in both';
insert into millrace.queue_setting (setting_name, column_name, value_type, default_text, summary)
values
  ('transport', 'transport', 'text', 'direct', 'how jobs reach their workers: direct, or redis by way of a relay');
