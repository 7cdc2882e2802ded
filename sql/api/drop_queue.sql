-- SPDX-License-Identifier: PostgreSQL
-- Removes a queue with its tenants and all that waits in it, its dead letters and its archive. Refused while jobs of it run, or are on their way elsewhere. Stop its producers first: a
-- transaction that is still open may have enqueued into it. Errors: MR003 unknown queue, 55006 jobs are running or on their way.
create or replace function millrace.drop_queue(name text)
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
declare
  v_queue   millrace.queue;
  v_running bigint;
  v_id      int;
begin
  perform millrace.at_home();
  v_queue := millrace.queue_known(name);
  select count(*)
    into v_running
    from unnest(millrace.lanes_family(v_queue)) l
   cross join lateral millrace.lane_open_claims(l, millrace.lane_tally(l));
  if v_running > 0 then
    raise exception using errcode = 'object_in_use',
      message = format('queue %s has %s open leases', quote_literal(name), v_running),
      hint = 'Pause the queue, wait until its jobs have finished, then drop it.';
  end if;
  if exists (select from millrace.move w join millrace.moving m on m.move_id = w.move_id where w.queue_id = v_queue.queue_id and not w.copy) then
    raise exception using errcode = 'object_in_use',
      message = format('queue %s has jobs that are on their way to another database', quote_literal(name)),
      hint = 'Run "millrace move" again to the end, or put them back with move_give_back().';
  end if;
  perform millrace.purge_at(clock_timestamp(), v_queue);
  perform millrace.objects_doom_all(clock_timestamp(), array(select d.job_id from millrace.dead d where d.queue_id = v_queue.queue_id));
  delete from millrace.departure d where d.move_id = any (array(select w.move_id from millrace.move w where w.queue_id = v_queue.queue_id));
  delete from millrace.moving m where m.move_id = any (array(select w.move_id from millrace.move w where w.queue_id = v_queue.queue_id));
  delete from millrace.shadow_cursor c where c.move_id = any (array(select w.move_id from millrace.move w where w.queue_id = v_queue.queue_id));
  delete from millrace.move w where w.queue_id = v_queue.queue_id;
  delete from millrace.dead d where d.queue_id = v_queue.queue_id;
  delete from millrace.archive a where a.queue_id = v_queue.queue_id;
  delete from millrace.unique_key u where u.queue_id = v_queue.queue_id;
  delete from millrace.turn t where t.queue_id = v_queue.queue_id;
  delete from millrace.line_list l where l.queue_id = v_queue.queue_id;
  delete from millrace.turn_doubt t where t.queue_id = v_queue.queue_id;
  foreach v_id in array array(select millrace.family(v_queue.queue_id)) loop
    delete from millrace.mark m where m.lane >= v_id << 12 and m.lane < (v_id + 1) << 12;
    delete from millrace.lane l where l.lane >= v_id << 12 and l.lane < (v_id + 1) << 12;
    delete from millrace.queue q where q.queue_id = v_id;
  end loop;
  perform millrace.gauge_drop(v_queue.queue_id), millrace.fair_drop(v_queue.queue_id);
end $$;
comment on function millrace.drop_queue(text) is
  'removes a queue';
