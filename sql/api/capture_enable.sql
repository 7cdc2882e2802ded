-- SPDX-License-Identifier: PostgreSQL
-- Lets a capture enqueue again, from now on.
-- Runs with the rights of its caller, who must own the table. Errors: MR003 no such capture, 42501 not the owner, MR004 restored schema.
create or replace function millrace.capture_enable(
  source regclass,
  queue text)
returns void
language plpgsql
volatile
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
  perform millrace.capture_run(millrace.capture_change(source, queue, 'enable'));
end $$;
comment on function millrace.capture_enable(regclass, text) is
  'lets a capture enqueue again';
