-- SPDX-License-Identifier: PostgreSQL
-- What becomes of a job whose worker was lost: back at once the first time, later ones with backoff, and a dead letter beyond the
-- poison limit, but only while the fleet is healthy. In a stall the attempt is given back (max_attempts grows with it)
-- and the count of losses stays one below the limit. Returns the letter for the claim's outcome.
create or replace function millrace.job_rescue(p_now timestamptz, p_job millrace.job, p_holder text, p_healthy boolean, p_poison_limit int)
returns text
language plpgsql
as $$
declare
  v_first boolean := p_job.lost = 0;
begin
  p_job.trail := millrace.trail_with(p_job.trail, p_job.attempt, 'lost', 'the worker did not finish within its lease', p_holder, p_now);
  if p_healthy then
    p_job.lost := least(p_job.lost + 1, 32767);
    if p_job.lost > p_poison_limit then
      perform millrace.job_bury(p_now, p_job, 'poison', format('its worker was lost %s times in a row', p_job.lost));
      return 'd';
    end if;
  else
    p_job.lost := greatest(p_job.lost, least(p_job.lost + 1, p_poison_limit - 1));
    p_job.attempts_limit := least(p_job.attempts_limit + 1, 32767);
  end if;
  p_job.attempt := least(p_job.attempt + 1, 32767);
  if v_first then
    perform millrace.job_append(p_now, p_job);
  else
    perform millrace.job_delay(p_now, p_job, p_now + millrace.backoff(p_job.job_kind, greatest(p_job.lost - 1, 1), random()), 'l');
  end if;
  return 'l';
end $$;
