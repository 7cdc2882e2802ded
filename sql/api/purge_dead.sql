-- SPDX-License-Identifier: PostgreSQL
-- Removes dead letters of a queue, all or those older than an interval. Returns how many. Errors: MR003 unknown queue, 22023.
create or replace function millrace.purge_dead(queue text,
  older_than interval = null)
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
  v_n  bigint;
begin
  perform millrace.at_home();
  v_id := (millrace.queue_known(queue)).queue_id;
  perform millrace.check_interval('older_than', older_than);
  delete from millrace.dead d
   where d.queue_id = v_id
     and d.died_at < coalesce(clock_timestamp() - older_than, 'infinity');
  get diagnostics v_n = row_count;
  return v_n;
end $$;
comment on function millrace.purge_dead(text, interval) is
  'removes dead letters of a queue';
