-- SPDX-License-Identifier: PostgreSQL
-- Checks what claim was called with and in.
create or replace function millrace.check_claim(p_worker text, p_max_jobs int, p_lease_for interval)
returns void
language plpgsql
as $$
begin
  perform millrace.at_home();
  if p_max_jobs is null or p_max_jobs < 1 or p_max_jobs > 10000 then
    perform millrace.check_number('max_jobs', p_max_jobs, 1, 10000);
  end if;
  if p_lease_for is not null then
    perform millrace.check_interval('lease_for', p_lease_for);
  end if;
  if octet_length(p_worker) > 200 then
    perform millrace.check_name('worker', p_worker);
  end if;
  if current_setting('transaction_isolation') <> 'read committed' then
    perform millrace.check_isolation('claim');
  end if;
  if current_setting('transaction_read_only') = 'on' then
    raise exception using errcode = 'read_only_sql_transaction',
      message = 'claim writes a lease and cannot run in a read-only transaction',
      hint = 'Connect to the primary server, in a transaction that may write.';
  end if;
end $$;

-- What moves a cursor or truncates a leaf has to see what was committed before it got its lock. With a snapshot from before that it would
-- hand out jobs a second time, or take a leaf for empty that is not.
create or replace function millrace.check_isolation(p_what text)
returns void
language plpgsql
as $$
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception using errcode = 'invalid_transaction_state',
      message = format('%s needs isolation level read committed, not %s', p_what, current_setting('transaction_isolation')),
      hint = format('Call %s in a transaction of its own: begin isolation level read committed.', p_what);
  end if;
end $$;
