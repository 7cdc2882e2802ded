-- SPDX-License-Identifier: PostgreSQL
-- Payload parts that are to be moved to the blob store: of jobs that are delayed for longer than their queue's offload_delay, and of dead letters where it has offload_dead;
-- those with a larger number than `after`. Write each body as an object of the name given, then call offload_done. Nothing is locked meanwhile. Errors: 22023.
create or replace function millrace.offload_take(after bigint = 0,
  max_jobs int = 100,
  max_bytes bigint = 16777216)
returns table (no bigint, place text, id bigint, part text, object_name text, body bytea)
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
  perform millrace.at_home();
  perform millrace.check_number('max_jobs', max_jobs, 1, 10000);
  perform millrace.check_number('max_bytes', max_bytes, 1, 1000000000);
  return query select * from millrace.offload_take_at(clock_timestamp(), coalesce(after, 0), max_jobs, max_bytes);
end $$;
comment on function millrace.offload_take(bigint, int, bigint) is
  'payload parts that are to be moved to the blob store';
