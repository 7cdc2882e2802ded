-- SPDX-License-Identifier: PostgreSQL
-- Routes: jobs of some tenants, or of a share of them, go to another queue, where another transport or other settings are (docs/routes.md).
alter table millrace.queue
  add column route_queue   text,
  add column route_share   int not null default 0,
  add column route_tenants text
    constraint queue_route_tenants check (octet_length(route_tenants) <= 10000 and route_tenants !~ '^\s|\s$|\s,|,\s|^,|,$|,,|^$');
comment on column millrace.queue.route_queue is 'the name of the queue that takes the jobs of the tenants below; made with the first such job. Null: none';
comment on column millrace.queue.route_share is 'percent of the tenants whose jobs go there, by shadow_share()';
comment on column millrace.queue.route_tenants is 'names of tenants whose jobs go there, with commas between them';
insert into millrace.queue_setting (setting_name, column_name, value_type, default_text, least_value, most_value, summary)
values
  ('route',         'route_queue',   'text', null, null, null, 'queue that takes the jobs of the tenants of route_share and route_tenants'),
  ('route_share',   'route_share',   'integer', '0',  0,    100,  'percent of the tenants whose jobs go to route'),
  ('route_tenants', 'route_tenants', 'text', null, null, null, 'tenants whose jobs go to route, as a,b,c; at most 10000 bytes');

-- Its arguments are others now.
drop function if exists millrace.enqueue_many_at(timestamptz, text, jsonb[], text, int, timestamptz, bytea[], bytea[], text);
drop function if exists millrace.check_overflow(text, jsonb);
