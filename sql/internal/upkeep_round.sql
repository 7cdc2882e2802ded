-- SPDX-License-Identifier: PostgreSQL
-- What rounds of maintain did, for system() and metrics(). A round's row carries the totals on from the one before: the newest tells it all.

-- The duties of the newest round: an object, empty where there was none.
create or replace function millrace.rounds_last()
returns jsonb
language sql
stable
set enable_seqscan = off
as $$
  select coalesce((select r.duties from millrace.upkeep_round r order by r.ended_at desc limit 1), '{}')
$$;

-- One duty of a round, as an object of one entry. p_done null: it did not run (not due, or another session is at it), so what is known stays.
create or replace function millrace.round_duty(p_now timestamptz, p_duty text, p_done bigint, p_took interval, p_before jsonb)
returns jsonb
language sql
stable
as $$
  select case
           when p_done is null then case when p_before ? p_duty then jsonb_build_object(p_duty, p_before -> p_duty) else '{}' end
           else jsonb_build_object(p_duty, jsonb_build_object('last_at', p_now, 'ms', round((extract(epoch from p_took) * 1000)::numeric, 3),
                                                              'done', p_done, 'total', coalesce((p_before -> p_duty ->> 'total')::bigint, 0) + p_done))
         end
$$;

-- How many jobs went with segments that were retired, all rounds together, for the entry of retire. p_until: what jobs_until said of the last one,
-- null where none was. The difference counts: a queue that was dropped takes its ledgers along.
create or replace function millrace.round_jobs(p_before jsonb, p_until bigint)
returns jsonb
language sql
stable
as $$
  select jsonb_build_object('jobs', coalesce((p_before ->> 'jobs')::bigint, 0)
                                    + greatest(coalesce(p_until, 0) - coalesce((p_before ->> 'until')::bigint, 0), 0) * (p_until is not null)::int,
                            'until', coalesce(p_until, (p_before ->> 'until')::bigint, 0))
$$;

-- Writes a round down: where it did something that lasts, and every ten seconds. Only the session that has the lock of upkeep does so: the rounds of
-- others, who run beside it, are not lost but for their numbers.
create or replace function millrace.round_add(p_now timestamptz, p_round jsonb, p_before jsonb)
returns void
language plpgsql
as $$
declare
  c_slow constant interval := '10 seconds';
begin
  if current_setting('transaction_read_only') = 'on'
     or not pg_try_advisory_xact_lock(1297219592, 0)
     or (abs(extract(epoch from p_now - (p_before -> 'rotate' ->> 'last_at')::timestamptz)) < extract(epoch from c_slow)
         and not exists (select from jsonb_each(p_round) d where d.key <> 'count' and (d.value ->> 'done')::bigint > 0)) then
    return;
  end if;
  insert into millrace.upkeep_round (slot, ended_at, duties)
  values ((date_part('epoch', p_now)::bigint / 3600) % 4, p_now, p_round);
end $$;
