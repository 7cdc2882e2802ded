-- SPDX-License-Identifier: PostgreSQL
-- Makes a job that waits (scheduled, available, to be retried, or waiting already) wait until others have completed, too. It is cancelled when one of
-- them ends in another way. Needs that have completed already count as met. At most 1,000 in a call. In a transaction: commit soon, where the
-- job was available its lane stands still until then.
-- Errors: 22023 bad argument, a job that does not wait, a cycle; MR003 unknown job, of either sort; MR004 restored schema; 25000 above read committed.
create or replace function millrace.depend(
  id bigint,
  needs bigint[])
returns void
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
  perform millrace.depend_at(clock_timestamp(), id, needs);
end $$;
comment on function millrace.depend(bigint, bigint[]) is
  'makes a job wait until others have completed';
