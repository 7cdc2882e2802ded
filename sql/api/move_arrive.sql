-- SPDX-License-Identifier: PostgreSQL
-- Takes in what another database's move_take() returned, once for each origin and batch: a repeated call changes nothing and returns the same, with again true.
-- Jobs have new ids and source move, and all else that they had; their history says where they came from. One whose unique key a job of the queue holds is not made anew.
-- Returns {"ids", "merged", "again", "total"}. A queue that has reached its depth_limit refuses, whatever its overflow.
-- Errors: 22023 bad argument, a batch out of turn or jobs that the queue does not take, MR002 queue full, 25000 not read committed, MR004 restored schema.
create or replace function millrace.move_arrive(
  origin text,
  batch bigint,
  queue text,
  jobs jsonb[],
  args jsonb[],
  meta jsonb[],
  state bytea[],
  blob bytea[])
returns jsonb
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
set intervalstyle = 'iso_8601'
as $$
begin
  return millrace.move_arrive_at(clock_timestamp(), origin, batch, queue, jobs, args, meta, state, blob);
end $$;
comment on function millrace.move_arrive(text, bigint, text, jsonb[], jsonb[], jsonb[], bytea[], bytea[]) is
  'takes in a batch of jobs that another database gave away';
