-- SPDX-License-Identifier: PostgreSQL
-- Looks at the jobs that others wait for, in turn, until p_limit jobs were looked at or done something about. Whoever waits for one that has completed, and
-- for no other, goes on; whoever waits for one that ended in another way is cancelled, and those that wait for it with the next look. Returns how many
-- jobs were let go on or cancelled. One at a time; what is decided is decided by the job's row in delayed: who deletes it has it.
-- A round begins at the first job that was waited for in the round before, so that dead rows are not walked while a snapshot is held; once a minute
-- at the beginning, for what was committed late.
create or replace function millrace.depends_look(p_now timestamptz, p_limit int)
returns bigint
language plpgsql
as $$
declare
  v_need  bigint;
  v_place bigint;
  v_used  int := 0;
  v_n     bigint := 0;
  v_one   record;
begin
  if millrace.hint('millrace.depend_hint') = 0 or not pg_try_advisory_xact_lock(1297219592, 2) then
    return 0;
  end if;
  v_place := millrace.hint('millrace.depend_place');
  while v_used < p_limit loop
    v_need := (select d.needs_id from millrace.dependency d where d.needs_id > v_place order by d.needs_id limit 1);
    exit when v_need is null;
    v_place := v_need;
    v_one := millrace.depend_settle(p_now, v_need, p_limit - v_used);
    v_used := v_used + 1 + v_one.seen;
    v_n := v_n + v_one.done;
  end loop;
  if v_need is null then
    v_place := millrace.depend_first(p_now);
  end if;
  perform setval('millrace.depend_place', v_place);
  if v_used > 0 then
    perform setval('millrace.depend_seen', millrace.epoch_ms(p_now));
  end if;
  return v_n;
end $$;

-- Where the next round begins.
create or replace function millrace.depend_first(p_now timestamptz)
returns bigint
language plpgsql
as $$
declare
  v_sweep boolean := millrace.due('millrace.depend_sweep', p_now, 60000);
  v_low   bigint := case when v_sweep then 0 else millrace.hint('millrace.depend_low') end;
begin
  if v_sweep then
    perform setval('millrace.depend_sweep', millrace.epoch_ms(p_now));
  end if;
  v_low := coalesce((select d.needs_id - 1 from millrace.dependency d where d.needs_id > v_low order by d.needs_id limit 1), v_low);
  perform setval('millrace.depend_low', v_low);
  return v_low;
end $$;

-- What becomes of those that wait for one job, p_limit of them at most.
create or replace function millrace.depend_settle(p_now timestamptz, p_need bigint, p_limit int, out seen int, out done int)
language plpgsql
as $$
declare
  v_state text := coalesce(millrace.job_state(p_now, p_need), 'gone');
  v_id    bigint;
begin
  seen := 0;
  done := 0;
  if v_state in ('scheduled', 'available', 'running') then
    return;
  end if;
  for v_id in
    select d.job_id
      from millrace.dependency d
     where d.needs_id = p_need
     order by d.job_id
     limit p_limit
  loop
    seen := seen + 1;
    done := done + millrace.depend_end(p_now, v_id, p_need, v_state);
  end loop;
end $$;

-- One job waits for another, which has ended. Returns 1 when it goes on or is cancelled. A job that somebody is at is left for the next look. One that
-- cannot be read must not hold the others back: to the dead letters.
create or replace function millrace.depend_end(p_now timestamptz, p_id bigint, p_need bigint, p_state text)
returns int
language plpgsql
as $$
declare
  v_slot  int2;
  v_later record;
begin
  select d.slot
    into v_slot
    from millrace.delayed d
   where d.job_id = p_id
     and d.why = 'w'
     for update skip locked;
  if not found then
    delete from millrace.dependency d
     where d.job_id = p_id
       and not exists (select from millrace.delayed w where w.job_id = p_id and w.why = 'w');
    return 0;
  end if;
  if p_state <> 'completed' then
    delete from millrace.dependency d where d.job_id = p_id;
    perform millrace.cancel_at(p_now, p_id, format(case p_state when 'gone' then 'job %s, which it needed, is not there any more'
                                                                else 'job %s, which it needed, ended as %s' end, p_need, p_state));
    return 1;
  end if;
  delete from millrace.dependency d
   where d.job_id = p_id
     and d.needs_id = p_need;
  if exists (select from millrace.dependency d where d.job_id = p_id) then
    return 0;
  end if;
  v_later := millrace.job_recall(p_id);
  if v_later.resume_at > p_now then
    perform millrace.job_delay(p_now, v_later.job, v_later.resume_at, 's');
  else
    perform millrace.job_go_on(p_now, v_later.job);
  end if;
  return 1;
exception
  when data_corrupted or internal_error or data_exception then
    delete from millrace.dependency d where d.job_id = p_id;
    perform millrace.job_bury_damaged(p_now, v_slot, p_id, null);
    return 1;
end $$;

-- Takes the hint back when nobody waits for another, and nobody did a moment ago: who went on or was cancelled in this transaction waits again if that is
-- rolled back, and the hint is not.
create or replace function millrace.depends_forget(p_now timestamptz)
returns bigint
language plpgsql
as $$
begin
  if millrace.hint('millrace.depend_hint') > 0 and millrace.due('millrace.depend_seen', p_now, 60000)
     and not exists (select from millrace.dependency) and pg_try_advisory_xact_lock(1297219592, 5) then
    if not exists (select from millrace.dependency) then      -- who had the lock may have made one
      perform setval('millrace.depend_hint', 0);
    end if;
  end if;
  return 0;
end $$;

-- What job() tells of a job's batch and of those it waits for, or that wait for it.
create or replace function millrace.job_relations(p_id bigint)
returns jsonb
language plpgsql
as $$
begin
  return jsonb_strip_nulls(jsonb_build_object(
           'batch', coalesce((select j.batch_id from millrace.job_rows(p_id) j order by j.pos desc limit 1),
                             (select d.batch_id from millrace.delayed d where d.job_id = p_id limit 1)),
           'needs', (select jsonb_agg(d.needs_id order by d.needs_id) from millrace.dependency d where d.job_id = p_id),
           'needed_by', (select jsonb_agg(d.job_id order by d.job_id)
                           from (select d.job_id
                                   from millrace.dependency d
                                  where d.needs_id = p_id
                                  order by d.job_id
                                  limit 1000) d)));
end $$;
