-- SPDX-License-Identifier: PostgreSQL
-- Appends jobs whose time has come to the log, in the order they are due, at most p_limit. Deleting the row is the proof that a job
-- is promoted once. Starts at a hint, so that the dead rows of earlier passes are not walked: ten seconds before the first row that the
-- last pass saw, its own or one that another had locked, because either may be rolled back while the hint is not. Once a
-- minute it starts at the beginning, for rows whose transaction committed long after they were due. A job whose payload is away is put off: who
-- brings it back lets it be due (see offload_restore).
create or replace function millrace.promote(p_now timestamptz, p_limit int)
returns bigint
language plpgsql
as $$
declare
  v_sweep boolean := millrace.due('millrace.promote_sweep', p_now, 60000);
  v_from  timestamptz := case when v_sweep then '-infinity' else to_timestamp(millrace.hint('millrace.promote_hint') / 1000.0) end;
  v_slots int2[];
  v_ids   bigint[];
  v_used  int2[];
  v_queues int[];
  v_away  bigint[];
  v_first timestamptz;
  v_one   record;
  v_n     bigint;
begin
  if v_sweep or p_now - v_from > interval '20 hours' or v_from > p_now then
    v_slots := array(select g from generate_series(0, 56) g);
    v_from := '-infinity';
  else
    v_slots := array(select distinct (date_part('epoch', h)::bigint / 3600) % 24
                       from unnest(array(select v_from + make_interval(hours => g) from generate_series(0, 20) g) || p_now) h
                      where h <= p_now)
               || array[24 + (date_part('epoch', v_from)::bigint / 86400) % 32, 24 + (date_part('epoch', p_now)::bigint / 86400) % 32, 56]::int2[];
  end if;
  select d.due_at
    into v_first
    from millrace.delayed d
   where d.slot = any (v_slots)
     and d.due_at >= v_from
     and d.due_at <= p_now
   order by d.due_at
   limit 1;
  select array_agg(d.job_id) filter (where d.away_due is null), array_agg(distinct d.slot), array_agg(distinct d.lane >> 12),
         array_agg(d.job_id) filter (where d.away_due is not null)
    into v_ids, v_used, v_queues, v_away
    from (select d.job_id, d.slot, d.lane, d.due_at, d.away_due
            from millrace.delayed d
           where d.slot = any (v_slots)
             and d.due_at >= v_from
             and d.due_at <= p_now
           order by d.due_at
           limit p_limit
             for update skip locked) d;
  v_n := coalesce(cardinality(v_ids), 0);
  if v_n > 0 then
    perform pg_current_xact_id();
    begin
      perform millrace.promote_jobs(v_used, v_ids, v_first, p_now);
    exception
      when data_corrupted or internal_error or data_exception then
        -- A job that cannot be read must not hold the others back: one by one, and that one to the dead letters.
        for v_one in
          select d.slot, d.job_id
            from millrace.delayed d
           where d.slot = any (v_used)
             and d.job_id = any (v_ids)
             and d.due_at >= v_first
             and d.due_at <= p_now
           order by d.due_at, d.job_id
        loop
          begin
            perform millrace.promote_jobs(array[v_one.slot], array[v_one.job_id], v_first, p_now);
          exception
            when data_corrupted or internal_error or data_exception then
              perform millrace.job_bury_damaged(p_now, v_one.slot, v_one.job_id, null);
          end;
        end loop;
    end;
    perform millrace.wake(w.queue_id, p_now)
       from unnest(v_queues) w(queue_id);
  end if;
  if v_away is not null then
    perform millrace.delayed_put_off(p_now, v_used, v_away);
  end if;
  if v_sweep then
    perform setval('millrace.promote_sweep', millrace.epoch_ms(p_now));
  end if;
  perform setval('millrace.promote_hint', greatest(millrace.epoch_ms(coalesce(v_first, p_now)) - 10000, 0));
  return v_n;
end $$;

-- Puts jobs off whose payload is away though they are due: the store does not answer, or nobody asks it. For as long as they are late by now, from two seconds to
-- one minute, so that a pass does not come by all of them.
create or replace function millrace.delayed_put_off(p_now timestamptz, p_slots int2[], p_ids bigint[])
returns void
language plpgsql
as $$
declare
  v_row millrace.delayed;
begin
  for v_row in
    select d.*
      from millrace.delayed d
     where d.slot = any (p_slots)
       and d.job_id = any (p_ids)
       and d.away_due is not null
  loop
    perform millrace.delayed_move(p_now, v_row, p_now + least(greatest(p_now - v_row.away_due, interval '2 seconds'), interval '1 minute'));
  end loop;
end $$;

-- Gives a row of delayed another time, and the payload that p_row has. The caller has it locked. In the leaf of the new time: where that is another one the row is
-- deleted and put there. An update would move it, too, but whoever waits for the row, to cancel the job perhaps, would be told to try again (40001); so it finds nothing
-- and looks again.
create or replace function millrace.delayed_move(p_now timestamptz, p_row millrace.delayed, p_due timestamptz)
returns void
language plpgsql
as $$
declare
  v_slot int2 := millrace.delayed_slot(p_now, p_due);
begin
  if v_slot = p_row.slot then
    update millrace.delayed d
       set due_at = p_due,
           away_due = p_row.away_due,
           payload_state = p_row.payload_state,
           payload_blob = p_row.payload_blob
     where d.slot = p_row.slot
       and d.job_id = p_row.job_id;
    return;
  end if;
  delete from millrace.delayed d
   where d.slot = p_row.slot
     and d.job_id = p_row.job_id;
  p_row.due_at := p_due;
  p_row.slot := v_slot;
  insert into millrace.delayed values (p_row.*);
end $$;

-- Moves some jobs that are due from delayed to the log. p_first keeps the plan, whichever index it takes, from walking the dead rows of
-- earlier passes.
create or replace function millrace.promote_jobs(p_slots int2[], p_ids bigint[], p_first timestamptz, p_now timestamptz)
returns void
language plpgsql
as $$
begin
  with due as (
    delete from millrace.delayed d
     where d.slot = any (p_slots)
       and d.job_id = any (p_ids)
       and d.due_at >= p_first
       and d.due_at <= p_now
    returning d.*)
  insert into millrace.job (pos, job_id, created_at, lane, attempt, lost, attempts_limit, job_kind, payload_args, ready_at, stale_at,
                            run_limit, payload_meta, payload_state, payload_blob, job_tenant, job_ref, job_source, trail,
                            order_key, unique_name, batch_id)
  select o.pos, o.job_id, o.created_at, (o.lane & ~31) + millrace.part_of(case when o.ordered then o.order_key end, o.pos, o.part_count), o.attempt, o.lost, o.attempts_limit, o.job_kind,
         o.payload_args, o.due_at, o.stale_at, o.run_limit, o.payload_meta, o.payload_state, o.payload_blob, o.job_tenant,
         o.job_ref, o.job_source, o.trail, o.order_key, o.unique_name, o.batch_id
    from (select nextval('millrace.pos_seq') as pos, s.*
            from (select d.*, q.part_count, q.ordered
                    from due d
                    join millrace.queue q on q.queue_id = d.lane >> 12
                   order by d.due_at, d.job_id) s) o;
end $$;
