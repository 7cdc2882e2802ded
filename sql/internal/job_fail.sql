-- SPDX-License-Identifier: PostgreSQL
-- What becomes of a held job that failed: back later, or dead. Returns the letter for the claim's outcome: f or d.
-- p_cause: of the dead letter, if it becomes one. p_delay null: by the kind's policy. p_state null: unchanged; one larger than the queue's max_state is refused (22023), as enqueue does.
create or replace function millrace.job_fail(p_now timestamptz, p_job millrace.job, p_holder text, p_error text, p_delay interval,
                                             p_retry boolean, p_state bytea, p_cause text = 'failed')
returns text
language plpgsql
as $$
begin
  p_job.trail := millrace.trail_with(p_job.trail, p_job.attempt, 'failed', p_error, p_holder, p_now);
  p_job.payload_state := coalesce(millrace.state_within(p_job.lane, p_state), p_job.payload_state);
  p_job.lost := 0;
  if millrace.is_object(p_state) then
    perform millrace.parts_keep(p_now, p_job.job_id, p_state, null);
  end if;
  if not p_retry or p_job.attempt >= p_job.attempts_limit then
    perform millrace.job_bury(p_now, p_job, p_cause, left(p_error, 8192));
    return 'd';
  end if;
  p_delay := coalesce(p_delay, millrace.backoff(p_job.job_kind, p_job.attempt, random()));
  p_job.attempt := least(p_job.attempt + 1, 32767);
  perform millrace.job_delay(p_now, p_job, p_now + p_delay, 'r');
  return 'f';
end $$;

-- A new state of a job that is held, as it is: larger than its queue's max_state it is refused (22023). Null passes.
create or replace function millrace.state_within(p_lane int, p_state bytea)
returns bytea
language plpgsql
as $$
begin
  if p_state is not null then
    perform millrace.check_size('state', millrace.part_weight('state', p_state), q.state_bytes, 'max_state')
       from millrace.queue q
      where q.queue_id = p_lane >> 12;
  end if;
  return p_state;
end $$;
