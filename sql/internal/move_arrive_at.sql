-- SPDX-License-Identifier: PostgreSQL
-- A batch of another database's jobs arrives. Batches of an origin come one after the other, each once: its number is written down with its jobs. Of two that bring
-- the same one the second waits for the first at a lock on the origin, and then finds the number.
create or replace function millrace.move_arrive_at(p_now timestamptz, p_origin text, p_batch bigint, p_queue text, p_jobs jsonb[], p_args jsonb[], p_meta jsonb[],
                                                   p_state bytea[], p_blob bytea[])
returns jsonb
language plpgsql
as $$
declare
  v_last  millrace.arrival;
  v_queue millrace.queue;
  v_put   record;
begin
  perform millrace.at_home();
  perform millrace.check_isolation('move_arrive');
  perform millrace.check_name('origin', p_origin);
  if current_setting('synchronous_commit') = 'off' then
    perform set_config('synchronous_commit', 'local', true);      -- the other database forgets them soon
  end if;
  perform pg_advisory_xact_lock(1297219611, hashtext(p_origin));
  select a.*
    into v_last
    from millrace.arrival a
   where a.origin_name = p_origin
   order by a.batch_no desc
   limit 1;
  if p_batch <= v_last.batch_no then
    return jsonb_build_object('again', true, 'ids', case when p_batch = v_last.batch_no then to_jsonb(v_last.job_ids) end,
                              'merged', case when p_batch = v_last.batch_no then v_last.merged_n else 0 end, 'total', v_last.total);
  elsif p_batch is null or p_batch > v_last.batch_no + 1 then
    perform millrace.refuse(format('batch %s of origin %s does not follow on %s', coalesce(p_batch::text, 'null'), quote_literal(p_origin), v_last.batch_no),
      'Batches come one after the other. If this database was restored from a backup, jobs that had arrived since are not in it.');
  end if;
  v_queue := millrace.queue_of(p_queue);
  perform millrace.move_check(v_queue, p_jobs, p_args, p_meta, p_state, p_blob);
  if v_queue.depth_limit is not null then
    v_queue.overflow_queue := null;
    perform millrace.queue_admit(p_now, v_queue, 1, (select count(*) from unnest(p_jobs) j where j ->> 'why' = 'a'));
  end if;
  v_put := millrace.move_put(p_now, v_queue, p_jobs, p_args, p_meta, p_state, p_blob, p_origin);
  insert into millrace.mirror (origin_name, ord, job_id, copied_id, hash)
  select p_origin, (p_batch << 14) + j.ord, v_put.ids[j.ord], (j.job ->> 'id')::bigint, j.job ->> 'hash'
    from unnest(p_jobs) with ordinality j(job, ord)
   where j.job ? 'hash';
  insert into millrace.arrival (origin_name, batch_no, queue_id, arrived_at, job_ids, merged_n, total)
  values (p_origin, p_batch, v_queue.queue_id, p_now, v_put.ids, v_put.merged, coalesce(v_last.total, 0) + cardinality(p_jobs));
  delete from millrace.arrival a
   where a.origin_name = p_origin
     and a.batch_no <= v_last.batch_no;
  return jsonb_build_object('again', false, 'ids', to_jsonb(v_put.ids), 'merged', v_put.merged, 'total', coalesce(v_last.total, 0) + cardinality(p_jobs));
end $$;

-- Whether a batch is one that move_take made, and its jobs are such as the queue takes.
create or replace function millrace.move_check(p_queue millrace.queue, p_jobs jsonb[], p_args jsonb[], p_meta jsonb[], p_state bytea[], p_blob bytea[])
returns void
language plpgsql
as $$
declare
  v_n   int := cardinality(p_jobs);
  v_bad record;
begin
  if v_n is null or v_n = 0 or v_n > 10000 or array_position(p_jobs, null) is not null
     or (cardinality(p_args), cardinality(p_meta), cardinality(p_state), cardinality(p_blob)) is distinct from (v_n, v_n, v_n, v_n) then
    perform millrace.refuse('jobs, args, meta, state and blob must have the same number of elements, 1 to 10000',
      'Pass on what move_take() returned.');
  end if;
  select j.ord, j.job ->> 'id' as id, j.job ->> 'ordering_key' as order_key
    into v_bad
    from unnest(p_jobs) with ordinality j(job, ord)
   where not (j.job ?& array['id', 'priority', 'why', 'created_at', 'attempt', 'lost', 'max_attempts', 'kind'])
      or (j.job ? 'ordering_key' and j.job ->> 'why' <> 'd' and not p_queue.ordered and p_queue.key_limit is null)
   limit 1;
  if v_bad.order_key is not null then
    perform millrace.refuse_unordered(format('job %s: ', v_bad.id), p_queue.queue_name);
  elsif v_bad.ord is not null then
    perform millrace.refuse(format('job %s of the batch is incomplete', v_bad.ord), 'Pass on what move_take() returned.');
  end if;
  perform millrace.check_size('the largest of args', (select max(millrace.json_written(a, p_queue.args_bytes)) from unnest(p_args) a), p_queue.args_bytes, 'max_args'),
          millrace.check_size('the largest of meta', (select max(millrace.json_written(m, p_queue.args_bytes)) from unnest(p_meta) m), p_queue.args_bytes, 'max_args'),
          millrace.check_size('the largest of state', (select max(octet_length(s)) from unnest(p_state) s), p_queue.state_bytes, 'max_state'),
          millrace.check_size('the largest of blob', (select max(octet_length(b)) from unnest(p_blob) b), p_queue.blob_bytes, 'max_blob');
end $$;

-- Puts jobs that left a queue into one, with all that they had. p_origin null: they come back to where they were, with their ids. ids: in the order of p_jobs; of one whose
-- unique key another job holds that one's. A part that is away comes so only where it is given back, or could not be read: its job waits for it, and is a dead letter if it cannot be had.
create or replace function millrace.move_put(p_now timestamptz, p_queue millrace.queue, p_jobs jsonb[], p_args jsonb[], p_meta jsonb[], p_state bytea[], p_blob bytea[],
                                             p_origin text, out ids bigint[], out merged int)
language plpgsql
as $$
declare
  v_old boolean[] := array_fill(false, array[cardinality(p_jobs)]);
  v_one record;
begin
  perform pg_current_xact_id();
  ids := array(select case when p_origin is null then (j.job ->> 'id')::bigint else nextval('millrace.pos_seq') end
                 from unnest(p_jobs) with ordinality j(job, ord)
                order by j.ord);
  for v_one in
    select j.ord, millrace.unique_take(p_now, p_queue.queue_id, j.job ->> 'unique_key', ids[j.ord], (j.job ->> 'unique_for')::interval) as held
      from (select j.job, j.ord::int
              from unnest(p_jobs) with ordinality j(job, ord)
             where j.job ? 'unique_key'
               and j.job ->> 'why' <> 'd'
             order by j.job ->> 'unique_key', j.ord) j
  loop
    if v_one.held is not null then
      ids[v_one.ord] := v_one.held;
      v_old[v_one.ord] := true;
    end if;
  end loop;
  perform millrace.lane_register(((millrace.tenant_of(p_queue, d.tenant)).queue_id << 12) + (d.priority << 5))
     from (select distinct j ->> 'tenant' as tenant, (j ->> 'priority')::int as priority
             from unnest(p_jobs) j
            order by 1, 2) d;
  with come as materialized (
    select j.ord, p_args[j.ord] as args, p_meta[j.ord] as meta, p_state[j.ord] as state, p_blob[j.ord] as blob,
           (coalesce(t.queue_id, p_queue.queue_id) << 12) + (f.priority << 5) as base, f.*,
           case when p_origin is null then f.source when f.hash is not null then 'shadow' else 'move' end as came_by,
           case when p_origin is null then f.trail else millrace.trail_moved(p_now, p_origin, f.id, f.attempt, f.source, f.trail) end as past,
           millrace.is_away(p_state[j.ord]) or millrace.is_away(p_blob[j.ord]) as away, greatest(octet_length(p_state[j.ord]), octet_length(p_blob[j.ord])) as largest
      from unnest(p_jobs) with ordinality j(job, ord)
     cross join lateral jsonb_to_record(j.job) f(id bigint, priority int, why "char", due_at timestamptz, created_at timestamptz, ready_at timestamptz,
                                                 stale_at timestamptz, "timeout" interval, attempt int2, lost int2, max_attempts int2, kind text, tenant text, ref text,
                                                 source text, ordering_key text, unique_key text, trail jsonb, died_at timestamptz, cause text, error text, hash text)
      left join millrace.queue t on p_queue.fair and t.parent_id = p_queue.queue_id and t.tenant_name = f.tenant
     where not v_old[j.ord]),
  log as (
    insert into millrace.job (pos, job_id, created_at, lane, attempt, lost, attempts_limit, job_kind, payload_args, ready_at, stale_at, run_limit, payload_meta,
                              payload_state, payload_blob, job_tenant, job_ref, job_source, trail, order_key, unique_name)
    select c.pos, ids[c.ord], c.created_at, c.base + millrace.part_of(case when p_queue.ordered then c.ordering_key end, c.pos, p_queue.part_count), c.attempt, c.lost,
           c.max_attempts, c.kind, c.args, c.ready_at, c.stale_at, c."timeout", c.meta, c.state, c.blob, c.tenant, c.ref, c.came_by, c.past, c.ordering_key, c.unique_key
      from (select case when p_origin is null then nextval('millrace.pos_seq') else ids[c.ord] end as pos, c.*
              from come c
             where c.why = 'a'
               and not c.away
             order by c.ord) c
     order by c.ord),
  later as (
    insert into millrace.delayed (due_at, job_id, created_at, lane, slot, attempt, lost, attempts_limit, why, job_kind, payload_args, stale_at, run_limit, payload_meta,
                                  payload_state, payload_blob, job_tenant, job_ref, job_source, trail, order_key, unique_name, resume_at, out_no, away_due)
    select d.due, ids[c.ord], c.created_at, c.base, millrace.delayed_slot(p_now, d.due), c.attempt, c.lost, c.max_attempts, case c.why when 'a' then 's' else c.why end, c.kind, c.args, c.stale_at, c."timeout",
           c.meta, c.state, c.blob, c.tenant, c.ref, c.came_by, c.past, c.ordering_key, c.unique_key, case when c.why = 'p' then c.due_at end,
           case when c.largest >= 512 and not c.away then millrace.offload_no(p_now, d.due, c.base) end, case when c.away then d.due end
      from come c
     cross join lateral (select case c.why when 'p' then 'infinity' when 'a' then p_now else c.due_at end as due) d
     where c.why <> 'd'
       and (c.why <> 'a' or c.away))
  insert into millrace.dead (died_at, job_id, created_at, queue_id, lane, bytes, slot, attempt, lost, attempts_limit, cause, failure, job_kind, payload_args, stale_at,
                             run_limit, payload_meta, payload_state, payload_blob, job_tenant, job_ref, job_source, trail, order_key, unique_name, out_no)
  select c.died_at, ids[c.ord], c.created_at, p_queue.queue_id, c.base,
         200 + coalesce(pg_column_size(c.args), 0) + coalesce(pg_column_size(c.meta), 0) + coalesce(octet_length(c.state), 0) + coalesce(octet_length(c.blob), 0)
             + coalesce(pg_column_size(c.past), 0),
         (date_part('epoch', c.died_at)::bigint / 86400) % 32, c.attempt, c.lost, c.max_attempts, c.cause, c.error, c.kind, c.args, c.stale_at, c."timeout", c.meta, c.state,
         c.blob, c.tenant, c.ref, c.came_by, c.past, c.ordering_key, c.unique_key, case when c.largest >= 512 and not c.away then millrace.offload_letter_no(c.base) end
    from come c
   where c.why = 'd';
  perform millrace.parts_keep(p_now, ids[u.ord], u.state, u.blob)
     from unnest(p_state, p_blob) with ordinality u(state, blob, ord)
    where not v_old[u.ord]
      and (millrace.is_object(u.state) or millrace.is_object(u.blob));
  merged := (select count(*) from unnest(v_old) o where o);
  perform millrace.wake(p_queue.queue_id, p_now);
end $$;

-- A trail with where the job came from. The last error stays the last one's.
create or replace function millrace.trail_moved(p_now timestamptz, p_origin text, p_id bigint, p_attempt int, p_source text, p_trail jsonb)
returns jsonb
language sql
immutable
as $$
  select case when jsonb_array_length(p_trail) >= 20 then p_trail - 0 else coalesce(p_trail, '[]') end
         || jsonb_strip_nulls(jsonb_build_object('attempt', p_attempt, 'outcome', 'moved', 'at', p_now, 'from', p_origin, 'id', p_id, 'source', coalesce(p_source, 'sql'),
                                                 'error', p_trail -> -1 ->> 'error'))
$$;

-- Jobs of a queue that are on their way come back to it, with their ids. Only where the other database is lost: what has arrived there is there, too. The numbers of
-- their batches are not used again, and what comes later has another origin: so the other database never takes a batch for one that was given back.
create or replace function millrace.move_give_back_at(p_now timestamptz, p_queue text)
returns bigint
language plpgsql
as $$
declare
  v_queue millrace.queue;
  v_move  millrace.move;
  v_got   record;
  v_last  millrace.departure;
  v_n     bigint := 0;
begin
  perform millrace.at_home();
  perform millrace.check_isolation('move_give_back');
  v_queue := millrace.queue_known(p_queue);
  for v_move in
    select m.*
      from millrace.move m
     where m.queue_id = v_queue.queue_id
       and not m.copy
     order by m.move_id
       for update
  loop
    select array_agg(m.facts order by m.batch_no, m.ord) as jobs, array_agg(m.payload_args order by m.batch_no, m.ord) as args,
           array_agg(m.payload_meta order by m.batch_no, m.ord) as meta, array_agg(m.payload_state order by m.batch_no, m.ord) as state,
           array_agg(m.payload_blob order by m.batch_no, m.ord) as blob, max(m.batch_no) as top
      into v_got
      from millrace.moving m
     where m.move_id = v_move.move_id;
    continue when v_got.jobs is null;
    perform millrace.move_put(p_now, v_queue, v_got.jobs, v_got.args, v_got.meta, v_got.state, v_got.blob, null);
    delete from millrace.moving m
     where m.move_id = v_move.move_id;
    v_last := millrace.departure_newest(v_move.move_id);
    insert into millrace.departure (move_id, batch_no, departed_at, total, merged_total)
    values (v_move.move_id, v_got.top, p_now, v_last.total, v_last.merged_total);
    delete from millrace.departure d
     where d.move_id = v_move.move_id
       and d.batch_no < v_got.top;
    update millrace.move m
       set origin_name = format('%s.%s.%s', millrace.place(), m.move_id, v_got.top)
     where m.move_id = v_move.move_id;
    v_n := v_n + cardinality(v_got.jobs);
  end loop;
  return v_n;
end $$;
