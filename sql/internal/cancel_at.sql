-- SPDX-License-Identifier: PostgreSQL
-- cancel with the time as an argument. A job of delayed is appended to the log and marked there, so that its end is told where all ends are.
create or replace function millrace.cancel_at(p_now timestamptz, p_id bigint, p_reason text)
returns text
language plpgsql
as $$
declare
  v_later record;
  v_job   record;
  v_claim millrace.claim;
  v_pos   bigint;
  v_end   text;
begin
  perform millrace.at_home();
  perform millrace.check_isolation('cancel');
  perform millrace.check_text('reason', p_reason);
  for i in 1..5 loop
    v_later := millrace.job_recall(p_id);
    if (v_later.job).job_id is not null then
      v_pos := millrace.job_append(p_now, v_later.job);
      perform millrace.mark_make(p_now, millrace.lane_for((v_later.job).lane, v_pos, (v_later.job).order_key), v_pos, p_id, 'k', p_reason);
      perform millrace.job_ended_alone(p_now, v_later.job, 'k');
      if v_later.why = 'w' then
        delete from millrace.dependency d where d.job_id = p_id;
        perform setval('millrace.depend_seen', millrace.epoch_ms(p_now));
      end if;
      return 'cancelled';
    end if;
    v_job := millrace.job_newest(p_id);
    if v_job.status = 'available' and (v_job.job).stale_at <= p_now then
      return 'expired';
    elsif v_job.status = 'available' and not millrace.job_still_waits(v_job.job) then
      continue;
    elsif v_job.status = 'available' then
      perform millrace.mark_make(p_now, (v_job.job).lane, (v_job.job).pos, p_id, 'k', p_reason);
      if exists (select from millrace.moving m where m.job_id = p_id and not m.copy) or exists (select from millrace.moved m where m.job_id = p_id) then
        -- A move holds the lock of marks: it was waited for in mark_make, and had taken the job.
        delete from millrace.mark m where m.lane = (v_job.job).lane and m.pos = (v_job.job).pos;
        return 'moved';
      end if;
      perform millrace.job_ended_alone(p_now, v_job.job, 'k');
      return 'cancelled';
    elsif v_job.status = 'running' then
      v_claim := millrace.claim_hold(v_job.job);
      if v_claim.no is not null then
        perform millrace.mark_make(p_now, (v_job.job).lane, (v_job.job).pos, p_id, 'a', p_reason);
        return 'running';
      end if;
    elsif v_job.status is not null then
      return v_job.status;
    else
      v_end := millrace.job_ended(p_id);
      if v_end is not null then
        return v_end;
      end if;
    end if;
  end loop;
  perform millrace.refuse_job(p_id);
end $$;

-- The claim that holds a job open, locked, so that of a cancel and an end one comes first; null: it does not any more.
create or replace function millrace.claim_hold(p_job millrace.job)
returns millrace.claim
language plpgsql
as $$
declare
  v_open  int := pg_sequence_last_value('millrace.seg_seq'::regclass);
  v_claim millrace.claim := millrace.claim_of(p_job.lane, case when p_job.slot < 0 then p_job.seg else v_open - (v_open - p_job.slot) % 16 end,
                                              p_job.xid, p_job.pos);
  v_held  millrace.claim;
begin
  select k.*
    into v_held
    from millrace.claim k
   where k.slot = v_claim.slot
     and k.lane = v_claim.lane
     and k.no = v_claim.no
     and k.status = 'r'
     for no key update;
  if substr(v_held.outcome, array_position(v_held.positions, p_job.pos), 1) <> 'o' then
    return null;
  end if;
  return v_held;
end $$;

-- Whether a job that waits in the log does so still. Of one with hooks the end must be told once: the lane's lock, to the end of the transaction, keeps
-- claims from taking it before the mark is committed. Without hooks such a claim counts as the first, and nobody is kept waiting.
create or replace function millrace.job_still_waits(p_job millrace.job)
returns boolean
language plpgsql
as $$
begin
  if num_nonnulls(p_job.order_key, p_job.unique_name, p_job.batch_id) = 0 then
    return true;
  end if;
  perform pg_advisory_xact_lock(1297219591, p_job.lane);
  return (select s.status from millrace.job_standing(p_job.slot, p_job.lane, p_job.seg, p_job.xid, p_job.pos) s) = 'available';
end $$;
