-- SPDX-License-Identifier: PostgreSQL
-- Dead letters by queue, kind and error, over the newest 20,000 of a queue or of all: quoted parts, uuids and numbers of errors are replaced by #. complete:
-- there are no more. Errors: MR003 unknown queue, MR004 restored schema.
create or replace function millrace.dead_groups(queue text = null)
returns jsonb
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
begin
  return millrace.dead_groups_of(queue);
end $$;
comment on function millrace.dead_groups(text) is
  'dead letters by what went wrong';
