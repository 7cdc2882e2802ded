-- SPDX-License-Identifier: PostgreSQL
-- Takes the open jobs of expired claims back; their tokens are void from then on. At most about p_limit jobs.
-- Both sides update the claim under its status and token, so of a worker and a rescuer one finds nothing; a claim that a worker
-- is finishing at this moment is passed over. Starts at a hint, with promote's rule. A job that cannot be read is buried alone.
create or replace function millrace.rescue(p_now timestamptz, p_limit int)
returns bigint
language plpgsql
as $$
declare
  c_claims constant int := 100;      -- locked at once: a worker that finishes late waits for this pass
  v_sweep boolean := millrace.due('millrace.rescue_sweep', p_now, 60000);
  v_from  timestamptz := case when v_sweep then '-infinity' else to_timestamp(millrace.hint('millrace.rescue_hint') / 1000.0) end;
  v_claim millrace.claim;
  v_first timestamptz;
  v_n     bigint := 0;
begin
  if v_from > p_now then
    v_from := '-infinity';
  end if;
  select k.leased_till
    into v_first
    from millrace.claim k
   where k.leased_till >= v_from
     and k.leased_till < p_now
     and k.status = 'r'
   order by k.leased_till
   limit 1;
  for v_claim in
    select k.*
      from millrace.claim k
     where k.leased_till >= v_from
       and k.leased_till < p_now
       and k.status = 'r'
     order by k.leased_till
     limit c_claims
       for update skip locked
  loop
    v_n := v_n + millrace.claim_rescue(p_now, v_claim);
    exit when v_n >= p_limit;
  end loop;
  if v_sweep then
    perform setval('millrace.rescue_sweep', millrace.epoch_ms(p_now));
  end if;
  perform setval('millrace.rescue_hint', greatest(millrace.epoch_ms(coalesce(v_first, p_now)) - 10000, 0));
  return v_n;
end $$;

-- Takes the open jobs of one locked claim back.
create or replace function millrace.claim_rescue(p_now timestamptz, p_claim millrace.claim)
returns int
language plpgsql
as $$
declare
  v_healthy boolean := millrace.fleet_healthy(p_claim);
  v_limit   int := (select q.poison_limit from millrace.queue q where q.queue_id = p_claim.lane >> 12);
  v_marks   text := '';
  v_job     millrace.job;
  v_stopped bigint[] := millrace.marks_of(p_claim);
  v_ordinals int[] := array(select o
                              from generate_series(1, p_claim.n) o
                             where p_claim.outcome is null
                                or substr(p_claim.outcome, o, 1) = 'o');
begin
  for i in 1 .. cardinality(v_ordinals) loop
    if p_claim.positions[v_ordinals[i]] = any (v_stopped) then
      perform millrace.marks_end(p_now, p_claim.lane, array[p_claim.positions[v_ordinals[i]]]);
      v_marks := v_marks || 'k';
      continue;
    end if;
    v_job := null;
    begin
      v_job := millrace.held_job(p_claim, v_ordinals[i]);
      v_marks := v_marks || millrace.job_rescue(p_now, v_job, p_claim.holder, v_healthy, v_limit);
    exception
      when data_corrupted or internal_error or data_exception then
        if v_job.job_id is null then
          raise warning 'millrace: % (job dropped from its claim)', sqlerrm;
        else
          perform millrace.job_bury_damaged(p_now, v_job.slot, v_job.job_id, v_job.pos);
        end if;
        v_marks := v_marks || 'd';
    end;
  end loop;
  update millrace.claim k
     set open_n = 0,
         run_us = k.run_us + cardinality(v_ordinals) * (date_part('epoch', p_now - k.claimed_at) * 1e6)::bigint,
         status = 'l',
         finished_at = p_now,
         outcome = millrace.outcome_with(coalesce(k.outcome, repeat('o', k.n)), v_ordinals, v_marks)
   where k.slot = p_claim.slot
     and k.lane = p_claim.lane
     and k.no = p_claim.no;
  if p_claim.hooks is not null then
    perform millrace.jobs_ended(p_now, millrace.hooks_of(p_claim.hooks, v_ordinals), v_marks);
  end if;
  return cardinality(v_ordinals);
end $$;
