-- SPDX-License-Identifier: PostgreSQL
-- Gives out up to max_jobs copies that came from origin, as a worker would get them, compares each with what it is a copy of (kind, payload, order in its lane), and
-- completes it. Returns how many were checked, and in all: arrived, equal, different, out_of_order, extra (jobs of the queue that are no copies), waiting (not given out
-- yet), missing (waiting, though the queue has nothing to give). Commit at once. Errors: 22023 bad argument, 25000 not read committed, MR004 restored schema.
create or replace function millrace.shadow_check(
  origin text,
  max_jobs int = 1000)
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
  return millrace.shadow_check_at(clock_timestamp(), origin, max_jobs);
end $$;
comment on function millrace.shadow_check(text, int) is
  'gives out copies of jobs, compares and completes them';
