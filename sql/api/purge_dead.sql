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
  v_away bigint[];
begin
  perform millrace.at_home();
  v_id := (millrace.queue_known(queue)).queue_id;
  perform millrace.check_interval('older_than', older_than);
  with gone as (
    delete from millrace.dead d
     where d.queue_id = v_id
       and d.died_at < coalesce(clock_timestamp() - older_than, 'infinity')
    returning d.job_id, millrace.is_object(d.payload_state) or millrace.is_object(d.payload_blob) as away)
  select count(*), array_agg(g.job_id) filter (where g.away)
    into v_n, v_away
    from gone g;
  perform millrace.objects_doom_all(clock_timestamp(), v_away);
  return v_n;
end $$;
comment on function millrace.purge_dead(text, interval) is
  'removes dead letters of a queue';
