-- SPDX-License-Identifier: PostgreSQL
-- What is done from outside to one job, wherever it is. A job may move while it is looked for: from delayed to the log, from the log to delayed.
-- So each of these looks in both places, and again where the log says that it has gone elsewhere.

-- The newest row of the log of a job, and its standing.
create or replace function millrace.job_newest(p_id bigint, out job millrace.job, out status text, out letter text)
language plpgsql
as $$
begin
  select j.*
    into job
    from millrace.job_rows(p_id) j
   order by j.pos desc
   limit 1;
  if job.pos is not null then
    select s.status, s.letter
      into status, letter
      from millrace.job_standing(job.slot, job.lane, job.seg, job.xid, job.pos) s;
  end if;
end $$;

-- The status of a job that is neither delayed nor in the log any more; null: it is not there, or has moved meanwhile.
create or replace function millrace.job_ended(p_id bigint)
returns text
language plpgsql
as $$
begin
  return case
           when exists (select from millrace.dead d where d.job_id = p_id) then 'dead'
           when exists (select from millrace.moving m where m.job_id = p_id and not m.copy) or exists (select from millrace.moved m where m.job_id = p_id) then 'moved'
           else (select case a.outcome when 'x' then 'expired' when 'k' then 'cancelled' else 'completed' end
                   from millrace.archive a
                  where a.job_id = p_id
                  limit 1)
         end;
end $$;

-- A job of delayed as one of the log, and out of delayed. Null: it is not there. One that was set aside counts as available, and has no time. Waits
-- for whoever is at it.
create or replace function millrace.job_recall(p_id bigint, out job millrace.job, out due_at timestamptz, out why "char", out resume_at timestamptz)
language plpgsql
as $$
declare
  v_row millrace.delayed;
begin
  delete from millrace.delayed d
   where d.job_id = p_id
  returning d.*
       into v_row;
  if found then
    job.job_id := v_row.job_id;
    job.created_at := v_row.created_at;
    job.lane := v_row.lane;
    job.attempt := v_row.attempt;
    job.lost := v_row.lost;
    job.attempts_limit := v_row.attempts_limit;
    job.job_kind := v_row.job_kind;
    job.payload_args := v_row.payload_args;
    job.stale_at := v_row.stale_at;
    job.run_limit := v_row.run_limit;
    job.payload_meta := v_row.payload_meta;
    job.payload_state := v_row.payload_state;
    job.payload_blob := v_row.payload_blob;
    job.job_tenant := v_row.job_tenant;
    job.job_ref := v_row.job_ref;
    job.job_source := v_row.job_source;
    job.trail := v_row.trail;
    job.order_key := v_row.order_key;
    job.unique_name := v_row.unique_name;
    job.batch_id := v_row.batch_id;
    due_at := case when v_row.why not in ('o', 'k', 't') then v_row.due_at end;
    why := v_row.why;
    resume_at := v_row.resume_at;
  end if;
end $$;

-- Takes a job that waits in the log out of it: marks its row. False: it does not wait there. Holds the lane's lock to the end of the
-- transaction: a claim between this look and its commit would deliver a job that goes on elsewhere.
create or replace function millrace.job_withdraw(p_now timestamptz, p_job millrace.job)
returns boolean
language plpgsql
as $$
begin
  perform pg_advisory_xact_lock(1297219591, p_job.lane);
  if (select s.status from millrace.job_standing(p_job.slot, p_job.lane, p_job.seg, p_job.xid, p_job.pos) s) = 'available' then
    perform millrace.mark_make(p_now, p_job.lane, p_job.pos, p_job.job_id, 'w', null);
    return true;
  end if;
  return false;
end $$;

-- Takes a job that waits from where it is, delayed or in the log; due_at, why and resume_at are null where it was in the log. One that does not wait
-- is refused with p_hint (22023), one that is nowhere with MR003.
create or replace function millrace.job_take_out(p_now timestamptz, p_id bigint, p_hint text, out job millrace.job, out due_at timestamptz,
                                                 out why "char", out resume_at timestamptz)
language plpgsql
as $$
declare
  v_later record;
  v_job   record;
  v_end   text;
begin
  for i in 1..5 loop
    v_later := millrace.job_recall(p_id);
    if (v_later.job).job_id is not null then
      job := v_later.job;
      due_at := v_later.due_at;
      why := v_later.why;
      resume_at := v_later.resume_at;
      return;
    end if;
    v_job := millrace.job_newest(p_id);
    if v_job.status = 'available' then
      if millrace.job_withdraw(p_now, v_job.job) then
        job := v_job.job;
        return;
      end if;
    else
      v_end := coalesce(v_job.status, millrace.job_ended(p_id));
      if v_end is not null then
        perform millrace.refuse_status(p_id, v_end, p_hint);
      end if;
    end if;
  end loop;
  perform millrace.refuse_job(p_id);
end $$;

-- A job that does not wait cannot be steered (22023).
create or replace function millrace.refuse_status(p_id bigint, p_status text, p_hint text)
returns void
language plpgsql
as $$
begin
  perform millrace.refuse(format('job %s is %s', p_id, p_status), p_hint);
end $$;

-- A job that is nowhere (MR003).
create or replace function millrace.refuse_job(p_id bigint)
returns void
language plpgsql
as $$
begin
  perform millrace.refuse_unknown(format('there is no job %s', coalesce(p_id::text, 'null')),
    'Check the id; finished jobs are forgotten after their queue''s retention.');
end $$;
