-- SPDX-License-Identifier: PostgreSQL
-- Payload parts of jobs that are due within `ahead` and away in the blob store. Read each object, then call offload_restore. Errors: 22023.
create or replace function millrace.offload_due(ahead interval = '5 seconds',
  max_jobs int = 100,
  max_bytes bigint = 16777216)
returns table (id bigint, part text, object_name text, size bigint, sha256 text)
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
  return query select * from millrace.offload_due_at(clock_timestamp(), coalesce(ahead, '0'), max_jobs, max_bytes);
end $$;
comment on function millrace.offload_due(interval, int, bigint) is
  'payload parts that are to be brought back from the blob store';
