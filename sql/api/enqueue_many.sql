-- SPDX-License-Identifier: PostgreSQL
-- Enqueues one job for each element of args, in one statement, in order; an empty array is fine. Returns their ids.
-- state and blob, where given, have an element for each job, null for none.
-- In a queue with a depth_limit the call is let in whole where the queue has room for one job, else goes to the overflow whole or is refused.
-- Errors: 22023 bad argument (also a null element of args, and more jobs than the depth_limit), MR002 queue full, MR004 restored schema.
-- Nothing is written then.
create or replace function millrace.enqueue_many(
  kind text,
  args jsonb[],
  queue text = 'default',
  priority int = 50,
  run_at timestamptz = null,
  state bytea[] = null,
  blob bytea[] = null)
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
      from millrace.enqueue_many_at(clock_timestamp(), kind, args, queue, priority, run_at, state, blob);
end $$;
comment on function millrace.enqueue_many(text, jsonb[], text, int, timestamptz, bytea[], bytea[]) is
  'enqueues many jobs of one kind';
