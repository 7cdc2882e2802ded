-- SPDX-License-Identifier: PostgreSQL
-- What the end of jobs with hooks means to others: keys are given back, batches get a note, turns are passed on. p_letters has a letter for each of
-- p_hooks, those of claim.outcome and p, purged; jobs that go on elsewhere (f, r, q, l, w) have not ended. Each end is told once: a cancelled job's when it is cancelled, not when a cursor passes it.
create or replace function millrace.jobs_ended(p_now timestamptz, p_hooks millrace.hook[], p_letters text)
returns void
language plpgsql
as $$
declare
  v_done bigint[];
  v_gone bigint[];
  v_batches boolean;
begin
  select array_agg(h.job_id) filter (where h.letter = 'c' and h.unique_name is not null),
         array_agg(h.job_id) filter (where h.letter <> 'c' and h.unique_name is not null), count(h.batch_id) > 0
    into v_done, v_gone, v_batches
    from (select h.job_id, h.unique_name, h.batch_id, h.letter
            from unnest(p_hooks, string_to_array(p_letters, null)) h(job_id, lane, order_key, unique_name, batch_id, letter)) h
   where h.letter in ('c', 'd', 'k', 'x', 'p');
  if v_done is not null then
    perform millrace.unique_release(p_now, v_done, true);
  end if;
  if v_gone is not null then
    perform millrace.unique_release(p_now, v_gone, false);
  end if;
  if v_batches then
    perform millrace.batch_ends(p_hooks, p_letters);
  end if;
  if (select bool_or(h.order_key is not null) from unnest(p_hooks) h) then
    perform millrace.turns_pass(p_now, p_hooks, p_letters);
  end if;
end $$;

-- The same for a job that is in no claim.
create or replace function millrace.job_ended_alone(p_now timestamptz, p_job millrace.job, p_letter text)
returns void
language plpgsql
as $$
begin
  if num_nonnulls(p_job.order_key, p_job.unique_name, p_job.batch_id) > 0 then
    perform millrace.jobs_ended(p_now, array[row(p_job.job_id, p_job.lane, p_job.order_key, p_job.unique_name, p_job.batch_id)::millrace.hook], p_letter);
  end if;
end $$;

-- The hooks of some jobs of a claim.
create or replace function millrace.hooks_of(p_hooks millrace.hook[], p_ordinals int[])
returns millrace.hook[]
language plpgsql
as $$
begin
  return array(select p_hooks[o.at] from unnest(p_ordinals) with ordinality o(at, i) order by o.i);
end $$;

-- The same for jobs of a range that are purged; withdrawn ones go on elsewhere, of cancelled ones it was told.
create or replace function millrace.range_ended(p_now timestamptz, p_slot int, p_lane int, p_from_xid xid8, p_from_pos bigint, p_to_xid xid8,
                                                p_hi pg_snapshot, p_limit int)
returns void
language plpgsql
as $$
declare
  v_hooks millrace.hook[];
begin
  select array_agg(row(j.job_id, p_lane, j.order_key, j.unique_name, j.batch_id)::millrace.hook)
    into v_hooks
    from millrace.range_jobs(p_slot, p_lane, p_from_xid, p_from_pos, p_to_xid, p_hi, p_limit) j
   where num_nonnulls(j.order_key, j.unique_name, j.batch_id) > 0
     and not exists (select from millrace.mark m where m.lane = p_lane and m.pos = j.pos and m.letter in ('k', 'w'));
  if v_hooks is not null then
    perform millrace.jobs_ended(p_now, v_hooks, repeat('p', cardinality(v_hooks)));
  end if;
end $$;
