-- SPDX-License-Identifier: PostgreSQL
-- Jobs leave their queue for another database: move_take with the time as an argument, and what it is made of.
--   1. The move's row is locked: one batch after the other, whoever takes them.
--   2. A batch that was taken and has not arrived is handed out again as it was. Only when there is none are jobs taken.
--   3. A job that was taken is in `moving` and nowhere else. It is nobody's here any more: no claim meets it, no lease ends, its unique key is free.
--   4. Objects that it names are kept until its batch has arrived: who carries them reads them only then, perhaps more than once.
create or replace function millrace.move_take_at(p_now timestamptz, p_move int, p_max int, p_dead boolean, p_objects boolean = false)
returns millrace.move_batch
language plpgsql
as $$
declare
  v_move  millrace.move;
  v_queue millrace.queue;
  v_batch millrace.move_batch;
begin
  perform millrace.at_home();
  perform millrace.check_isolation('move_take');
  perform millrace.check_number('max_jobs', p_max, 1, 10000);
  v_move := millrace.move_locked(p_move);
  v_batch.origin := v_move.origin_name;
  v_batch.batch := (millrace.departure_newest(p_move)).batch_no + 1;
  if not exists (select from millrace.moving m where m.move_id = p_move and m.batch_no = v_batch.batch) then
    select q.*
      into v_queue
      from millrace.queue q
     where q.queue_id = v_move.queue_id;
    if found and v_move.copy then
      perform millrace.shadow_gather(p_now, v_move, v_queue, v_batch.batch, p_max);
    elsif found then
      perform millrace.move_gather(p_now, v_move, v_queue, v_batch.batch, p_max, coalesce(p_dead, false), coalesce(p_objects, false));
    end if;
  end if;
  if p_objects is not true and exists (select
                                         from millrace.moving m
                                        where m.move_id = p_move
                                          and m.batch_no = v_batch.batch
                                          and not m.copy
                                          and millrace.move_is_stored(m.job_id)) then
    perform millrace.refuse(format('batch %s of move %s has parts that are in the blob store', v_batch.batch, p_move),
      'It was taken by a mover that knew the store: give this one MILLRACE_BLOBS or --blobs, too.');
  end if;
  select coalesce(array_agg(m.facts order by m.ord), '{}'), coalesce(array_agg(m.payload_args order by m.ord), '{}'),
         coalesce(array_agg(m.payload_meta order by m.ord), '{}'), coalesce(array_agg(m.payload_state order by m.ord), '{}'),
         coalesce(array_agg(m.payload_blob order by m.ord), '{}')
    into v_batch.jobs, v_batch.args, v_batch.meta, v_batch.state, v_batch.blob
    from millrace.moving m
   where m.move_id = p_move
     and m.batch_no = v_batch.batch;
  return v_batch;
end $$;

-- The row of a move, locked to the end of the transaction (MR003).
create or replace function millrace.move_locked(p_move int)
returns millrace.move
language plpgsql
as $$
declare
  v_move millrace.move;
begin
  select m.*
    into v_move
    from millrace.move m
   where m.move_id = p_move
     for update;
  if not found then
    perform millrace.refuse_unknown(format('there is no move %s', coalesce(p_move::text, 'null')), 'Begin one with move_begin().');
  end if;
  return v_move;
end $$;

-- How far a move is; zeros where nothing has arrived yet.
create or replace function millrace.departure_newest(p_move int)
returns millrace.departure
language plpgsql
as $$
declare
  v_last millrace.departure;
begin
  select d.*
    into v_last
    from millrace.departure d
   where d.move_id = p_move
   order by d.batch_no desc
   limit 1;
  if not found then
    v_last := row(p_move, 0, '-infinity', 0, 0);
  end if;
  return v_last;
end $$;

-- Takes up to p_max jobs: of an ordered queue those whose turn it is and the lines behind them, then what is delayed or set aside, then the log, then dead letters.
create or replace function millrace.move_gather(p_now timestamptz, p_move millrace.move, p_queue millrace.queue, p_batch bigint, p_max int, p_dead boolean, p_objects boolean)
returns void
language plpgsql
as $$
declare
  v_n int := 0;
begin
  if p_queue.ordered then
    perform millrace.move_check_ordered(p_now, p_queue);
    v_n := millrace.move_lines(p_now, p_move.move_id, p_queue, p_batch, p_max, p_objects);
  end if;
  if v_n < p_max then
    v_n := v_n + millrace.move_delayed(p_now, p_move.move_id, p_queue, p_batch, p_max - v_n, v_n, p_objects);
  end if;
  if v_n < p_max then
    v_n := v_n + millrace.move_log(p_now, p_move, p_queue, p_batch, p_max - v_n, v_n, p_objects);
  end if;
  if v_n < p_max and p_dead then
    v_n := v_n + millrace.move_dead(p_move.move_id, p_queue, p_batch, p_max - v_n, v_n, p_objects);
  end if;
  if v_n > 0 then
    perform millrace.move_split(p_move.move_id, p_batch);
  elsif not p_objects then
    perform set_config('millrace.move_stored', millrace.move_stored(p_queue, p_dead)::text, true);
  end if;
end $$;

-- How many jobs stay because a part is in the blob store, behind a call that found nothing to take: it has looked at every job that waits, and appended to the log again those of
-- it that stay, in this transaction.
create or replace function millrace.move_stored(p_queue millrace.queue, p_dead boolean)
returns bigint
language plpgsql
as $$
declare
  v_lanes int[] := millrace.lanes_family(p_queue);
begin
  if not exists (select from millrace.blob_object) then
    return 0;
  end if;
  return (select count(*)
            from millrace.job j
           where j.xid = pg_current_xact_id()
             and j.lane = any (v_lanes)
             and millrace.move_is_stored(j.job_id))
         + (select count(*)
              from millrace.family(p_queue.queue_id) f
              join millrace.delayed d on d.lane >= f << 12 and d.lane < (f + 1) << 12
             where d.why <> 'w'
               and d.batch_id is null
               and millrace.move_is_stored(d.job_id))
         + (select count(*)
              from millrace.dead d
             where p_dead
               and d.queue_id = p_queue.queue_id
               and millrace.move_is_stored(d.job_id));
end $$;

-- The order of a key ends where one of its jobs runs here and the next one there. So nothing of an ordered queue may run while it is moved, nor begin to.
create or replace function millrace.move_check_ordered(p_now timestamptz, p_queue millrace.queue)
returns void
language plpgsql
as $$
begin
  if p_queue.paused_at is null or (millrace.lanes_running(p_now, millrace.lanes_family(p_queue), 1000000)).running > 0 then
    perform millrace.refuse(format('queue %s is ordered and %s', quote_literal(p_queue.queue_name),
                                   case when p_queue.paused_at is null then 'not paused' else 'some of its jobs still run' end),
      'Pause it and wait until no job runs, then move it: of a key no job may run here while the next one runs there.');
  end if;
end $$;

-- What the other side is told of a job, beside its payload.
create or replace function millrace.move_facts(p_id bigint, p_lane int, p_why text, p_due timestamptz, p_created timestamptz, p_ready timestamptz, p_stale timestamptz,
                                               p_timeout interval, p_attempt int, p_lost int, p_attempts int, p_kind text, p_tenant text, p_ref text, p_source text,
                                               p_order text, p_unique text, p_trail jsonb)
returns jsonb
language sql
stable
as $$
  select jsonb_strip_nulls(jsonb_build_object(
           'id', p_id, 'priority', p_lane >> 5 & 127, 'why', p_why, 'due_at', p_due, 'created_at', p_created, 'ready_at', p_ready, 'stale_at', p_stale,
           'timeout', p_timeout, 'attempt', p_attempt, 'lost', p_lost, 'max_attempts', p_attempts, 'kind', p_kind, 'tenant', p_tenant, 'ref', p_ref,
           'source', p_source, 'ordering_key', p_order, 'unique_key', p_unique,
           'unique_for', case when p_unique is not null then (select u.quiet_time
                                                                from millrace.unique_key u
                                                               where u.job_id = p_id
                                                                 and u.free_at is null
                                                               limit 1) end))
         || case when p_trail is null then '{}' else jsonb_build_object('trail', p_trail) end
$$;

-- Whether a job has to stay: it is a member of a batch, others wait for its end, or a part of its payload is in a blob store, and the mover knows none.
create or replace function millrace.move_stays(p_id bigint, p_batch bigint, p_objects boolean)
returns boolean
language plpgsql
as $$
begin
  return p_batch is not null or millrace.hint('millrace.depend_hint') > 0 and exists (select from millrace.dependency d where d.needs_id = p_id)
      or not p_objects and millrace.move_is_stored(p_id);
end $$;

create or replace function millrace.move_is_stored(p_id bigint)
returns boolean
language sql
as $$
  select exists (select from millrace.blob_object o where o.job_id = p_id)
$$;

-- Out of an ordered queue, key by key: the job whose turn it is, at once even if it was to be retried later, and those that stand in line behind it. What is left of a
-- line gets its next turn, as after every end.
create or replace function millrace.move_lines(p_now timestamptz, p_move int, p_queue millrace.queue, p_batch bigint, p_max int, p_objects boolean)
returns int
language plpgsql
as $$
declare
  v_turn record;
  v_got  record;
  v_job  millrace.job;
  v_n    int := 0;
  v_new  int;
begin
  for v_turn in
    select t.queue_id, t.order_key, t.job_id
      from millrace.turn t
     where t.queue_id = any (array(select f from millrace.family(p_queue.queue_id) f))
       and t.job_id <> 0
     order by t.queue_id, t.order_key, t.no
     limit p_max
  loop
    exit when v_n >= p_max;
    v_got := millrace.job_recall(v_turn.job_id);
    v_job := v_got.job;
    if v_job.job_id is null then
      v_job := (millrace.job_newest(v_turn.job_id)).job;
      continue when v_job.pos is null or not millrace.job_withdraw(p_now, v_job);
    end if;
    if millrace.move_stays(v_job.job_id, v_job.batch_id, p_objects) then
      perform millrace.job_append(p_now, v_job);
      continue;
    end if;
    insert into millrace.moving (move_id, batch_no, ord, job_id, lane, facts, payload_args, payload_meta, payload_state, payload_blob)
    values (p_move, p_batch, v_n + 1, v_job.job_id, v_job.lane,
            millrace.move_facts(v_job.job_id, v_job.lane, case when v_got.why = 'p' then 'p' else 'a' end, case when v_got.why = 'p' then v_got.resume_at end,
                                v_job.created_at, null, v_job.stale_at, v_job.run_limit, v_job.attempt, v_job.lost, v_job.attempts_limit, v_job.job_kind,
                                v_job.job_tenant, v_job.job_ref, v_job.job_source, v_job.order_key, v_job.unique_name, v_job.trail),
            v_job.payload_args, v_job.payload_meta, v_job.payload_state, v_job.payload_blob);
    v_n := v_n + 1;
    v_new := millrace.move_rows(p_now, p_move, p_batch, v_n,
                                array(select d.ctid
                                        from millrace.delayed d
                                       where d.slot = 56
                                         and d.lane >> 12 = v_turn.queue_id
                                         and d.order_key = v_turn.order_key
                                         and d.why = 'o'
                                         and not millrace.move_stays(d.job_id, d.batch_id, p_objects)
                                       order by d.aside_pos
                                       limit p_max - v_n
                                         for update), 56);
    v_n := v_n + v_new;
    perform millrace.unique_release(p_now, array[v_job.job_id], false);
    perform millrace.turns_pass(p_now, array[row(v_job.job_id, v_job.lane, v_job.order_key, null, null)::millrace.hook], 'p');
  end loop;
  return v_n;
end $$;

-- What is delayed, retried, paused or set aside; not what waits for other jobs. What somebody is at this moment is for the next call.
create or replace function millrace.move_delayed(p_now timestamptz, p_move int, p_queue millrace.queue, p_batch bigint, p_max int, p_ord int, p_objects boolean)
returns int
language plpgsql
as $$
declare
  v_id int;
  v_n  int := 0;
begin
  for v_id in select f from millrace.family(p_queue.queue_id) f order by 1 loop
    for v_slot in 0..56 loop
      v_n := v_n + millrace.move_rows(p_now, p_move, p_batch, p_ord + v_n,
                                      array(select d.ctid
                                              from millrace.delayed d
                                             where d.slot = v_slot
                                               and d.lane >= v_id << 12
                                               and d.lane < (v_id + 1) << 12
                                               and d.why <> 'w'
                                               and not millrace.move_stays(d.job_id, d.batch_id, p_objects)
                                             limit p_max - v_n
                                               for update skip locked), v_slot);
      if v_n >= p_max then
        return v_n;
      end if;
    end loop;
  end loop;
  return v_n;
end $$;

-- Rows of a leaf of `delayed`, locked by the caller, as jobs on their way. Ones that were set aside are available.
create or replace function millrace.move_rows(p_now timestamptz, p_move int, p_batch bigint, p_ord int, p_places tid[], p_slot int)
returns int
language plpgsql
as $$
declare
  v_n    int;
  v_keys bigint[];
begin
  if p_places = '{}' then
    return 0;
  end if;
  insert into millrace.moving (move_id, batch_no, ord, job_id, lane, facts, payload_args, payload_meta, payload_state, payload_blob)
  select p_move, p_batch, p_ord + row_number() over (order by d.aside_pos nulls first, d.due_at, d.job_id), d.job_id, d.lane,
         millrace.move_facts(d.job_id, d.lane, case when d.why in ('o', 'k', 't') then 'a' else d.why::text end,
                             case when d.why = 'p' then d.resume_at when d.why not in ('o', 'k', 't') then coalesce(d.away_due, d.due_at) end, d.created_at, null, d.stale_at, d.run_limit,
                             d.attempt, d.lost, d.attempts_limit, d.job_kind, d.job_tenant, d.job_ref, d.job_source, d.order_key, d.unique_name, d.trail),
         d.payload_args, d.payload_meta, d.payload_state, d.payload_blob
    from millrace.delayed d
   where d.slot = p_slot
     and d.ctid = any (p_places);
  with gone as (
    delete from millrace.delayed d
     where d.slot = p_slot
       and d.ctid = any (p_places)
    returning d.job_id, d.unique_name)
  select count(*), array_agg(g.job_id) filter (where g.unique_name is not null)
    into v_n, v_keys
    from gone g;
  if v_keys is not null then
    perform millrace.unique_release(p_now, v_keys, false);
  end if;
  return v_n;
end $$;

-- What waits in the log, lane by lane. A cancel that is not committed has marked a job, and nobody sees it yet; a claim would be told of it with a heartbeat, but
-- another database would not. So a move takes jobs of the log only while nobody makes marks, and holds that lock to its commit. Who makes a mark may hold a lane and wait
-- for that lock: hence the lock is only tried, and all lanes after the first one, too. What cannot be had now is for the next call.
create or replace function millrace.move_log(p_now timestamptz, p_move millrace.move, p_queue millrace.queue, p_batch bigint, p_max int, p_ord int, p_objects boolean)
returns int
language plpgsql
as $$
declare
  v_lanes int[] := millrace.lanes_ready(array(select l from unnest(millrace.lanes_family(p_queue)) l order by l >> 5 & 127, l), 64);
  v_taken millrace.taken;
  v_n     int := 0;
begin
  for i in 1 .. cardinality(v_lanes) loop
    if i = 1 then
      perform pg_advisory_xact_lock(1297219591, v_lanes[1]);
      if not pg_try_advisory_xact_lock(1297219595, 0) then
        raise exception using errcode = 'lock_not_available',
          message = format('a transaction that cancels or changes jobs is open: queue %s cannot be moved before it has ended', quote_literal(p_queue.queue_name)),
          hint = 'Nothing was changed. Try again when it has ended; pg_stat_activity shows it.';
      end if;
    elsif not pg_try_advisory_xact_lock(1297219591, v_lanes[i]) then
      continue;
    end if;
    loop
      v_taken := millrace.lane_take(p_now, v_lanes[i], p_max - v_n, 'm', 'move ' || p_move.move_id, null, false, false);
      exit when coalesce(v_taken.n, 0) = 0;
      v_n := v_n + millrace.move_ranges(p_now, p_move.move_id, p_batch, p_ord + v_n, v_taken, p_objects);
      if v_n >= p_max then
        return v_n;
      end if;
    end loop;
  end loop;
  return v_n;
end $$;

-- What lane_take took, without what is marked, and without what has to stay, which is appended to its lane again.
create or replace function millrace.move_ranges(p_now timestamptz, p_move int, p_batch bigint, p_ord int, p_taken millrace.taken, p_objects boolean)
returns int
language plpgsql
as $$
declare
  v_marked bigint[] := '{}';
  v_stay   bigint[];
  v_ids    bigint[];
  v_keys   bigint[];
  v_n      int := 0;
  v_new    int;
begin
  if millrace.marks_exist() then
    v_marked := millrace.move_marks(p_now, p_taken.lane);
  end if;
  for i in 1 .. cardinality(p_taken.seg) loop
    select coalesce(array_agg(j.pos) filter (where s.stays), '{}'), array_agg(j.job_id) filter (where s.stays),
           array_agg(j.job_id) filter (where j.unique_name is not null and not s.stays)
      into v_stay, v_ids, v_keys
      from millrace.range_jobs(p_taken.seg[i] % 16, p_taken.lane, p_taken.from_xid[i], p_taken.from_pos[i], p_taken.to_xid[i], p_taken.hi, p_taken.rows[i]) j
     cross join lateral (select millrace.move_stays(j.job_id, j.batch_id, p_objects) as stays) s
     where j.pos <> all (v_marked);
    insert into millrace.moving (move_id, batch_no, ord, job_id, lane, facts, payload_args, payload_meta, payload_state, payload_blob)
    select p_move, p_batch, p_ord + v_n + row_number() over (order by j.xid, j.pos), j.job_id, p_taken.lane,
           millrace.move_facts(j.job_id, p_taken.lane, 'a', null, j.created_at, j.ready_at, j.stale_at, j.run_limit, j.attempt,
                               (select b.lost
                                  from millrace.job b
                                 where b.slot = p_taken.seg[i] % 16
                                   and b.lane = p_taken.lane
                                   and b.xid = j.xid
                                   and b.pos = j.last_pos), j.attempts_limit, j.job_kind, j.job_tenant, j.job_ref, j.job_source, j.order_key, j.unique_name, j.trail),
           j.payload_args, j.payload_meta, j.payload_state, j.payload_blob
      from millrace.range_jobs(p_taken.seg[i] % 16, p_taken.lane, p_taken.from_xid[i], p_taken.from_pos[i], p_taken.to_xid[i], p_taken.hi, p_taken.rows[i]) j
     where j.pos <> all (v_marked)
       and j.pos <> all (v_stay);
    get diagnostics v_new = row_count;
    v_n := v_n + v_new;
    if v_keys is not null then
      perform millrace.unique_release(p_now, v_keys, false);
    end if;
    perform millrace.job_append(p_now, w.job)
       from unnest(v_ids, v_stay) u(job_id, pos)
      cross join lateral (select b as job
                            from millrace.job_rows(u.job_id) b
                           where b.pos = u.pos) w;
  end loop;
  return v_n;
end $$;

-- The positions of the claim that was made last in a lane whose jobs were cancelled or went on elsewhere: the claim says so, and the marks go.
create or replace function millrace.move_marks(p_now timestamptz, p_lane int)
returns bigint[]
language plpgsql
as $$
declare
  v_open    int := pg_sequence_last_value('millrace.seg_seq'::regclass);
  v_claim   millrace.claim;
  v_marked  record;
begin
  select k.*
    into v_claim
    from millrace.claim k
   where k.slot = v_open % 16
     and k.lane = p_lane
   order by k.no desc
   limit 1;
  select array_agg(m.pos) as positions, array_agg(array_position(v_claim.positions, m.pos)) as ordinals,
         string_agg(case m.letter when 'w' then 'w' else 'k' end, '') as letters
    into v_marked
    from millrace.mark m
   where m.lane = p_lane
     and m.pos = any (v_claim.positions);
  if v_marked.positions is null then
    return '{}';
  end if;
  update millrace.claim k
     set outcome = millrace.outcome_with(k.outcome, v_marked.ordinals, v_marked.letters)
   where k.slot = v_claim.slot
     and k.lane = v_claim.lane
     and k.no = v_claim.no;
  perform millrace.marks_end(p_now, p_lane, v_marked.positions);
  return v_marked.positions;
end $$;

-- Dead letters, oldest first.
create or replace function millrace.move_dead(p_move int, p_queue millrace.queue, p_batch bigint, p_max int, p_ord int, p_objects boolean)
returns int
language plpgsql
as $$
declare
  v_n int;
begin
  with old as (
    select d.slot, d.job_id, d.died_at
      from millrace.dead d
     where d.queue_id = p_queue.queue_id
       and (p_objects or not millrace.move_is_stored(d.job_id))
     order by d.died_at, d.job_id
     limit p_max
       for update skip locked),
  gone as (
    delete from millrace.dead d
     using old s
     where d.slot = s.slot
       and d.job_id = s.job_id
       and d.died_at = s.died_at
    returning d.*)
  insert into millrace.moving (move_id, batch_no, ord, job_id, lane, facts, payload_args, payload_meta, payload_state, payload_blob)
  select p_move, p_batch, p_ord + row_number() over (order by g.died_at, g.job_id), g.job_id, g.lane,
         millrace.move_facts(g.job_id, g.lane, 'd', null, g.created_at, null, g.stale_at, g.run_limit, g.attempt, g.lost, g.attempts_limit, g.job_kind, g.job_tenant,
                             g.job_ref, g.job_source, g.order_key, g.unique_name, g.trail)
         || jsonb_strip_nulls(jsonb_build_object('died_at', g.died_at, 'cause', g.cause, 'error', g.failure)),
         g.payload_args, g.payload_meta, g.payload_state, g.payload_blob
    from gone g;
  get diagnostics v_n = row_count;
  return v_n;
end $$;

-- How many bytes of a part travel: of one in the blob store those of the object.
create or replace function millrace.move_weight(p_part bytea)
returns bigint
language plpgsql
stable
as $$
begin
  if millrace.is_object(p_part) and jsonb_typeof(millrace.part_reference(p_part) -> 'size') = 'number' then
    return least((millrace.part_reference(p_part) ->> 'size')::numeric, 67108881)::bigint;
  end if;
  return coalesce(octet_length(p_part), 0);
end $$;

-- Jobs of more than 16 MB together are several batches: a batch is handed over in one piece. Each has at least one job.
create or replace function millrace.move_split(p_move int, p_batch bigint)
returns void
language plpgsql
as $$
declare
  c_budget constant bigint := 16777216;
begin
  if (select sum(millrace.move_weight(m.payload_state) + millrace.move_weight(m.payload_blob) + coalesce(pg_column_size(m.payload_args), 0)) <= c_budget
        from millrace.moving m
       where m.move_id = p_move
         and m.batch_no = p_batch) then
    return;
  end if;
  update millrace.moving m
     set batch_no = p_batch + s.nth - 1
    from (select s.ord, dense_rank() over (order by s.piece) as nth
            from (select w.ord, floor((sum(w.bytes) over (order by w.ord) - w.bytes) / c_budget::numeric) as piece
                    from (select m.ord, millrace.move_weight(m.payload_state) + millrace.move_weight(m.payload_blob)
                                        + coalesce(pg_column_size(m.payload_args), 0)::bigint as bytes
                            from millrace.moving m
                           where m.move_id = p_move
                             and m.batch_no = p_batch) w) s) s
   where m.move_id = p_move
     and m.batch_no = p_batch
     and m.ord = s.ord
     and s.nth > 1;
end $$;
