-- SPDX-License-Identifier: PostgreSQL
-- claim for those who speak JSON: one object with lease, lease_until and jobs, which are objects; state and blob are base64, what is null is left out.
-- Without jobs lease is null; limited says which limit of the queue (concurrency, rate) leaves none, where one does, and lease_until when the rate
-- allows the next. Errors: as claim.
create or replace function millrace.claim_json(
  queue text = 'default',
  worker text = null,
  max_jobs int = 1,
  lease_for interval = null,
  with_state boolean = true)
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
  return millrace.claim_json_at(clock_timestamp(), queue, worker, max_jobs, lease_for, coalesce(with_state, true));
end $$;
comment on function millrace.claim_json(text, text, int, interval, boolean) is
  'takes jobs under a lease, as one object';
