-- SPDX-License-Identifier: PostgreSQL
-- Sessions remember the queue that they claimed from last (queue_remember), and know by this number whether a queue or a lane was changed since.

create sequence millrace.queue_version as bigint minvalue 0;
comment on sequence millrace.queue_version is 'the xid of whoever changed queues or lanes last';
select setval('millrace.queue_version', pg_current_xact_id()::text::bigint);

create function millrace.queue_changes()
returns trigger
language plpgsql
as $$
begin
  perform setval('millrace.queue_version', pg_current_xact_id()::text::bigint);
  return coalesce(new, old);
end $$;

create trigger queue_changes before insert or update or delete on millrace.queue
  for each row execute function millrace.queue_changes();
create trigger queue_changes before insert or update or delete on millrace.lane
  for each row execute function millrace.queue_changes();
