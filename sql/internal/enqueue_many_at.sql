-- SPDX-License-Identifier: PostgreSQL
-- enqueue_many with the time as an argument. p_source: of all its jobs. p_routed: p_queue is the route of another queue, and its own is not asked.
create or replace function millrace.enqueue_many_at(p_now timestamptz, p_kind text, p_args jsonb[], p_queue text, p_priority int,
                                                    p_run_at timestamptz, p_state bytea[] = null, p_blob bytea[] = null, p_source text = null,
                                                    p_routed boolean = false)
returns setof bigint
language plpgsql
as $$
declare
  v_queue millrace.queue;
  v_lane  int;
  v_limit int;
  v_xid   xid8;
  v_seg   int;
  v_pack  int;
  v_away  int;      -- jobs that the queue's route takes, the first ones
begin
  perform millrace.at_home();
  if p_args is null then
    perform millrace.refuse('args must not be null', 'Pass an array; an empty one is fine.');
  end if;
  perform millrace.check_job('', p_kind, '{}', p_queue, p_priority, p_run_at, null, null, null, null, null, null, null, null);
  if array_ndims(p_args) > 1 or array_lower(p_args, 1) <> 1 then
    p_args := array(select unnest(p_args));
  end if;
  if array_position(p_args, null) is not null then
    perform millrace.refuse(format('args[%s] must not be null', array_position(p_args, null)), 'Pass ''{}'' for a job without arguments.');
  end if;
  if coalesce(cardinality(p_state), cardinality(p_args)) <> cardinality(p_args)
     or coalesce(cardinality(p_blob), cardinality(p_args)) <> cardinality(p_args) then
    perform millrace.refuse(format('%s has %s elements and args %s',
                                   case when cardinality(p_state) <> cardinality(p_args) then 'state' else 'blob' end,
                                   case when cardinality(p_state) <> cardinality(p_args) then cardinality(p_state) else cardinality(p_blob) end,
                                   cardinality(p_args)),
      'Pass an element for each job, null for a job without, or no array at all.');
  end if;
  if cardinality(p_args) = 0 then
    return;
  end if;
  v_xid := pg_current_xact_id();
  v_queue := millrace.queue_of(p_queue);
  if v_queue.route_queue is not null and not p_routed then
    v_away := millrace.route_count(v_queue, cardinality(p_args));
    p_state := case when p_state is not null then array(select unnest(p_state)) end;      -- numbered from 1, as args
    p_blob := case when p_blob is not null then array(select unnest(p_blob)) end;
    return query
      select *
        from millrace.enqueue_many_at(p_now, p_kind, p_args[: v_away], v_queue.route_queue, p_priority, p_run_at, p_state[: v_away], p_blob[: v_away], p_source, true);
    p_args := p_args[v_away + 1 :];
    p_state := p_state[v_away + 1 :];
    p_blob := p_blob[v_away + 1 :];
    if cardinality(p_args) = 0 then
      return;
    end if;
  end if;
  if v_queue.depth_limit is not null then
    v_queue := millrace.queue_admit(p_now, v_queue, cardinality(p_args), case when p_run_at > p_now then 0 else cardinality(p_args) end);
  end if;
  if pg_column_size(p_args) > least(v_queue.args_bytes, 8192) then      -- see json_written
    perform millrace.check_size('the largest of args', (select max(millrace.json_written(a, v_queue.args_bytes)) from unnest(p_args) a), v_queue.args_bytes, 'max_args');
  end if;
  if coalesce(p_state, p_blob) is not null then
    perform millrace.check_size('the largest of state', (select max(case when millrace.part_is_coded(s) then millrace.part_weight('state', s) else octet_length(s) end) from unnest(p_state) s), v_queue.state_bytes, 'max_state'),
            millrace.check_size('the largest of blob', (select max(case when millrace.part_is_coded(b) then millrace.part_weight('blob', b) else octet_length(b) end) from unnest(p_blob) b), v_queue.blob_bytes, 'max_blob');
  end if;
  v_lane := (v_queue.queue_id << 12) + (p_priority << 5);
  perform millrace.lane_register(v_lane);
  v_limit := coalesce((select r.attempts_limit from millrace.retry_policy r where r.policy_kind = p_kind), v_queue.attempts_limit);
  if p_run_at > p_now then
    return query
      with put as (
        insert into millrace.delayed (due_at, job_id, created_at, lane, slot, attempt, lost, attempts_limit, why, job_kind, payload_args,
                                      payload_state, payload_blob, job_source, out_no)
        select p_run_at, nextval('millrace.pos_seq'), p_now, v_lane, millrace.delayed_slot(p_now, p_run_at), 1, 0, v_limit, 's', p_kind,
               p.args, p.state, p.blob, p_source,
               case when greatest(octet_length(p.state), octet_length(p.blob)) >= 512 then millrace.offload_no(p_now, p_run_at, v_lane) end
          from unnest(p_args, p_state, p_blob) p(args, state, blob)
        returning job_id, case when millrace.is_object(payload_state) then payload_state end as state,
                  case when millrace.is_object(payload_blob) then payload_blob end as blob)
      select case when num_nonnulls(u.state, u.blob) = 0 then u.job_id else u.job_id + 0 * millrace.parts_keep(p_now, u.job_id, u.state, u.blob) end
        from put u;
    return;
  end if;
  perform millrace.wake(v_queue.queue_id, p_now);
  -- The segment is read once, after the xid: the rule of the log's own defaults, which read it for each row.
  v_seg := pg_sequence_last_value('millrace.seg_seq'::regclass);
  if coalesce(p_state, p_blob) is not null then
    return query
      with put as (
        insert into millrace.job (xid, pos, job_id, created_at, seg, lane, slot, attempts_limit, job_kind, payload_args, payload_state,
                                  payload_blob, job_source)
        select v_xid, p.pos, p.pos, p_now, v_seg, v_lane + (p.pos >> 5) % v_queue.part_count, v_seg % 16, v_limit, p_kind, p.args, p.state, p.blob, p_source
          from (select nextval('millrace.pos_seq') as pos, u.args, u.state, u.blob
                  from unnest(p_args, p_state, p_blob) u(args, state, blob)) p
        returning job_id, case when millrace.is_object(payload_state) then payload_state end as state,
                  case when millrace.is_object(payload_blob) then payload_blob end as blob)
      select case when num_nonnulls(u.state, u.blob) = 0 then u.job_id else u.job_id + 0 * millrace.parts_keep(p_now, u.job_id, u.state, u.blob) end
        from put u;
    return;
  end if;
  v_pack := millrace.pack_size(p_args, v_queue.part_count);
  if v_pack > 1 then
    return query
      with put as (
        insert into millrace.job (xid, pos, job_id, created_at, seg, lane, slot, attempts_limit, pack_n, job_kind, pack, job_source)
        select v_xid, p.first_id + p.n - 1, p.first_id + p.n - 1, p_now, v_seg, v_lane + (p.first_id >> 5) % v_queue.part_count, v_seg % 16,
               v_limit, p.n, p_kind, p.pack, p_source
          from (select nextval('millrace.pos_seq') as first_id, least(v_pack, cardinality(s.slice) - g + 1) as n,
                       s.slice[g : g + v_pack - 1] as pack
                  from (select p_args[1 : cardinality(p_args)] as flat
                        offset 0) w      -- a variable's array is not flat, and would be made so for each part
                 cross join lateral millrace.array_parts(w.flat, 256 * v_pack) m
                 cross join lateral millrace.array_parts(m.slice, 16 * v_pack) s
                 cross join lateral generate_series(1, cardinality(s.slice), v_pack) g) p
        returning pos, pack_n)
      select generate_series(put.pos - put.pack_n + 1, put.pos)
        from put;
    return;
  end if;
  return query
    insert into millrace.job (xid, pos, job_id, created_at, seg, lane, slot, attempts_limit, job_kind, payload_args, job_source)
    select v_xid, p.pos, p.pos, p_now, v_seg, v_lane + (p.pos >> 5) % v_queue.part_count, v_seg % 16, v_limit, p_kind, p.a, p_source
      from (select nextval('millrace.pos_seq') as pos, a
              from unnest(p_args) a) p
    returning job_id;
end $$;
