-- SPDX-License-Identifier: PostgreSQL
-- Jobs that wait for others. Who makes a job wait writes down for whom; upkeep looks at those (see depends_look).

-- depend with the time as an argument. One at a time, so that no two of them close a cycle between them.
create or replace function millrace.depend_at(p_now timestamptz, p_id bigint, p_needs bigint[])
returns void
language plpgsql
as $$
declare
  v_job record;
begin
  perform millrace.at_home();
  perform millrace.check_isolation('depend');
  if p_needs is null then
    perform millrace.refuse('needs must not be null', 'Pass an array of ids; an empty one is fine.');
  end if;
  perform pg_advisory_xact_lock(1297219592, 3);
  perform millrace.check_cycle(p_id, p_needs);
  v_job := millrace.job_take_out(p_now, p_id, 'Only a job that waits can be made to wait for others.');
  if v_job.why = 'p' then
    perform millrace.refuse_status(p_id, 'paused', 'Resume the job first.');
  end if;
  if millrace.depend_note(p_now, '', p_id, p_needs, null) or v_job.why = 'w' then
    perform millrace.job_set_aside(p_now, v_job.job, 'w', case when v_job.why = 'w' then v_job.resume_at else v_job.due_at end);
  elsif v_job.due_at is not null then
    perform millrace.job_delay(p_now, v_job.job, v_job.due_at, v_job.why);
  else
    perform millrace.job_go_on(p_now, v_job.job);
  end if;
end $$;

-- Refuses needs that would close a cycle, and names it (22023): of a long one the first job and the last twenty.
create or replace function millrace.check_cycle(p_id bigint, p_needs bigint[])
returns void
language plpgsql
as $$
declare
  c_named   constant int := 20;      -- the lock that makes others wait is held meanwhile
  v_reached bigint[];
  v_path    bigint[] := array[p_id];
begin
  with recursive reached(id) as (
    select n
      from unnest(p_needs) n
     union
    select d.needs_id
      from reached r
      join millrace.dependency d on d.job_id = r.id)
  select array_agg(r.id)
    into v_reached
    from reached r;
  if (p_id = any (v_reached)) is not true then
    return;
  end if;
  -- Back from the end: who of those that were reached needs the first of the path.
  while v_path[1] <> all (p_needs) and cardinality(v_path) < c_named loop
    v_path := (select d.job_id
                 from millrace.dependency d
                where d.needs_id = v_path[1]
                  and d.job_id = any (v_reached)
                limit 1) || v_path;
  end loop;
  perform millrace.refuse(format('dependencies must not form a cycle: %s needs %s%s', p_id, case when v_path[1] <> all (p_needs) then '... needs ' end,
                                 array_to_string(v_path, ' needs ')),
    'No job of it could ever run. Leave one of these dependencies out.');
end $$;

-- Writes down whom a job waits for. Returns false where it needs not wait: all of them have completed. Those of p_new are about to be enqueued.
create or replace function millrace.depend_note(p_now timestamptz, p_where text, p_id bigint, p_needs bigint[], p_new bigint[])
returns boolean
language plpgsql
as $$
declare
  c_most  constant int := 1000;
  v_need  bigint;
  v_state text;
  v_open  bigint[] := '{}';
begin
  if cardinality(p_needs) > c_most or array_ndims(p_needs) > 1 or array_position(p_needs, null) is not null then
    perform millrace.refuse(format('%sa job may depend on %s others, and none of them null', p_where, c_most),
      'Pass a plain array of ids; for more than that use a batch and its on_complete.');
  end if;
  for v_need in select distinct n from unnest(p_needs) n order by n loop
    v_state := case when v_need = any (p_new) then 'new' else millrace.job_state(p_now, v_need) end;
    if v_state is null then
      perform millrace.refuse_unknown(format('%sthere is no job %s to depend on', p_where, v_need),
        'Check the id; finished jobs are forgotten after their queue''s retention.');
    elsif v_state <> 'completed' then
      v_open := v_open || v_need;
    end if;
  end loop;
  if v_open = '{}' then
    return false;
  end if;
  -- The hint is taken back by depends_forget, which needs that no transaction is about to write a row: see mark_make.
  perform pg_advisory_xact_lock_shared(1297219592, 5);
  perform setval('millrace.depend_hint', 1), setval('millrace.depend_seen', millrace.epoch_ms(p_now)), setval('millrace.depend_low', least(millrace.hint('millrace.depend_low'), v_open[1] - 1));
  insert into millrace.dependency (job_id, needs_id)
  select p_id, n
    from unnest(v_open) n
      on conflict on constraint dependency_pk do nothing;
  return true;
end $$;

-- The same for the jobs of enqueue_jobs. A need below zero is a place: -1 is the first job of the call, and comes before the job that needs it.
create or replace function millrace.depend_note_many(p_now timestamptz, p_jobs jsonb, p_ids bigint[], p_old boolean[])
returns boolean[]
language plpgsql
as $$
declare
  v_one   record;
  v_bad   bigint;
  v_waits boolean[];
begin
  for v_one in
    select r.ord::int as ord, r.depends_on
      from (select row_number() over () as ord, r.depends_on
              from jsonb_to_recordset(p_jobs) as r(depends_on bigint[])) r
     where cardinality(r.depends_on) > 0
       and p_old[r.ord] is not true
  loop
    v_bad := (select n from unnest(v_one.depends_on) n where n <= -v_one.ord limit 1);
    if v_bad is not null then
      perform millrace.refuse(format('job %s: depends_on %s is not a job before it', v_one.ord, v_bad),
        'A number below zero is a place in the same array: -1 is the first job. Put jobs behind those they depend on.');
    end if;
    v_waits[v_one.ord] := millrace.depend_note(p_now, format('job %s: ', v_one.ord), p_ids[v_one.ord],
                                               case when array_ndims(v_one.depends_on) > 1 then v_one.depends_on
                                                    else array(select case when n < 0 then p_ids[-n] else n end from unnest(v_one.depends_on) n) end,
                                               p_ids[1 : v_one.ord - 1]);
  end loop;
  return v_waits;
end $$;

-- The status of a job, wherever it is; null where it is nowhere.
create or replace function millrace.job_state(p_now timestamptz, p_id bigint)
returns text
language plpgsql
as $$
declare
  v_job record;
  v_end text;
begin
  -- A job may move between the looks: from delayed to the log and back.
  for i in 1..3 loop
    v_job := millrace.job_newest(p_id);
    if v_job.status = 'available' and (v_job.job).stale_at <= p_now then
      return 'expired';
    elsif v_job.status is not null then
      return v_job.status;
    elsif exists (select from millrace.delayed d where d.job_id = p_id) then
      return 'scheduled';
    end if;
    v_end := millrace.job_ended(p_id);
    if v_end is not null then
      return v_end;
    end if;
  end loop;
  return null;
end $$;
