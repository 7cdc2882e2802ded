-- SPDX-License-Identifier: PostgreSQL
-- Sets attempts and backoff of a kind: base * factor^(attempt - 1), plus up to jitter of it, at most cap. max_attempts counts for jobs
-- enqueued from now on, the backoff for every failure from now on. Errors: 22023.
create or replace function millrace.set_retry(
  kind text,
  max_attempts int = 3,
  base interval = '2 seconds',
  factor real = 2,
  cap interval = '1 hour',
  jitter real = 0.5)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
begin
  perform millrace.at_home();
  perform millrace.check_name('kind', kind);
  perform millrace.check_number('max_attempts', max_attempts, 1, 32000);
  perform millrace.check_interval('base', base);
  perform millrace.check_interval('cap', cap);
  if base is null or cap is null then
    perform millrace.refuse('base and cap must not be null', 'Leave them out for the defaults.');
  end if;
  if factor is null or not factor between 1 and 1000 then
    perform millrace.refuse(format('factor must be from 1 to 1000, not %s', coalesce(factor::text, 'null')), 'Pass 2 to double the delay each time, 1 to keep it.');
  end if;
  if jitter is null or not jitter between 0 and 1 then
    perform millrace.refuse(format('jitter must be from 0 to 1, not %s', coalesce(jitter::text, 'null')), 'Pass 0.5 for up to half of the delay on top.');
  end if;
  insert into millrace.retry_policy (policy_kind, attempts_limit, base_delay, growth, delay_cap, jitter_share)
  values (kind, max_attempts, base, factor, cap, jitter)
      on conflict on constraint retry_policy_pk do update
     set attempts_limit = excluded.attempts_limit,
         base_delay = excluded.base_delay,
         growth = excluded.growth,
         delay_cap = excluded.delay_cap,
         jitter_share = excluded.jitter_share;
end $$;
comment on function millrace.set_retry(text, int, interval, real, interval, real) is
  'sets attempts and backoff of a kind';
