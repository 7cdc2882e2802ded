-- SPDX-License-Identifier: PostgreSQL
-- Removes every waiting job of a queue, and of its tenants: moves each lane's cursor over what is there, and deletes what is delayed.
create or replace function millrace.purge_at(p_now timestamptz, p_queue millrace.queue)
returns bigint
language plpgsql
as $$
declare
  v_lane  int;
  v_total bigint;
  v_left  bigint;
  v_n     bigint;
  v_hooks millrace.hook[];
  v_away  bigint[];
  v_tenants bigint;
begin
  perform millrace.check_isolation('purge');
  if p_queue.has_tenants then
    v_tenants := (select sum(millrace.purge_at(p_now, s.tenant))
                    from (select t as tenant
                            from millrace.queue t
                           where t.parent_id = p_queue.queue_id
                           order by t.queue_id) s);
  end if;
  with gone as (
    delete from millrace.delayed d
     where d.lane >= p_queue.queue_id << 12
       and d.lane < (p_queue.queue_id + 1) << 12
    returning d.job_id, d.lane, d.order_key, d.unique_name, d.batch_id,
              millrace.is_object(d.payload_state) or millrace.is_object(d.payload_blob) as away)
  select count(*),
         array_agg(row(g.job_id, g.lane, g.order_key, g.unique_name, g.batch_id)::millrace.hook) filter (where num_nonnulls(g.order_key, g.unique_name, g.batch_id) > 0),
         array_agg(g.job_id) filter (where g.away)
    into v_n, v_hooks, v_away
    from gone g;
  if v_hooks is not null then
    perform millrace.jobs_ended(p_now, v_hooks, repeat('p', cardinality(v_hooks)));
  end if;
  perform millrace.objects_doom_all(p_now, v_away);
  foreach v_lane in array millrace.lanes_of(p_queue, 0) loop
    perform pg_advisory_xact_lock(1297219591, v_lane);
    v_n := v_n + millrace.lane_depth(p_now, v_lane);
    v_left := millrace.lane_left(p_now, v_lane);
    while v_left > 0 loop
      v_total := (millrace.lane_cursor(v_lane, pg_sequence_last_value('millrace.seg_seq'::regclass)::int)).total;
      perform millrace.lane_take(p_now, v_lane, 10000, 'p', null, null, false, false);
      v_total := (millrace.lane_cursor(v_lane, pg_sequence_last_value('millrace.seg_seq'::regclass)::int)).total - coalesce(v_total, 0);
      exit when v_total = 0;
      v_left := v_left - v_total;
    end loop;
  end loop;
  return v_n + coalesce(v_tenants, 0);
end $$;
