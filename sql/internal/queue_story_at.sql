-- SPDX-License-Identifier: PostgreSQL
-- queue_story with the time as an argument.
create or replace function millrace.queue_story_at(p_now timestamptz, p_queue text)
returns jsonb
language plpgsql
as $$
declare
  v_queue millrace.queue;
begin
  perform millrace.at_home();
  v_queue := millrace.queue_known(p_queue);
  return jsonb_build_object(
    'queue', v_queue.queue_name, 'paused', v_queue.paused_at is not null,
    'settings', (select s.settings from millrace.queues s where s.queue = v_queue.queue_name),
    'stats', millrace.queue_faces(p_now, v_queue.queue_name, 10000, 1000) -> 0,
    'lanes', millrace.lane_faces(p_now, v_queue),
    'workers', coalesce((select jsonb_agg(to_jsonb(w) - 'queue' order by w.last_claim_at desc, w.worker)
                           from (select w.* from millrace.workers_in(millrace.lanes_family(v_queue)) w order by w.last_claim_at desc, w.worker limit 100) w), '[]'),
    'oldest', millrace.oldest_faces(p_now, v_queue))
         || case
              when v_queue.has_tenants then
                jsonb_build_object('tenants', coalesce((select jsonb_agg(jsonb_strip_nulls(to_jsonb(t)) order by t.tenant)
                                                          from millrace.tenant_stats_at(p_now, p_queue, null, 100) t), '[]'))
              else '{}'
            end;
end $$;

-- The lanes of a queue, in the order of claims, at most a hundred.
create or replace function millrace.lane_faces(p_now timestamptz, p_queue millrace.queue)
returns jsonb
language plpgsql
as $$
declare
  v_lanes int[] := array(select u.lane from unnest(millrace.lanes_family(p_queue)) u(lane) order by u.lane limit 100);
begin
  perform millrace.lanes_count(p_now, v_lanes, millrace.counted_by_maintain(p_now));
  return coalesce((select jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
                            'lane', l.lane, 'priority', (l.lane >> 5) & 127, 'part', l.lane & 31, 'available', f.depth,
                            'running', f.jobs,
                            'oldest_seconds', date_part('epoch', p_now - f.oldest_at))) order by l.lane)
                     from unnest(v_lanes) l(lane)
                    cross join lateral millrace.lane_figures(p_now, l.lane) f), '[]');
end $$;

-- The jobs of a queue that have been available for longest: those in front of its lanes, at most twenty of each of the first hundred lanes.
create or replace function millrace.oldest_faces(p_now timestamptz, p_queue millrace.queue)
returns jsonb
language plpgsql
as $$
declare
  c_jobs  constant int := 20;
  v_lane  int;
  v_first millrace.taken;
  v_ids   bigint[] := '{}';
  v_poss  bigint[] := '{}';
  v_slots int[] := '{}';
  v_since timestamptz[] := '{}';
  v_some  record;
begin
  for v_lane in select u.lane from unnest(millrace.lanes_family(p_queue)) u(lane) order by u.lane limit 100 loop
    v_first := millrace.lane_take(p_now, v_lane, c_jobs, 'o', null, null, false, false);
    for i in 1 .. coalesce(cardinality(v_first.seg), 0) loop
      select array_agg(j.job_id) as ids, array_agg(j.pos) as poss, array_agg(v_first.seg[i] % 16) as slots, array_agg(coalesce(j.ready_at, j.created_at)) as since
        into v_some
        from millrace.range_jobs(v_first.seg[i] % 16, v_lane, v_first.from_xid[i], v_first.from_pos[i], v_first.to_xid[i], v_first.hi, v_first.rows[i]) j
       where (j.stale_at <= p_now) is not true
         and millrace.waiting_status(p_now, v_lane, j.pos, j.stale_at) = 'available';
      v_ids := v_ids || v_some.ids;
      v_poss := v_poss || v_some.poss;
      v_slots := v_slots || v_some.slots;
      v_since := v_since || v_some.since;
    end loop;
  end loop;
  return coalesce((select jsonb_agg(millrace.log_face(o.slot, o.id, o.pos, 'available', null) order by o.since, o.pos)
                     from (select u.*
                             from unnest(v_ids, v_poss, v_slots, v_since) u(id, pos, slot, since)
                            order by u.since, u.pos
                            limit c_jobs) o), '[]');
end $$;
