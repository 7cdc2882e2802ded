-- SPDX-License-Identifier: PostgreSQL
-- The next batch of a move: jobs that wait, delayed and retried ones with their times, at last dead letters if with_dead. They are in their queue no more, but
-- kept until move_done(); until then the same batch is handed out, whoever asks. Commit, then give it to the other database's move_arrive(). Empty: nothing is
-- left but what runs, members of batches, jobs that others wait for and, unless with_objects, those with a part in the blob store. With it their parts come as references:
-- read the objects, and hand over what is in them. An ordered queue has to be paused, and none of its jobs may run.
-- Errors: 22023 bad argument or an ordered queue at work, 25000 not read committed, MR003 unknown move, MR004 restored schema.
create or replace function millrace.move_take(
  move int,
  max_jobs int = 1000,
  with_dead boolean = false,
  with_objects boolean = false)
returns millrace.move_batch
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
  return millrace.move_take_at(clock_timestamp(), move, max_jobs, with_dead, with_objects);
end $$;
comment on function millrace.move_take(int, int, boolean, boolean) is
  'takes jobs out of a queue that is moved';
