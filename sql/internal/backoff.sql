-- SPDX-License-Identifier: PostgreSQL
-- How long a job of a kind waits after its p_attempt-th attempt: base * factor^(attempt - 1), plus up to jitter of it, at most cap.
-- Without a policy: 2^attempt seconds, plus 0-50 %, at most an hour.
create or replace function millrace.backoff(p_kind text, p_attempt int, p_random double precision)
returns interval
language plpgsql
as $$
declare
  v_policy millrace.retry_policy;
  v_delay  double precision;
begin
  select r.*
    into v_policy
    from millrace.retry_policy r
   where r.policy_kind = p_kind;
  v_delay := date_part('epoch', coalesce(v_policy.base_delay, '2 seconds'))
             * power(coalesce(v_policy.growth, 2)::double precision, least(p_attempt - 1, 60))
             * (1 + coalesce(v_policy.jitter_share, 0.5) * p_random);
  return millrace.seconds(least(v_delay, date_part('epoch', coalesce(v_policy.delay_cap, '1 hour'))));
end $$;
