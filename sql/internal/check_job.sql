-- SPDX-License-Identifier: PostgreSQL
-- Checks the options of a new job; p_where says which one of many, '' for a single job.
create or replace function millrace.check_job(p_where text, p_kind text, p_args jsonb, p_queue text, p_priority int, p_run_at timestamptz,
                                              p_delay interval, p_unique_key text, p_ordering_key text, p_tenant text, p_ref text,
                                              p_max_attempts int, p_timeout interval, p_expires_in interval, p_on_conflict text = 'ignore',
                                              p_unique_for interval = null)
returns void
language plpgsql
as $$
begin
  perform millrace.check_name(p_where || 'kind', p_kind);
  perform millrace.check_name(p_where || 'queue', p_queue);
  if p_args is null then
    perform millrace.refuse(p_where || 'args must not be null', 'Leave args out, or pass ''{}''.');
  end if;
  perform millrace.check_number(p_where || 'priority', p_priority, 0, 99);
  perform millrace.check_time(p_where || 'run_at', p_run_at);
  perform millrace.check_interval(p_where || 'delay', p_delay);
  if p_run_at is not null and p_delay is not null then
    perform millrace.refuse(p_where || 'run_at and delay exclude each other', 'Pass the one or the other.');
  end if;
  perform millrace.check_text(p_where || 'tenant', p_tenant);
  perform millrace.check_text(p_where || 'ref', p_ref);
  if p_max_attempts is not null then
    perform millrace.check_number(p_where || 'max_attempts', p_max_attempts, 1, 32000);
  end if;
  perform millrace.check_interval(p_where || 'timeout', p_timeout);
  perform millrace.check_interval(p_where || 'expires_in', p_expires_in);
  perform millrace.check_text(p_where || 'unique_key', p_unique_key);
  if p_unique_key = '' then
    perform millrace.refuse(p_where || 'unique_key must not be empty', 'Leave it out for a job that may be there twice.');
  end if;
  if p_on_conflict is null or p_on_conflict not in ('ignore', 'replace') then
    perform millrace.refuse(format('%son_conflict must be ignore or replace, not %s', p_where, coalesce(quote_literal(left(p_on_conflict, 80)), 'null')),
      'ignore leaves the job that is there as it is, replace gives it the new args and time.');
  end if;
  perform millrace.check_interval(p_where || 'unique_for', p_unique_for);
  if p_unique_key is null and (p_unique_for is not null or p_on_conflict <> 'ignore') then
    perform millrace.refuse(p_where || 'on_conflict and unique_for need a unique_key', 'Give the job a unique_key, or leave them out.');
  end if;
  perform millrace.check_text(p_where || 'ordering_key', p_ordering_key);
  if p_ordering_key = '' then
    perform millrace.refuse(p_where || 'ordering_key must not be empty', 'Leave it out for a job that may run beside any other.');
  end if;
end $$;

-- An ordering key in a queue that keeps no order (22023).
create or replace function millrace.refuse_unordered(p_where text, p_queue text)
returns void
language plpgsql
as $$
begin
  perform millrace.refuse(format('%squeue %s is not ordered: it takes no ordering_key', p_where, quote_literal(left(p_queue, 200))),
    format('Make it ordered with set_queue(%s, ''{"ordered": true}''), or leave ordering_key out.', quote_literal(left(p_queue, 200))));
end $$;

-- Where jobs come from, as a caller says it; null, and sql, are a row's null, which costs nothing (22023).
create or replace function millrace.source_of(p_source text)
returns text
language plpgsql
as $$
begin
  if p_source = '' or octet_length(p_source) > 200 then
    perform millrace.refuse(format('source must have 1 to 200 bytes, not %s', octet_length(p_source)), 'Pass a short word such as ''http'', or leave it out.');
  end if;
  return nullif(p_source, 'sql');
end $$;
