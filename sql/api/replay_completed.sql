-- SPDX-License-Identifier: PostgreSQL
-- Enqueues the jobs of a queue that completed between since and until (exclusive) once more, as new jobs with source replay; optionally of one
-- kind. Reaches back as far as the queue's retention. Returns how many. Errors: MR003 unknown queue, 22023.
create or replace function millrace.replay_completed(queue text,
  since timestamptz,
  until timestamptz,
  kind text = null)
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
  perform millrace.at_home();
  if since is null or until is null or since >= until then
    perform millrace.refuse('since must be before until, and neither null', 'Pass a time range such as now() - interval ''1 hour'' and now().');
  end if;
  return millrace.completed_replay(clock_timestamp(), millrace.queue_known(queue), since, until, kind);
end $$;
comment on function millrace.replay_completed(text, timestamptz, timestamptz, text) is
  'enqueues completed jobs once more';
