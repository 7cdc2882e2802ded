-- SPDX-License-Identifier: PostgreSQL
-- outcome with the time as an argument. A job may move while it is looked for (see job_steer): where the log says that it has gone elsewhere
-- and it is not there, it is looked for again.
create or replace function millrace.outcome_at(p_now timestamptz, p_id bigint)
returns millrace.job_outcome
language plpgsql
as $$
declare
  v_out    millrace.job_outcome;
  v_report record;
begin
  perform millrace.at_home();
  for i in 1..5 loop
    select case
             when d.why = 'p' then 'paused'
             when d.why = 'w' then 'waiting'
             when d.why in ('o', 'k', 't') then case when d.stale_at <= p_now then 'expired' else 'available' end
             else 'scheduled'
           end
      into v_out.status
      from millrace.delayed d
     where d.job_id = p_id
     limit 1;
    exit when found;
    v_out := coalesce(millrace.outcome_logged(p_now, p_id), millrace.outcome_kept(p_now, p_id));
    exit when v_out.status is not null;
  end loop;
  if v_out.status is null then
    perform millrace.refuse_job(p_id);
  end if;
  if v_out.status not in ('scheduled', 'available', 'paused', 'waiting') then
    v_report := millrace.report_newest(p_id);
    v_out.progress := v_report.percent_done;
    v_out.progress_note := v_report.report_note;
  end if;
  return v_out;
end $$;

-- Of a job whose newest row of the log says how it stands; null: it is not there, or goes on elsewhere.
create or replace function millrace.outcome_logged(p_now timestamptz, p_id bigint)
returns millrace.job_outcome
language plpgsql
as $$
declare
  v_out millrace.job_outcome;
  v_row record;
begin
  select j.pos, case when s.status = 'available' and j.stale_at <= p_now then 'expired' else s.status end as status, s.finished_at
    into v_row
    from (select j.*
            from millrace.job_rows(p_id) j
           order by j.pos desc
           limit 1) j
   cross join lateral millrace.job_standing(j.slot, j.lane, j.seg, j.xid, j.pos) s
   where j.stale_at is distinct from '-infinity';      -- a grave: the job is among the dead letters
  if v_row.status is null then
    return null;
  end if;
  v_out.status := v_row.status;
  v_out.finished_at := v_row.finished_at;
  if v_row.status in ('completed', 'cancelled') then
    v_out := millrace.outcome_with_result(v_out, (select r.payload_result
                                                    from millrace.result r
                                                   where r.job_id = p_id
                                                     and r.pos = v_row.pos
                                                   limit 1));
    v_out.failure := coalesce(v_out.failure, (select m.mark_text
                                                from millrace.mark m
                                               where m.job_id = p_id
                                                 and m.letter <> 'w'
                                                 and v_out.status = 'cancelled'
                                               limit 1));
  end if;
  return v_out;
end $$;

-- Of a dead letter, a job that only the archive has or that was moved elsewhere; null: it is none of these.
create or replace function millrace.outcome_kept(p_now timestamptz, p_id bigint)
returns millrace.job_outcome
language plpgsql
as $$
declare
  v_out    millrace.job_outcome;
  v_result jsonb;
begin
  select 'dead', d.failure, d.died_at
    into v_out.status, v_out.failure, v_out.finished_at
    from millrace.dead d
   where d.job_id = p_id
   limit 1;
  if not found then
    select case a.outcome when 'x' then 'expired' when 'k' then 'cancelled' else 'completed' end, a.finished_at, a.payload_result
      into v_out.status, v_out.finished_at, v_result
      from millrace.archive a
     where a.job_id = p_id
       and a.keep_until > p_now
     limit 1;
    v_out := millrace.outcome_with_result(v_out, v_result);
    if v_out.status is null then
      select 'moved', m.moved_at
        into v_out.status, v_out.finished_at
        from (select m.moved_at from millrace.moved m where m.job_id = p_id
               union all
              select null from millrace.moving m where m.job_id = p_id and not m.copy
               limit 1) m;
    end if;
  end if;
  return case when v_out.status is not null then v_out end;
end $$;

-- What was left with a job that ended: a result, or of one that was cancelled the reason.
create or replace function millrace.outcome_with_result(p_out millrace.job_outcome, p_result jsonb)
returns millrace.job_outcome
language plpgsql
immutable
as $$
begin
  case p_out.status
    when 'completed' then p_out.result := p_result;
    when 'cancelled' then p_out.failure := p_result ->> 'reason';
    else null;
  end case;
  return p_out;
end $$;
