-- SPDX-License-Identifier: PostgreSQL
-- Removes the capture of a table into a queue: its triggers and what was made with them. Jobs that are enqueued stay.
-- Runs with the rights of its caller, who must own the table. Errors: MR003 no such capture, 42501 not the owner, MR004 restored schema.
create or replace function millrace.uncapture(
  source regclass,
  queue text)
returns void
language plpgsql
volatile
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
  perform millrace.capture_run(millrace.capture_change(source, queue, 'remove'));
end $$;
comment on function millrace.uncapture(regclass, text) is
  'removes a capture';
