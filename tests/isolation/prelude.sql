-- SPDX-License-Identifier: PostgreSQL
-- What the specs share: tests/run puts it into the database that each of them gets a copy of.
-- Times are seconds after the first instant of 2030. Results show counts and booleans only, so that they are the same every time;
-- leases go through the table note, by the name of their worker.

create table note (who text, lease text);
create table carried (way text, place text, id bigint, part text, key text, body bytea);

-- Permutations of a spec share a database: each begins with empty logs, in 2030.
-- A leaf that nothing was put into is left as it is: there are hundreds, and to truncate all of them takes a second.
create procedure fresh() language plpgsql as $$
declare
  v_tables constant regclass[] :=
    '{note, millrace.job, millrace.claim, millrace.result, millrace.tally, millrace.delayed, millrace.dead, millrace.archive,
      millrace.pulse, millrace.lane, millrace.queue, millrace.segment, millrace.mark, millrace.schedule, millrace.unique_key,
      millrace.started, millrace.report, millrace.batch, millrace.batch_note, millrace.batch_total, millrace.dependency, millrace.turn,
      millrace.turn_doubt, millrace.line_list, millrace.fair_round, millrace.once_key, millrace.upkeep_round, millrace.cache_0,
      millrace.cache_1, millrace.cache_pass, millrace.spent_hour, millrace.spent_day, millrace.spent_month, millrace.lock_held,
      millrace.bridge, millrace.bridge_span, millrace.blob_object, millrace.blob_doomed, carried,
      millrace.move, millrace.departure, millrace.moving, millrace.moved, millrace.arrival, millrace.shadow_cursor, millrace.mirror,
      millrace.mirror_total, millrace.mirror_mismatch}';
  v_used text := (select string_agg(u.leaf::text, ', ')
                    from (select coalesce(i.inhrelid, t)::regclass as leaf
                            from unnest(v_tables) t
                            left join pg_inherits i on i.inhparent = t) u
                   where pg_relation_size(u.leaf) > 0);
begin
  if v_used is not null then
    execute 'truncate ' || v_used;
  end if;
  insert into millrace.segment (seg, closed_xid, closed_at, closed_pos, parked, archived, truncated)
  values (0, '3', '2030-01-01 00:00:00+00', 0, true, true, true);
  perform setval('millrace.seg_seq', 1), setval('millrace.promote_hint', 0), setval('millrace.rescue_hint', 0),
         setval('millrace.promote_sweep', 0), setval('millrace.rescue_sweep', 0), setval('millrace.upkeep_clock', 0),
         setval('millrace.pulse_clock', 0), setval('millrace.clean_clock', 0), setval('millrace.schedule_hint', 0),
         setval('millrace.schedule_sweep', 0), setval('millrace.mark_hint', 0),
         setval('millrace.batch_hint', 0), setval('millrace.depend_hint', 0), setval('millrace.depend_low', 0), setval('millrace.depend_place', 0),
         setval('millrace.unique_hint', 0), setval('millrace.unique_sweep', 0),
         setval('millrace.cache_turn', 0), setval('millrace.cache_clock', 0), setval('millrace.cache_turned', 0);
end $$;

create function at(seconds numeric) returns timestamptz language sql as $$
  select '2030-01-01 00:00:00+00'::timestamptz + make_interval(secs => seconds)
$$;

-- A queue: the settings as pairs, because a spec cannot hold a closing brace.
create procedure queue(p_name text, variadic p_settings text[] = '{}') language sql as $$
  select millrace.set_queue(p_name, jsonb_object(p_settings))
$$;

create function put(p_at numeric, p_queue text, p_n int, p_due numeric = null) returns bigint language sql as $$
  select count(*)
    from millrace.enqueue_many_at(at(p_at), 'k', array_fill('{}'::jsonb, array[p_n]), p_queue, 50, at(p_due))
$$;

create function depth(p_at numeric, p_queue text) returns bigint language sql as $$
  select sum(millrace.lane_depth(at(p_at), l))::bigint
    from millrace.queue q
   cross join lateral unnest(millrace.lanes_of(q, 0)) l
   where q.queue_name = p_queue
$$;

-- The newest row of the depth ledger, of all lanes, and how many rows there are.
create function ledger(out counts bigint, out counted bigint, out at_second numeric) language sql as $$
  select count(*), (array_agg(l.counted order by l.no desc))[1], extract(epoch from max(l.counted_at) - at(0))::numeric(9, 3)
    from millrace.tally l
$$;

-- A schedule that fires each minute.
create function minutely(p_at numeric, p_queue text) returns boolean language sql as $$
  select millrace.schedule_at(at(p_at), 'minutely', '* * * * *', 'k', '{}', p_queue, 'UTC', 'last', true, 50) is not null
$$;

-- A job with a unique key; standing() tells whether it is a new one.
create function once(p_at numeric, p_queue text, p_key text) returns boolean language sql as $$
  select millrace.enqueue_at(at(p_at), 'k', '{}', p_queue, 50, null, null, p_key, null, null, null, null, null, null, null, null, null, null)
         is not null
$$;

-- Several; tells how many different jobs there are for them.
create function once_many(p_at numeric, p_queue text, variadic p_keys text[]) returns bigint language sql as $$
  select count(distinct i)
    from millrace.enqueue_jobs_at(at(p_at), (select jsonb_agg(jsonb_build_object('kind', 'k', 'queue', p_queue, 'unique_key', k)) from unnest(p_keys) k)) i
$$;

-- The first job of a queue.
create function first_of(p_queue text) returns bigint language sql as $$
  select min(j.id) from millrace.jobs j where j.queue = p_queue
$$;

-- A batch, whose callbacks go to the queue "called"; members of it; its seal. What is refused becomes a result: the message has the batch's number.
create function batch_new(p_at numeric) returns boolean language sql as $$
  select millrace.batch_begin_at(at(p_at), '{"kind": "done", "queue": "called"}', '{"kind": "died", "queue": "called"}', null, null) > 0
$$;

create function batch_put(p_at numeric, p_queue text, p_n int) returns text language plpgsql as $$
begin
  return (select count(*)
            from millrace.batch_add_at(at(p_at), (select max(b.batch_id) from millrace.batch b),
                                       (select jsonb_agg(jsonb_build_object('kind', 'k', 'queue', p_queue)) from generate_series(1, p_n))));
exception
  when invalid_parameter_value then
    return regexp_replace(sqlerrm, '[0-9]+', 'N');
end $$;

create function batch_close(p_at numeric) returns boolean language sql as $$
  select millrace.batch_seal_at(at(p_at), max(b.batch_id)) is not null from millrace.batch b
$$;

create function batch_now(out status text, out jobs int, out completed int, out dead int, out callbacks bigint) language sql as $$
  select f ->> 'status', (f ->> 'jobs')::int, (f ->> 'completed')::int, (f ->> 'dead')::int,
         (select count(*) from millrace.jobs j where j.queue = 'called')
    from millrace.batch_story((select max(b.batch_id) from millrace.batch b)) f
$$;

-- A job that waits for the first of the queue, the first made to wait for the last, and how many wait.
create function put_behind(p_at numeric, p_queue text) returns boolean language sql as $$
  select millrace.enqueue_at(at(p_at), 'k', '{}', p_queue, 50, null, null, null, null, null, null, null, null, null, null, null, null, null,
                             p_depends_on => array[first_of(p_queue)]) > 0
$$;

create function depend_on_next(p_at numeric, p_queue text, p_nth int) returns text language plpgsql as $$
declare
  v_ids bigint[] := array(select j.id from millrace.jobs j where j.queue = p_queue order by j.id);
begin
  perform millrace.depend_at(at(p_at), v_ids[p_nth], v_ids[3 - p_nth : 3 - p_nth]);
  return 'waits';
exception
  when invalid_parameter_value then
    return regexp_replace(sqlerrm, '[0-9]+', 'N', 'g');
end $$;

create function statuses(p_queue text) returns text language sql as $$
  select string_agg(j.status, ', ' order by j.id) from millrace.jobs j where j.queue = p_queue
$$;

-- Jobs of an ordering key.
create function line(p_at numeric, p_queue text, p_key text, p_n int, p_priority int = 50) returns bigint language sql as $$
  select count(millrace.enqueue_at(at(p_at), 'k', '{}', p_queue, p_priority, null, null, null, p_key, null, null, null, null, null, null, null, null, null))
    from generate_series(1, p_n)
$$;

-- Jobs of a tenant.
create function of_tenant(p_at numeric, p_queue text, p_tenant text, p_n int) returns bigint language sql as $$
  select count(millrace.enqueue_at(at(p_at), 'k', '{}', p_queue, 50, null, null, null, null, p_tenant, null, null, null, null, null, null, null, null))
    from generate_series(1, p_n)
$$;

-- The places of the jobs that a worker got among all that were enqueued: 1 for the first.
create function places(p_who text) returns text language sql as $$
  select string_agg(j.place::text, ' ' order by j.place)
    from (select j.id, row_number() over (order by j.id) as place from millrace.jobs j) j
    join (select i.id
            from note n
            join millrace.claim k on k.token::text = split_part(n.lease, '.', 4)
           cross join lateral unnest(coalesce(k.job_ids, k.positions)) with ordinality i(id, ord)
           where n.who = p_who
             and substr(k.outcome, i.ord::int, 1) = 'o') h on h.id = j.id
$$;

-- A job of nine million bytes: one fits into a claim, two do not.
create function large(p_at numeric, p_queue text) returns boolean language sql as $$
  select millrace.enqueue_at(at(p_at), 'large', '{}', p_queue, 50, null, null, null, null, null, null, null, null, null, null, null,
                             decode(repeat('00', 9000000), 'hex'), null) > 0
$$;

-- Claims, notes the lease under the worker's name, tells how many jobs it got.
create function take(p_who text, p_at numeric, p_queue text, p_max int) returns bigint language plpgsql as $$
declare
  v_lease text;
  v_n     bigint;
begin
  select min(c.lease), count(*)
    into v_lease, v_n
    from millrace.claim_at(at(p_at), p_queue, p_who, p_max, null, true) c;
  insert into note
  select p_who, v_lease
   where v_lease is not null;
  return v_n;
end $$;

-- Calls complete, release or heartbeat with a worker's newest lease. MR001 becomes a result: its message holds the lease.
create function finish(p_who text, p_at numeric, p_verb text) returns text language plpgsql as $$
declare
  v_lease text := (select lease from note where who = p_who order by ctid desc limit 1);
begin
  case p_verb
    when 'complete' then return millrace.complete_at(at(p_at), v_lease, null, null);
    when 'release' then return millrace.release_at(at(p_at), v_lease, null);
    when 'heartbeat' then return (millrace.heartbeat_at(at(p_at), v_lease, null)).lease_until > at(p_at);
  end case;
exception
  when sqlstate 'MR001' then
    return 'MR001';
end $$;

-- Reports progress of the first job of a worker's newest lease.
create function report_one(p_who text, p_at numeric, p_percent int) returns text language plpgsql as $$
declare
  v_lease text := (select lease from note where who = p_who order by ctid desc limit 1);
  v_id    bigint := (select (coalesce(k.job_ids, k.positions))[1] from millrace.claim k where k.token::text = split_part(v_lease, '.', 4));
begin
  perform millrace.progress_at(at(p_at), v_lease, v_id, p_percent, null);
  return 'reported';
exception
  when sqlstate 'MR001' then
    return 'MR001';
end $$;

-- What is done from outside to the first job of a queue.
create function cancel_one(p_at numeric, p_queue text) returns text language sql as $$
  select millrace.cancel_at(at(p_at), first_of(p_queue), 'no need')
$$;

create function pause_one(p_at numeric, p_queue text) returns boolean language sql as $$
  select millrace.pause_job_at(at(p_at), first_of(p_queue)) is not null
$$;

create function resume_one(p_at numeric, p_queue text) returns boolean language sql as $$
  select millrace.resume_job_at(at(p_at), first_of(p_queue)) is not null
$$;

create function status_one(p_queue text) returns text language sql as $$
  select concat_ws(', ', s ->> 'status', s ->> 'cancel_requested', s ->> 'reason') from millrace.job_story(first_of(p_queue)) s
$$;

-- How many jobs a heartbeat with a worker's newest lease says were cancelled.
create function cancelled_now(p_who text, p_at numeric) returns int language sql as $$
  select cardinality((millrace.heartbeat_at(at(p_at), (select lease from note where who = p_who order by ctid desc limit 1), null)).cancelled)
$$;

-- Completes a worker's newest lease, or the n-th job of it. MR001 stays an error and breaks the transaction, but does not name the lease.
create function complete_or_raise(p_who text, p_at numeric, p_nth int = null) returns int language plpgsql as $$
declare
  v_lease text := (select lease from note where who = p_who order by ctid desc limit 1);
  v_ids   bigint[] := (select coalesce(k.job_ids, k.positions)
                         from millrace.claim k
                        where k.token::text = split_part(v_lease, '.', 4));
begin
  return millrace.complete_at(at(p_at), v_lease, case when p_nth is not null then v_ids[p_nth:p_nth] end, null);
exception
  when sqlstate 'MR001' then
    raise exception 'the lease is lost' using errcode = 'MR001';
end $$;

-- Fails the first job of a worker's newest lease, for good.
create function fail_one(p_who text, p_at numeric) returns text language sql as $$
  select millrace.fail_at(at(p_at), n.lease, (select min(j.id) from millrace.jobs j where j.status = 'running'), 'no', null, false, null)
    from (select lease from note where who = p_who order by ctid desc limit 1) n
$$;

-- Fails the first job that runs, to be retried a second later.
create function fail_later(p_who text, p_at numeric) returns text language sql as $$
  select millrace.fail_at(at(p_at), n.lease, (select min(j.id) from millrace.jobs j where j.status = 'running'), 'no', '1 second', true, null)
    from (select lease from note where who = p_who order by ctid desc limit 1) n
$$;

-- What is done from outside to the n-th job.
create function cancel_nth(p_at numeric, p_n int) returns text language sql as $$
  select millrace.cancel_at(at(p_at), (select j.id from millrace.jobs j order by j.id offset p_n - 1 limit 1), null)
$$;

-- Runs maintain and tells what one duty did.
create function upkeep(p_at numeric, p_duty text) returns bigint language sql as $$
  select done
    from millrace.maintain_at(at(p_at))
   where duty = p_duty
$$;

create function standing(p_at numeric, p_queue text, out available bigint, out running bigint, out delayed bigint, out dead bigint)
language sql as $$
  select s.available, s.running, s.scheduled + s.retrying, s.dead
    from millrace.stats_at(at(p_at), p_queue) s
$$;

-- Runs maintain until a segment has been truncated, from p_at on a second later each time. Transactions of other databases of the
-- cluster, which run beside the test, delay that a little; after ten seconds it will not come any more. Where it is not to come:
-- p_rounds are as many as are tried.
create function retired(p_seg int, p_at numeric, p_rounds int = null) returns boolean language plpgsql as $$
declare
  v_deadline timestamptz := clock_timestamp() + interval '10 seconds';
begin
  while coalesce(p_rounds > 0, clock_timestamp() < v_deadline) loop
    perform millrace.maintain_at(at(p_at));
    if (select g.truncated from millrace.segment g where g.seg = p_seg) then
      return true;
    end if;
    p_at := p_at + 1;
    p_rounds := p_rounds - 1;
    perform pg_sleep(0.02);
  end loop;
  return false;
end $$;

-- Enqueues n jobs once for a key: tells how many ids there are, and whether it was the first call. A conflict becomes a result.
create function once_again(p_at numeric, p_key text, p_queue text, p_n int) returns text language plpgsql as $$
declare
  v_said jsonb;
begin
  v_said := millrace.enqueue_once_at(at(p_at), p_key, (select jsonb_agg(jsonb_build_object('kind', 'k', 'queue', p_queue)) from generate_series(1, p_n)));
  return jsonb_array_length(v_said -> 'ids') || case when (v_said ->> 'again')::boolean then ' again' else ' new' end;
exception
  when sqlstate 'MR005' then
    return 'MR005';
end $$;

-- The toolbox. What rate_limit says, without its times.
create function spend(p_at numeric, p_key text, p_max int, p_cost int = 1) returns text language sql as $$
  select case when r.allowed then 'allowed' else 'refused' end || ', ' || r.remaining || ' left' from millrace.rate_limit_at(at(p_at), p_key, p_max, '1 minute', p_cost) r
$$;

-- Takes a lock with a lease and tells its number, counted from the first of the spec: null when another has it.
create function lease_of(p_at numeric, p_name text, p_owner text, p_seconds int = 10) returns bigint language sql as $$
  select f - coalesce((select min(h.fence) from millrace.lock_held h), f) + 1 from millrace.lock_lease_at(at(p_at), p_name, p_owner, make_interval(secs => p_seconds)) f
$$;

create function cached(p_at numeric, p_key text) returns jsonb language sql as $$
  select millrace.cache_get_at(at(p_at), p_key)
$$;

-- Payloads in a blob store, which is the table carried. A job with a state of 600 bytes, due later.
create function heavy(p_at numeric, p_queue text, p_due numeric) returns boolean language sql as $$
  select millrace.enqueue_at(at(p_at), 'k', '{}', p_queue, 50, at(p_due), null, null, null, null, null, null, null, null, null, convert_to(repeat('heavy ', 100), 'UTF8'), null, null) > 0
$$;

-- What is to be carried out or back is read, and told in a call of its own: how many objects nobody needed, or how many jobs were restored.
create function carry_read(p_at numeric, p_way text) returns bigint language plpgsql as $$
declare
  v_n bigint;
begin
  delete from carried where way = p_way;
  if p_way = 'out' then
    insert into carried select 'out', t.place, t.id, t.part, t.object_name, t.body from millrace.offload_take_at(at(p_at), 0, 100, 1000000) t;
  else
    insert into carried select 'back', 'delayed', d.id, d.part, d.object_name, convert_to(repeat('heavy ', 100), 'UTF8') from millrace.offload_due_at(at(p_at), '5 seconds', 100, 1000000) d;
  end if;
  get diagnostics v_n = row_count;
  return v_n;
end $$;

create function carry_tell(p_at numeric, p_way text) returns bigint language plpgsql as $$
begin
  if p_way = 'out' then
    return (select count(*)
              from millrace.offload_done_at(at(p_at), (select jsonb_agg(jsonb_build_object('place', c.place, 'id', c.id, 'part', c.part, 'key', c.key, 'sha256', encode(sha256(c.body), 'hex')))
                                                         from carried c
                                                        where c.way = 'out')));
  end if;
  return (select r.restored
            from (select array_agg(c.id) as ids, array_agg(c.part) as parts, array_agg(c.key) as keys, array_agg(c.body) as bodies from carried c where c.way = 'back') c
           cross join lateral millrace.offload_restore_at(at(p_at), c.ids, c.parts, c.keys, c.bodies, null) r);
end $$;

create function run_one(p_at numeric, p_queue text) returns boolean language sql as $$
  select millrace.run_now_at(at(p_at), first_of(p_queue)) is not null
$$;

create function change_one(p_at numeric, p_queue text, p_due numeric) returns boolean language sql as $$
  select millrace.change_job_at(at(p_at), first_of(p_queue), jsonb_build_object('run_at', at(p_due))) is not null
$$;

create function purge_all(p_at numeric, p_queue text) returns bigint language sql as $$
  select millrace.purge_at(at(p_at), q) from millrace.queue q where q.queue_name = p_queue and q.parent_id is null
$$;

create function replay_one(p_at numeric, p_queue text) returns bigint language sql as $$
  select millrace.dead_replay(at(p_at), array[first_of(p_queue)])
$$;

-- Where a job and its payload are, and what is known of objects. One that is away is named by the ledger, and one that is not is not.
create function whereabouts(p_queue text, out status text, out payload text, out due numeric, out kept bigint, out doomed bigint) language sql as $$
  select j.status, p.payload, p.due, (select count(*) from millrace.blob_object), (select count(*) from millrace.blob_doomed)
    from (select j.status, j.id from millrace.jobs j where j.queue = p_queue order by j.id limit 1) j
   cross join lateral (select case when w.part is null then 'none' when millrace.is_away(w.part) then 'away' when w.part = convert_to(repeat('heavy ', 100), 'UTF8') then 'here' else 'other' end as payload,
                              case when isfinite(w.due_at) then extract(epoch from w.due_at - at(0))::numeric(9, 1) end as due
                         from (select d.payload_state as part, d.due_at, 1 as rank from millrace.delayed d where d.job_id = j.id
                               union all
                               select d.payload_state, null, 2 from millrace.dead d where d.job_id = j.id
                               union all
                               select l.payload_state, null, 3 from millrace.job_rows(j.id) l) w
                        order by w.rank
                        limit 1) p
$$;

-- Begins to move a queue to another of this database.
create function move_open(p_at numeric, p_queue text, p_to text) returns boolean language sql as $$
  select millrace.move_begin_at(at(p_at), p_queue, millrace.place(), p_to) is not null
$$;

-- Takes jobs of the one move there is. How many, and in which batch; or why not.
create function move_some(p_at numeric, p_max int) returns text language plpgsql as $$
begin
  return (select format('%s in batch %s', cardinality(t.jobs), t.batch) from millrace.move m cross join lateral millrace.move_take_at(at(p_at), m.move_id, p_max, false) t);
exception when lock_not_available then
  return 'later';
end $$;

-- The batch that was taken arrives. How many, and whether they had before.
create function move_there(p_at numeric, p_to text) returns text language sql as $$
  select format('%s%s', jsonb_array_length(a -> 'ids'), case when (a ->> 'again')::boolean then ' again' end)
    from millrace.move m
   cross join lateral millrace.move_take_at(at(p_at), m.move_id, 100, false) t
   cross join lateral millrace.move_arrive_at(at(p_at), t.origin, t.batch, p_to, t.jobs, t.args, t.meta, t.state, t.blob) a
$$;

create function move_ends(p_at numeric, p_batch bigint) returns bigint language sql as $$
  select millrace.move_done_at(at(p_at), m.move_id, p_batch, null) from millrace.move m
$$;

-- A job with a state that a client has written to a blob store.
create function object_put(p_at numeric, p_queue text) returns boolean language sql as $$
  select millrace.enqueue_at(at(p_at), 'k', '{}', p_queue, 50, null, null, null, null, null, null, null, null, null, null,
                             '\x894d52500d0a1a0a6f0000000000000bb8'::bytea
                             || convert_to(format('{"key":"%s/20300101/new-1","size":3000,"sha256":"%s"}', millrace.blob_home(), repeat('0', 64)), 'UTF8'),
                             null, null) > 0
$$;

-- The job of a worker's newest lease is put back as it is.
create function object_keep(p_who text, p_at numeric) returns boolean language sql as $$
  select millrace.requeue_at(at(p_at), n.lease, first_of('q'), '{}', null, null, '{}') > 0
    from (select n.lease from note n where n.who = p_who order by n.ctid desc limit 1) n
$$;

create function object_replay(p_at numeric, p_queue text) returns bigint language sql as $$
  select millrace.completed_replay(at(p_at), q, at(0), at(100), null) from millrace.queue q where q.queue_name = p_queue
$$;

create function object_now(out named bigint, out doomed bigint) language sql as $$
  select (select count(*) from millrace.blob_object), (select count(*) from millrace.blob_doomed)
$$;
