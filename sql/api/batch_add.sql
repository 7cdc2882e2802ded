-- SPDX-License-Identifier: PostgreSQL
-- Enqueues jobs as members of a batch: an array of objects, as enqueue_jobs takes it. Returns their ids in order. A job whose unique_key another job
-- holds becomes no member. batch_seal waits for the transaction's end.
-- Errors: 22023 bad argument or a sealed batch, MR003 unknown batch, MR004 restored schema.
create or replace function millrace.batch_add(
  batch bigint,
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
      from millrace.batch_add_at(clock_timestamp(), batch, jobs, millrace.source_of(source));
end $$;
comment on function millrace.batch_add(bigint, jsonb, text) is
  'enqueues jobs as members of a batch';
