-- SPDX-License-Identifier: PostgreSQL
-- Whether cost more events of a key are allowed, and if so, spends them: in no period of the length per are more than max_events allowed. A sliding window, exact: calls for one key take
-- turns, until the end of the caller's transaction; calls for different keys never wait for each other. A call that is refused writes nothing; a rollback gives back what was spent.
-- remaining: how many more are allowed now. resets_at: of an allowed call, when the oldest event that counts leaves the window; of a refused one, when the same call would be allowed
-- if nothing else is spent, null when it never would (cost over max_events). cost 0 only looks. max_events, per and cost may change from call to call; per up to an hour, a day and 31 days are counted apart.
-- Errors: 22023 bad argument, 25000 not read committed, MR004 restored schema.
create or replace function millrace.rate_limit(
  key text,
  max_events int,
  per interval,
  cost int = 1)
returns millrace.rate_answer
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
  return millrace.rate_limit_at(null, key, max_events, per, cost);
end $$;
comment on function millrace.rate_limit(text, int, interval, int) is
  'spends events of a key if its limit allows them';
