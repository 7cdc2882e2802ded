-- SPDX-License-Identifier: PostgreSQL
-- enqueue_jobs with the time as an argument. p_batch, p_source: the batch and the source of all of them.
create or replace function millrace.enqueue_jobs_at(p_now timestamptz, p_jobs jsonb, p_batch bigint = null, p_source text = null)
returns setof bigint
language plpgsql
as $$
declare
  c_options constant text[] := array['kind', 'args', 'queue', 'priority', 'run_at', 'delay', 'unique_key', 'ordering_key', 'tenant', 'ref',
                                     'max_attempts', 'timeout', 'expires_in', 'meta', 'state', 'blob', 'on_conflict', 'unique_for', 'batch', 'depends_on'];
  v_bad record;
  v_ids bigint[];       -- where some have a unique_key: the id of each, and whether it is another job's
  v_old boolean[];
  v_said int[];         -- and whose args and time it gets
  v_waits boolean[];    -- whether it has to wait for others
  v_some record;        -- which features they use
begin
  perform millrace.at_home();
  if p_jobs is null or jsonb_typeof(p_jobs) <> 'array' then
    perform millrace.refuse(format('jobs must be an array of objects, not %s', coalesce(jsonb_typeof(p_jobs), 'null')),
      'Pass a JSON array such as [{"kind": "email", "args": {"to": 1}}]; an empty one is fine.');
  end if;
  if jsonb_array_length(p_jobs) = 0 then
    return;
  end if;
  select e.ord, jsonb_typeof(e.job) as type, k.option, k.shape
    into v_bad
    from jsonb_array_elements(p_jobs) with ordinality e(job, ord)
    left join lateral (select o.key as option, case when o.key = any (c_options) then jsonb_typeof(o.value) end as shape
                         from jsonb_each(case when jsonb_typeof(e.job) = 'object' then e.job else '{}' end) o
                        where o.key <> all (c_options)
                           or (jsonb_typeof(o.value) in ('object', 'array') and o.key not in ('args', 'meta', 'depends_on'))
                        limit 1) k on true
   where jsonb_typeof(e.job) <> 'object'
      or k.option is not null
   order by e.ord
   limit 1;
  if v_bad.shape is not null then
    perform millrace.refuse(format('job %s: %s must not be an %s', v_bad.ord, v_bad.option, v_bad.shape),
      'Only args and meta may be objects or arrays, and depends_on an array.');
  elsif v_bad.option is not null then
    perform millrace.refuse(format('job %s has the unknown option %s', v_bad.ord, quote_literal(v_bad.option)),
      format('Options are %s.', array_to_string(c_options, ', ')));
  elsif v_bad.type is not null then
    perform millrace.refuse(format('job %s must be an object, not %s', v_bad.ord, v_bad.type), 'Pass one object a job.');
  end if;

  begin
    -- One pass over all: the first job that fails a check is looked at again, alone, for its message.
    select x.*
      into v_bad
      from (select row_number() over () as ord, r.*
              from jsonb_to_recordset(p_jobs) as r(kind text, args jsonb, queue text, priority int, run_at timestamptz, delay interval,
                                                   unique_key text, ordering_key text, tenant text, ref text, max_attempts int,
                                                   "timeout" interval, expires_in interval, on_conflict text, unique_for interval, batch bigint,
                                                   depends_on bigint[])) x
     where x.kind is null or x.kind = '' or octet_length(x.kind) > 200
        or x.queue = '' or octet_length(x.queue) > 200
        or x.priority not between 0 and 99
        or not isfinite(x.run_at) or x.run_at > '100000-01-01'
        or x.delay <= interval '0' or x.delay > interval '1000 years'
        or (x.run_at is not null and x.delay is not null)
        or x.unique_key = '' or octet_length(x.unique_key) > 1000 or x.on_conflict not in ('ignore', 'replace')
        or x.unique_for <= interval '0' or x.unique_for > interval '1000 years'
        or (x.unique_key is null and (x.unique_for is not null or x.on_conflict = 'replace'))
        or x.ordering_key = '' or octet_length(x.ordering_key) > 1000
        or octet_length(x.tenant) > 1000 or octet_length(x.ref) > 1000
        or x.max_attempts not between 1 and 32000
        or x."timeout" <= interval '0' or x."timeout" > interval '1000 years'
        or x.expires_in <= interval '0' or x.expires_in > interval '1000 years'
     order by x.ord
     limit 1;
    if v_bad.ord is not null then
      perform millrace.check_job(format('job %s: ', v_bad.ord), v_bad.kind, coalesce(v_bad.args, '{}'),
        coalesce(v_bad.queue, 'default'), coalesce(v_bad.priority, 50), v_bad.run_at, v_bad.delay, v_bad.unique_key, v_bad.ordering_key,
        v_bad.tenant, v_bad.ref, v_bad.max_attempts, v_bad."timeout", v_bad.expires_in, coalesce(v_bad.on_conflict, 'ignore'), v_bad.unique_for);
    end if;
    perform millrace.check_base64(format('job %s: state', r.ord), r.state), millrace.check_base64(format('job %s: blob', r.ord), r.blob)
       from (select row_number() over () as ord, r.*
               from jsonb_to_recordset(p_jobs) as r(state text, blob text)) r
      where r.state is not null
         or r.blob is not null;
  exception
    when invalid_text_representation or invalid_datetime_format or datetime_field_overflow or numeric_value_out_of_range
      or interval_field_overflow then
      perform millrace.refuse('jobs has an option of the wrong type: ' || sqlerrm,
        'Numbers for priority, max_attempts and batch, an array of numbers for depends_on, times and intervals as text, state and blob as base64 text.');
  end;

  perform pg_current_xact_id();
  if millrace.jobs_lanes(p_now, p_jobs) then
    p_jobs := millrace.jobs_into(p_now, millrace.jobs_routed(p_jobs));
    perform millrace.jobs_lanes(p_now, p_jobs);      -- some may be in their route or overflow now
  end if;
  select max(w.args) filter (where w.args > q.args_bytes) as args,
         max(w.meta) filter (where w.meta > q.args_bytes) as meta,
         max(w.state) filter (where w.state > q.state_bytes) as state,
         max(w.blob) filter (where w.blob > q.blob_bytes) as blob,
         min(q.args_bytes) as args_limit, min(q.state_bytes) as state_limit, min(q.blob_bytes) as blob_limit,
         min(r.ord) filter (where r.ordering_key is not null and not q.ordered and q.key_limit is null) as unordered
    into v_bad
    from (select row_number() over () as ord, r.*
            from jsonb_to_recordset(p_jobs) as r(queue text, args jsonb, meta jsonb, state text, blob text, ordering_key text)) r
    join millrace.queue q on q.queue_name = coalesce(r.queue, 'default') and q.parent_id is null
   cross join lateral (select millrace.json_written(r.args, q.args_bytes) as args, millrace.json_written(r.meta, q.args_bytes) as meta,
                              millrace.base64_weight(r.state) as state, millrace.base64_weight(r.blob) as blob) w;
  if v_bad.unordered is not null then
    perform millrace.refuse_unordered(format('job %s: ', v_bad.unordered), coalesce(p_jobs -> (v_bad.unordered - 1)::int ->> 'queue', 'default'));
  end if;
  perform millrace.check_size('the largest of args', v_bad.args, v_bad.args_limit, 'max_args');
  perform millrace.check_size('the largest of meta', v_bad.meta, v_bad.args_limit, 'max_args');
  perform millrace.check_size('the largest of state', v_bad.state, v_bad.state_limit, 'max_state');
  perform millrace.check_size('the largest of blob', v_bad.blob, v_bad.blob_limit, 'max_blob');

  select count(r.unique_key) > 0 as unique, count(r.batch) > 0 or p_batch is not null as batch, count(r.depends_on) > 0 as depend
    into v_some
    from jsonb_to_recordset(p_jobs) as r(unique_key text, batch text, depends_on jsonb);
  if v_some.unique then
    select u.ids, u.old, u.said
      into v_ids, v_old, v_said
      from millrace.unique_take_many(p_now, p_jobs) u;
  end if;
  if v_some.batch then
    perform millrace.batch_enter(format('job %s: ', b.first_ord), b.batch_id, b.n)
       from (select coalesce(r.batch, p_batch) as batch_id, min(r.ord) as first_ord, (count(*) filter (where v_old[r.ord] is not true))::int as n
               from (select row_number() over () as ord, r.batch
                       from jsonb_to_recordset(p_jobs) as r(batch bigint)) r
              where coalesce(r.batch, p_batch) is not null
              group by 1
              order by 1) b;
  end if;
  if v_some.depend then
    v_ids := coalesce(v_ids, array(select nextval('millrace.pos_seq') from generate_series(1, jsonb_array_length(p_jobs))));
    v_waits := millrace.depend_note_many(p_now, p_jobs, v_ids, v_old);
  end if;
  return query
    with raw as materialized (
      select row_number() over () as ord, r.*
        from jsonb_to_recordset(p_jobs) as r(kind text, args jsonb, queue text, priority int, run_at timestamptz, delay interval,
                                             tenant text, ref text, max_attempts int, "timeout" interval, expires_in interval,
                                             meta jsonb, state text, blob text, unique_key text, ordering_key text, batch bigint)),
    resolved as materialized (
      select r.*, coalesce(t.queue_id, q.queue_id) as queue_id, q.part_count, q.ordered, coalesce(r.max_attempts, p.attempts_limit, q.attempts_limit) as attempts_limit,
             coalesce(s.run_at, p_now + s.delay, r.run_at, p_now + r.delay) as due_at, case when s.ord is null then r.args else s.args end as said_args
        from raw r
        left join raw s on s.ord = v_said[r.ord] and s.ord <> r.ord
        join millrace.queue q on q.queue_name = coalesce(r.queue, 'default') and q.parent_id is null
        left join millrace.queue t on q.fair and t.parent_id = q.queue_id and t.tenant_name = r.tenant
        left join millrace.retry_policy p on p.policy_kind = r.kind
       where v_old[r.ord] is not true
       order by r.ord),
    new as materialized (
      select coalesce(v_ids[r.ord], nextval('millrace.pos_seq')) as pos, r.ord, r.unique_key, r.ordering_key, r.queue_id, r.part_count, r.ordered, coalesce(r.priority, 50) << 5 as rank, r.attempts_limit,
             r.kind as job_kind, coalesce(r.said_args, '{}') as args, r.tenant, r.ref, r."timeout" as run_limit, r.meta,
             decode(r.state, 'base64') as state, decode(r.blob, 'base64') as blob,
             case when v_waits[r.ord] then 'infinity' when r.due_at > p_now then r.due_at end as due, case when v_waits[r.ord] then r.due_at end as resume,
             coalesce(r.batch, p_batch) as batch,
             greatest(r.due_at, p_now) + r.expires_in as stale_at
        from resolved r),
    log as (
      insert into millrace.job (pos, job_id, created_at, lane, attempts_limit, job_kind, payload_args, stale_at, run_limit, payload_meta,
                                payload_state, payload_blob, job_tenant, job_ref, job_source, order_key, unique_name, batch_id)
      select n.pos, n.pos, p_now, (n.queue_id << 12) + n.rank + millrace.part_of(case when n.ordered then n.ordering_key end, n.pos, n.part_count), n.attempts_limit, n.job_kind, n.args, n.stale_at,
             n.run_limit, n.meta, n.state, n.blob, n.tenant, n.ref, p_source, n.ordering_key, n.unique_key, n.batch
        from new n
       where n.due is null
       order by n.pos),
    later as (
      insert into millrace.delayed (due_at, job_id, created_at, lane, slot, attempt, lost, attempts_limit, why, job_kind, payload_args,
                                    stale_at, run_limit, payload_meta, payload_state, payload_blob, job_tenant, job_ref, job_source, order_key,
                                    unique_name, batch_id, resume_at, out_no)
      select n.due, n.pos, p_now, (n.queue_id << 12) + n.rank, millrace.delayed_slot(p_now, n.due), 1, 0, n.attempts_limit,
             case when n.due = 'infinity' then 'w' else 's' end::"char",
             n.job_kind, n.args, n.stale_at, n.run_limit, n.meta, n.state, n.blob, n.tenant, n.ref, p_source, n.ordering_key, n.unique_key, n.batch, n.resume,
             case when greatest(octet_length(n.state), octet_length(n.blob)) >= 512 then millrace.offload_no(p_now, n.due, (n.queue_id << 12)::int) end
        from new n
       where n.due is not null),
    kept as (
      insert into millrace.blob_object (object_key, job_id, kept_at, look_at, object_bytes, seg)
      select o.object_key, n.pos, p_now, p_now + interval '1 hour', o.object_bytes, pg_sequence_last_value('millrace.seg_seq'::regclass)
        from new n
       cross join lateral millrace.objects_of(n.state, n.blob) o
       where millrace.is_object(n.state)
          or millrace.is_object(n.blob))
    select i.id
      from (select n.ord, n.pos as id
              from new n
             union all
            select o.ord, v_ids[o.ord]
              from unnest(v_old) with ordinality o(is_old, ord)
             where o.is_old) i
     order by i.ord;
end $$;

-- Makes the queues, tenants and lanes that some jobs need, and wakes who waits for them. True: one of the queues has a limit or a route. Tenants are made in
-- their own order, so that two calls with the same new ones wait for each other and not in a circle.
create or replace function millrace.jobs_lanes(p_now timestamptz, p_jobs jsonb)
returns boolean
language plpgsql
as $$
declare
  v_one record;
  v_odd boolean := false;
begin
  for v_one in
    select q as queue, d.priority
      from (select distinct coalesce(r.queue, 'default') as queue_name, coalesce(r.priority, 50) as priority
              from jsonb_to_recordset(p_jobs) as r(queue text, priority int)) d
     cross join lateral millrace.queue_of(d.queue_name) q
  loop
    if (v_one.queue).fair then
      perform millrace.lane_register(((millrace.tenant_of(v_one.queue, d.tenant)).queue_id << 12) + (v_one.priority << 5))
         from (select distinct r.tenant
                 from jsonb_to_recordset(p_jobs) as r(queue text, priority int, tenant text)
                where coalesce(r.queue, 'default') = (v_one.queue).queue_name
                  and coalesce(r.priority, 50) = v_one.priority
                order by 1) d;
    else
      perform millrace.lane_register(((v_one.queue).queue_id << 12) + (v_one.priority << 5));
    end if;
    perform millrace.wake((v_one.queue).queue_id, p_now);
    v_odd := v_odd or num_nonnulls((v_one.queue).depth_limit, (v_one.queue).route_queue) > 0;
  end loop;
  return v_odd;
end $$;
