-- SPDX-License-Identifier: PostgreSQL
-- One batch: status (open, running, completed, failed), counts of members and of how they ended, about a second behind, times, ids of the callbacks that
-- were enqueued. Forgotten seven days after its end. Errors: MR003 unknown batch, MR004 restored schema.
create or replace function millrace.batch(id bigint)
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
  return millrace.batch_story(id);
end $$;
comment on function millrace.batch(bigint) is
  'how a batch stands';
