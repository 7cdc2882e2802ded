-- SPDX-License-Identifier: PostgreSQL
-- Compression of payload parts, by clients: see docs/compression.md. The tables hold what they are given.
alter table millrace.queue add column compress_above bigint;
comment on column millrace.queue.compress_above is 'clients compress payload parts of more bytes than this; null: none';
insert into millrace.queue_setting (setting_name, column_name, value_type, default_text, least_value, most_value, summary, zero_hint)
values
  ('compress', 'compress_above', 'bigint', null, 128, 67108864, 'clients compress args, state and blob of more bytes than this',
   'Parts below 128 bytes do not become smaller; null turns compression off.');
