-- SPDX-License-Identifier: PostgreSQL
-- Payload parts above a size are objects of the blob store from the start: clients write them, and then a row that names them. See docs/blobs.md.
alter table millrace.queue add column offload_above bigint;
comment on column millrace.queue.offload_above is 'clients write state and blob of more bytes than this to the blob store; null: none';
insert into millrace.queue_setting (setting_name, column_name, value_type, default_text, least_value, most_value, summary, zero_hint)
values
  ('offload', 'offload_above', 'bigint', null, 512, 67108864, 'clients write state and blob of more bytes than this to the blob store',
   'An object of less than 512 bytes costs more than it saves; null turns it off.');

-- The objects that clients wrote are looked at when the segment is gone in which their job came, all of a segment together.
alter table millrace.blob_object add column seg int;
comment on column millrace.blob_object.seg is 'the segment in which a client named it; null: looked at by look_at alone';
create index blob_object_seg on millrace.blob_object (seg) where seg is not null;

-- Has one argument more.
drop function if exists millrace.job_fail(timestamptz, millrace.job, text, text, interval, boolean, bytea);
