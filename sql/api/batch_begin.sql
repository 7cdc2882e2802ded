-- SPDX-License-Identifier: PostgreSQL
-- Begins a batch and returns its number. Members are added with batch_add, or with the option batch of enqueue and enqueue_jobs, until batch_seal; they
-- may begin before that. Callbacks are jobs as enqueue_jobs takes them, without unique_key, batch and depends_on; each is enqueued once, within about a second,
-- and its meta has the counts as "batch". on_complete: when the batch is sealed and all members have completed. on_death: when the first
-- member has died. on_end: when it is sealed and all members have ended, well or not. label: what people call it.
-- Errors: 22023 bad argument, MR004 restored schema.
create or replace function millrace.batch_begin(
  on_complete jsonb = null,
  on_death jsonb = null,
  label text = null,
  on_end jsonb = null)
returns bigint
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
  return millrace.batch_begin_at(clock_timestamp(), on_complete, on_death, label, on_end);
end $$;
comment on function millrace.batch_begin(jsonb, jsonb, text, jsonb) is
  'begins a batch';
