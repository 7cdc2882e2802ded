-- SPDX-License-Identifier: PostgreSQL
--
-- Cyclotron's words on Millrace: a view of jobs and the calls of a producer and a worker. Everything in it is a call of Millrace's functions or a look at its
-- views; no table of its own holds a job.
--
--   here                                    Millrace
--   id                                      id; the caller's own UUID is the job's ref
--   team_id                                 tenant
--   function_id, metadata                   meta: {"function_id": ..., "metadata": ...}, so that metadata can be set and cleared alone
--   parameters, blob, vm_state              args, blob, state
--   state available                         status available, or scheduled where its time has not come
--   state running, completed, paused        status of the same name
--   state failed                            status dead, cancelled or expired
--   lock_id                                 the lease. It is of all jobs that were dequeued by one call, and nobody but the caller is told it
--   janitor_touch_count                     how often the job was taken back from a worker that was gone
--   transition_count, last_transition       counted from the job's story, and so as far back as that reaches (retention)
--
-- A lock id that is wrong, or that of a worker whose jobs were taken back, is refused with MR001, a job that it does not hold with MR003; nothing is changed then.
begin;
create schema cyclotron;

-- ---- the view ----------------------------------------------------------------------------------------------------------------------------

create type cyclotron.job as (
  id bigint, ref text, team_id int, function_id uuid, queue_name text, state text, priority int, scheduled timestamptz, vm_state bytea, blob bytea,
  parameters jsonb, metadata jsonb, lock_id uuid, last_heartbeat timestamptz, janitor_touch_count bigint, transition_count bigint, last_transition timestamptz,
  created timestamptz);

-- A part as a story tells it. The first 16 KiB of a larger one; of JSON the value, not its blanks. Who needs every byte holds the job: get_vm_state.
create function cyclotron.part(face jsonb)
returns bytea
language sql
immutable
as $$
  select case face ->> 'format'
           when 'hex' then decode(face ->> 'value', 'hex')
           when 'text' then convert_to(face ->> 'value', 'UTF8')
           when 'json' then convert_to((face -> 'value')::text, 'UTF8')
         end
$$;

create function cyclotron.state_of(status text)
returns text
language sql
immutable
as $$
  select case
           when status in ('scheduled', 'waiting') then 'available'
           when status in ('dead', 'cancelled', 'expired') then 'failed'
           else status
         end
$$;

-- When the worker of a running job was last heard of: its lease ends that long after.
create function cyclotron.heartbeat_of(story jsonb)
returns timestamptz
language sql
stable
as $$
  select greatest((story ->> 'claimed_at')::timestamptz, w.lease_until - (q.settings ->> 'lease')::interval)
    from millrace.workers w
    join millrace.queues q on q.queue = w.queue
   where story ->> 'status' = 'running'
     and w.worker = story ->> 'worker'
     and w.queue = story ->> 'queue'
$$;

-- One job. Every attempt has begun and ended, unless it still runs or waits; one that was withdrawn, to be paused or changed, has not begun.
create function cyclotron.get_job(job_id bigint)
returns cyclotron.job
language sql
as $$
  select s.job_id, s.story ->> 'ref', (s.story ->> 'tenant')::int, (s.story #>> '{meta,function_id}')::uuid, s.story ->> 'queue',
         cyclotron.state_of(s.story ->> 'status'), (s.story ->> 'priority')::int,
         coalesce((s.story ->> 'run_at')::timestamptz, (s.story ->> 'created_at')::timestamptz), cyclotron.part(s.story -> 'state'), cyclotron.part(s.story -> 'blob'),
         nullif(s.story -> 'args', 'null'), s.story #> '{meta,metadata}',
         -- not the lock itself: the same for jobs that are held together
         case when s.story ->> 'status' = 'running' then md5(concat_ws(' ', s.story ->> 'worker', s.story ->> 'claimed_at'))::uuid end,
         cyclotron.heartbeat_of(s.story), a.touched, a.moved, coalesce(a.newest, (s.story ->> 'created_at')::timestamptz),
         (s.story ->> 'created_at')::timestamptz
    from (select job_id, millrace.job(job_id) as story) s
   cross join lateral (select (select count(*) from jsonb_array_elements(s.story -> 'history') h where h ->> 'outcome' = 'lost') as touched,
                              coalesce(sum(case a ->> 'outcome' when 'waiting' then 0 when 'running' then 1 when 'withdrawn' then 1 else 2 end), 0)::bigint as moved,
                              max(greatest((a ->> 'claimed_at')::timestamptz, (a ->> 'finished_at')::timestamptz)) as newest
                         from jsonb_array_elements(s.story -> 'attempts') a) a
$$;

-- Stable, so that it is a part of the query that asks. The view is made of it and not of millrace.jobs itself: that is made anew by an upgrade, which a view on it would
-- keep from doing so.
create function cyclotron.list_jobs()
returns setof cyclotron.job
language sql
stable
as $$
  select j.id, j.ref, j.tenant::int, (j.meta ->> 'function_id')::uuid, j.queue, cyclotron.state_of(j.status), j.priority, g.scheduled, g.vm_state, g.blob,
         nullif(j.args, 'null'), j.meta -> 'metadata', g.lock_id, g.last_heartbeat, g.janitor_touch_count, g.transition_count, g.last_transition, j.created_at
    from millrace.jobs j
   cross join lateral cyclotron.get_job(j.id) g
$$;

-- Look at it by queue, state or ref, and with a limit: every row that is looked at further costs a job's story. One job with get_job(); how many there are is for
-- millrace.stats().
create view cyclotron.jobs as
select id, ref, team_id, function_id, queue_name, state, priority, scheduled, vm_state, blob, parameters, metadata, lock_id, last_heartbeat, janitor_touch_count,
       transition_count, last_transition, created
  from cyclotron.list_jobs();
comment on view cyclotron.jobs is 'jobs in Cyclotron''s words';

-- ---- the producer ------------------------------------------------------------------------------------------------------------------------

create function cyclotron.meta_of(function_id uuid, metadata jsonb)
returns jsonb
language sql
immutable
as $$
  select jsonb_build_object('function_id', function_id) || case when metadata is null then '{}' else jsonb_build_object('metadata', metadata) end
$$;

-- Creates a job and returns its id. ref: the caller's own UUID; without one the job gets one.
create function cyclotron.create_job(
  team_id int,
  function_id uuid,
  queue_name text,
  priority int = 50,
  scheduled timestamptz = null,
  vm_state bytea = null,
  blob bytea = null,
  parameters jsonb = null,
  metadata jsonb = null,
  ref uuid = null)
returns bigint
language sql
as $$
  select millrace.enqueue('invocation', coalesce(parameters, '{}'), queue => queue_name, priority => priority, run_at => scheduled, tenant => team_id::text,
                          ref => coalesce(ref, gen_random_uuid())::text, meta => cyclotron.meta_of(function_id, metadata), state => vm_state, blob => blob)
$$;

-- Creates many, objects with the names of create_job, vm_state and blob in base64; `chunk` of them with one call. Each chunk is let in, diverted or refused (MR002)
-- as one; all are the caller's transaction. Returns the ids in the order of the array.
create function cyclotron.bulk_create_jobs(jobs jsonb, chunk int = 1000)
returns setof bigint
language plpgsql
as $$
declare
  v_jobs jsonb;
begin
  for v_jobs in
    select jsonb_agg(jsonb_strip_nulls(jsonb_build_object('kind', 'invocation', 'queue', j -> 'queue_name', 'priority', j -> 'priority', 'run_at', j -> 'scheduled',
                       'tenant', j ->> 'team_id', 'ref', coalesce((j ->> 'ref')::uuid, gen_random_uuid()), 'state', j -> 'vm_state', 'blob', j -> 'blob'))
                     || jsonb_build_object('args', coalesce(j -> 'parameters', '{}'), 'meta', cyclotron.meta_of((j ->> 'function_id')::uuid, j -> 'metadata')) order by ord)
      from jsonb_array_elements(jobs) with ordinality e(j, ord)
     group by (ord - 1) / greatest(chunk, 1)
     order by min(ord)
  loop
    return query
      select millrace.enqueue_jobs(v_jobs);
  end loop;
end $$;

-- Which of the caller's UUIDs are there: for a producer that was not told whether its jobs are. As far back as stories reach (retention).
create function cyclotron.known_refs(refs text[])
returns setof text
language plpgsql
as $$
declare
  v_ref   text;
  v_queue text;
begin
  for v_ref, v_queue in
    select r, q.queue
      from unnest(refs) r
     cross join millrace.queues q
  loop
    begin
      perform millrace.job_by_ref(v_queue, v_ref);
      return next v_ref;
    exception
      when sqlstate 'MR003' then
        null;
    end;
  end loop;
end $$;

-- ---- the worker --------------------------------------------------------------------------------------------------------------------------

create type cyclotron.dequeued as (
  lock_id text, id bigint, ref text, team_id int, function_id uuid, priority int, vm_state bytea, blob bytea, parameters jsonb, metadata jsonb, created timestamptz);

create function cyclotron.dequeue(queue_name text, worker text, max_jobs int, with_vm_state boolean)
returns setof cyclotron.dequeued
language sql
as $$
  select c.lease, c.id, c.ref, c.tenant::int, (c.meta ->> 'function_id')::uuid, c.priority, c.state, c.blob, nullif(c.args, 'null'), c.meta -> 'metadata', c.created_at
    from millrace.claim(queue_name, worker, max_jobs, with_state => with_vm_state) c
$$;

-- Takes up to max_jobs jobs of a queue, most urgent first, without the heavy vm_state: get_vm_state gets it where it is wanted.
create function cyclotron.dequeue_jobs(queue_name text, worker text, max_jobs int)
returns setof cyclotron.dequeued
language sql
as $$
  select * from cyclotron.dequeue(queue_name, worker, max_jobs, false)
$$;

create function cyclotron.dequeue_with_vm_state(queue_name text, worker text, max_jobs int)
returns setof cyclotron.dequeued
language sql
as $$
  select * from cyclotron.dequeue(queue_name, worker, max_jobs, true)
$$;

create function cyclotron.get_vm_state(job_id bigint, lock_id text)
returns bytea
language sql
as $$
  select millrace.fetch_state(lock_id, job_id)
$$;

create function cyclotron.heartbeat(lock_id text)
returns timestamptz
language sql
as $$
  select (millrace.heartbeat(lock_id)).lease_until
$$;

-- What a worker has set and not flushed: its notes, not the job. Lost in a crash of the server, and then so is what the worker was about to say.
create unlogged table cyclotron.collected (
  held_job   bigint not null,
  held_by    text not null,
  next_state text,
  changes    jsonb not null,
  next_vm    bytea,
  next_blob  bytea,
  cleared    text[] not null,
  primary key (held_job, held_by)
);
comment on table cyclotron.collected is 'what workers have set and not flushed';

-- Notes changes for flush_job. A part that is set is not cleared any more, and the other way round.
create function cyclotron.collect(job_id bigint, lock_id text, p_state text, p_changes jsonb, p_vm bytea, p_blob bytea, p_clear text)
returns void
language plpgsql
as $$
begin
  perform millrace.fetch_state(lock_id, job_id);      -- refuses a lock that is not good, without doing anything else
  insert into cyclotron.collected as c (held_job, held_by, next_state, changes, next_vm, next_blob, cleared)
  values (job_id, lock_id, p_state, p_changes, p_vm, p_blob, case when p_clear is null then '{}' else array[p_clear] end)
  on conflict (held_job, held_by) do update
     set next_state = coalesce(excluded.next_state, c.next_state),
         changes = c.changes - coalesce(p_clear, '') || excluded.changes,
         next_vm = case when p_clear = 'state' then null else coalesce(p_vm, c.next_vm) end,
         next_blob = case when p_clear = 'blob' then null else coalesce(p_blob, c.next_blob) end,
         cleared = array(select part
                           from unnest(c.cleared || excluded.cleared) part
                          where not (excluded.changes ? part)
                            and not (part = 'state' and p_vm is not null)
                            and not (part = 'blob' and p_blob is not null)
                          group by part);
end $$;

create function cyclotron.set_state(job_id bigint, lock_id text, state text)
returns void
language plpgsql
as $$
begin
  if state is null or state not in ('available', 'completed', 'failed', 'paused') then
    raise exception using errcode = '22023', message = format('a worker cannot set the state %s', coalesce(quote_literal(state), 'null')),
      hint = 'States to set are available, completed, failed and paused.';
  end if;
  perform cyclotron.collect(job_id, lock_id, state, '{}', null, null, null);
end $$;

create function cyclotron.set_queue(job_id bigint, lock_id text, queue_name text)
returns void
language sql
as $$
  select cyclotron.collect(job_id, lock_id, null, jsonb_build_object('queue', queue_name), null, null, null)
$$;

create function cyclotron.set_priority(job_id bigint, lock_id text, priority int)
returns void
language sql
as $$
  select cyclotron.collect(job_id, lock_id, null, jsonb_build_object('priority', priority), null, null, null)
$$;

create function cyclotron.set_scheduled_at(job_id bigint, lock_id text, scheduled timestamptz)
returns void
language sql
as $$
  select cyclotron.collect(job_id, lock_id, null, jsonb_build_object('run_at', scheduled), null, null, null)
$$;

-- The four parts: null clears one.
create function cyclotron.set_vm_state(job_id bigint, lock_id text, vm_state bytea)
returns void
language sql
as $$
  select cyclotron.collect(job_id, lock_id, null, '{}', vm_state, null, case when vm_state is null then 'state' end)
$$;

create function cyclotron.set_blob(job_id bigint, lock_id text, blob bytea)
returns void
language sql
as $$
  select cyclotron.collect(job_id, lock_id, null, '{}', null, blob, case when blob is null then 'blob' end)
$$;

create function cyclotron.set_parameters(job_id bigint, lock_id text, parameters jsonb)
returns void
language sql
as $$
  select cyclotron.collect(job_id, lock_id, null, case when parameters is null then '{}' else jsonb_build_object('args', parameters) end, null, null,
                           case when parameters is null then 'args' end)
$$;

-- Never the whole of meta: the function's id is in it, too.
create function cyclotron.set_metadata(job_id bigint, lock_id text, metadata jsonb)
returns void
language sql
as $$
  select cyclotron.collect(job_id, lock_id, null,
                           jsonb_build_object('meta', cyclotron.meta_of((millrace.job(job_id) #>> '{meta,function_id}')::uuid, metadata)), null, null, null)
$$;

-- Takes a worker's notes away and returns them.
create function cyclotron.take_collected(job_id bigint, lock_id text)
returns cyclotron.collected
language sql
as $$
  delete from cyclotron.collected c
   where c.held_job = job_id
     and c.held_by = lock_id
  returning c
$$;

-- Does what was collected, all of it or, with an error, none. A state has to be among it. What a job that ends had as its parts it keeps: only the vm_state of
-- one that failed is written, for whoever looks at the dead letter.
create function cyclotron.flush_job(job_id bigint, lock_id text)
returns void
language plpgsql
as $$
declare
  v_next cyclotron.collected;
begin
  perform millrace.fetch_state(lock_id, job_id);
  v_next := cyclotron.take_collected(job_id, lock_id);
  if v_next.next_state is null then
    raise exception using errcode = '22023', message = format('job %s was not given its next state', job_id), hint = 'Call set_state before flush_job.';
  end if;
  case v_next.next_state
    when 'completed' then
      perform millrace.complete(lock_id, array[job_id]);
    when 'failed' then
      perform millrace.fail(lock_id, job_id, 'failed by its worker', retry => false, state => v_next.next_vm);
    else
      perform millrace.requeue(lock_id, job_id, v_next.changes, v_next.next_vm, v_next.next_blob, v_next.cleared);
      if v_next.next_state = 'paused' then
        perform millrace.pause_job(job_id);
      end if;
  end case;
end $$;

-- Gives a job back as it was; what was collected is forgotten.
create function cyclotron.release(job_id bigint, lock_id text)
returns void
language plpgsql
as $$
begin
  perform millrace.release(lock_id, array[job_id]);
  perform cyclotron.take_collected(job_id, lock_id);
end $$;

-- ---- the janitor -------------------------------------------------------------------------------------------------------------------------

-- Upkeep is Millrace's. What is left here are the notes of workers that lost their jobs.
create function cyclotron.run_janitor()
returns table (duty text, done bigint)
language plpgsql
as $$
declare
  v_note record;
begin
  return query
    select m.duty, m.done
      from millrace.maintain() m;
  for v_note in
    select c.held_job, c.held_by
      from cyclotron.collected c
  loop
    begin
      perform millrace.fetch_state(v_note.held_by, v_note.held_job);
    exception
      when sqlstate 'MR001' or sqlstate 'MR003' then
        perform cyclotron.take_collected(v_note.held_job, v_note.held_by);
    end;
  end loop;
end $$;
commit;
