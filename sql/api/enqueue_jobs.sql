-- SPDX-License-Identifier: PostgreSQL
-- Enqueues an array of objects, each with any options of enqueue by name; state and blob as base64 text, null means the
-- default. All or none; an empty array is fine. Returns the ids in the order of the array.
-- source: where they come from, for those who look (sql).
-- A depth_limit is looked at for each queue of the call, as in enqueue_many.
-- Errors: 22023 bad argument (the message names the job), MR002 a queue is full, MR004 restored schema.
create or replace function millrace.enqueue_jobs(
  jobs jsonb,
  source text = null)
returns setof bigint
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
  return query
    select *
      from millrace.enqueue_jobs_at(clock_timestamp(), jobs, null, millrace.source_of(source));
end $$;
comment on function millrace.enqueue_jobs(jsonb, text) is
  'enqueues many jobs with options of their own';
