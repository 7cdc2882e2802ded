-- SPDX-License-Identifier: PostgreSQL
-- Whether a job with one of these keys must come here because others of its kind are here still: the unique key is held, or, with an ordering key, the queue has any job that has not ended. Asked by
-- clients while a set of shards changes. False for an unknown queue. Errors: MR004.
create or replace function millrace.shard_holds(queue text, unique_key text = null, ordering_key text = null)
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
declare
  v_now timestamptz := clock_timestamp();
begin
  perform millrace.at_home();
  return millrace.unique_is_held(v_now, queue, unique_key)
         or (ordering_key is not null
             and exists (select
                           from millrace.stats_at(v_now, queue) s
                          where s.available + s.running + s.scheduled + s.retrying > 0));
end $$;
comment on function millrace.shard_holds(text, text, text) is
  'whether jobs with these keys are here still';
