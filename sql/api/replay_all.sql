-- SPDX-License-Identifier: PostgreSQL
-- Enqueues dead letters of a queue again, oldest first: all, or those of a kind, or with an error like a pattern (SQL LIKE), at most max_jobs.
-- Returns how many. Errors: MR003 unknown queue, 22023.
create or replace function millrace.replay_all(queue text,
  kind text = null,
  error_like text = null,
  max_jobs int = null)
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
declare
  v_id int;
begin
  perform millrace.at_home();
  v_id := (millrace.queue_known(queue)).queue_id;
  if max_jobs is not null then
    perform millrace.check_number('max_jobs', max_jobs, 1, 2147483647);
  end if;
  return millrace.dead_replay(clock_timestamp(), array(
    select d.job_id
      from millrace.dead d
     where d.queue_id = v_id
       and (kind is null or d.job_kind = kind)
       and (error_like is null or d.failure like error_like)
     order by d.died_at, d.job_id
     limit max_jobs));
end $$;
comment on function millrace.replay_all(text, text, text, int) is
  'enqueues dead letters of a queue again';
