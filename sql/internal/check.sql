-- SPDX-License-Identifier: PostgreSQL
-- Checks of arguments, each with the message and the hint a caller sees (22023).

-- A name of a queue or a kind.
create or replace function millrace.check_name(p_what text, p_name text)
returns void
language plpgsql
as $$
begin
  if p_name is null or p_name = '' then
    perform millrace.refuse(format('%s must not be %s', p_what, case when p_name is null then 'null' else 'empty' end),
      format('Give the %s a name of 1 to 200 bytes.', p_what));
  elsif octet_length(p_name) > 200 then
    perform millrace.refuse(format('%s is %s bytes long, the limit is 200', p_what, octet_length(p_name)),
      format('Choose a shorter name for the %s; what varies from job to job belongs into args.', p_what));
  end if;
end $$;

-- A number inside bounds.
create or replace function millrace.check_number(p_what text, p_value bigint, p_least bigint, p_most bigint)
returns void
language plpgsql
as $$
begin
  if p_value is null or p_value < p_least or p_value > p_most then
    perform millrace.refuse(format('%s must be from %s to %s, not %s', p_what, p_least, p_most, coalesce(p_value::text, 'null')),
      format('Pass a value from %s to %s.', p_least, p_most));
  end if;
end $$;

-- An interval that is longer than nothing and shorter than a thousand years. Null passes: it means the default.
create or replace function millrace.check_interval(p_what text, p_value interval)
returns void
language plpgsql
as $$
begin
  if p_value <= interval '0' or p_value > interval '1000 years' then
    perform millrace.refuse(format('%s must be longer than zero and at most 1000 years, not %s', p_what, p_value),
      'Pass a positive interval such as ''30 seconds'', or leave it out.');
  end if;
end $$;

-- The size of a payload part. Null passes.
create or replace function millrace.check_size(p_what text, p_bytes bigint, p_limit bigint, p_setting text)
returns void
language plpgsql
as $$
begin
  if p_bytes > p_limit then
    perform millrace.refuse(format('%s is %s bytes long, the limit is %s', p_what, p_bytes, p_limit),
      format('Keep large payloads in an object store such as S3 and pass a reference, or raise the queue''s setting %s.', p_setting));
  end if;
end $$;

-- How long the numbers of a JSON value are that may be much longer than they look, zero among them (0e-16383); counted until p_limit is passed.
create or replace function millrace.json_digits(p_value jsonb, p_limit bigint)
returns bigint
language plpgsql
immutable
as $$
declare
  v_number jsonb;
  v_n      bigint := 0;
begin
  for v_number in
    select q
      from jsonb_path_query(p_value, 'strict $.** ? (@.type() == "number" && (@ > 1e100 || @ < -1e100 || (@ > -1e-100 && @ < 1e-100)))') q
  loop
    v_n := v_n + greatest(octet_length(v_number::text) - 100, 0);
    exit when v_n > p_limit;
  end loop;
  return v_n;
end $$;

-- The size of a JSON value that is not compressed, with its numbers written out. 1e131071 takes 12 bytes where it is kept and 131072 where it is sent, so
-- that a job of a few kilobytes could be larger than any message, and stop its lane for ever. Below 8 KiB it cannot be: that is not looked at, it costs more
-- than the rest of an enqueue.
create or replace function millrace.json_written(p_value jsonb, p_limit bigint)
returns bigint
language sql
stable
as $$
  select pg_column_size(p_value) + case when pg_column_size(p_value) > 8192 and pg_column_size(p_value) <= p_limit then millrace.json_digits(p_value, p_limit) else 0 end
$$;

-- The size of a JSON value as it is once decompressed, and with its numbers written out: one that comes from a table may be compressed, at most 256 to 1.
create or replace function millrace.json_size(p_value jsonb, p_limit bigint)
returns bigint
language sql
stable
as $$
  select millrace.json_written(case when pg_column_size(p_value) > p_limit / 256 then jsonb_path_query_first(p_value, '$') else p_value end, p_limit)
$$;

-- A payload part as base64 text: base64, and if it is coded with a well-formed header. Null passes.
create or replace function millrace.check_base64(p_what text, p_value text)
returns void
language plpgsql
as $$
declare
  v_coded boolean;
begin
  begin
    v_coded := millrace.part_is_coded(decode(p_value, 'base64'));
  exception
    when data_exception then
      perform millrace.refuse(format('%s is not base64: %s', p_what, sqlerrm), 'Encode the bytes as base64 text, padded with =.');
  end;
  if v_coded then
    perform millrace.part_weight(p_what, decode(p_value, 'base64'));
  end if;
end $$;

-- A short text that travels with a job.
create or replace function millrace.check_text(p_what text, p_value text)
returns void
language plpgsql
as $$
begin
  if octet_length(p_value) > 1000 then
    perform millrace.refuse(format('%s is %s bytes long, the limit is 1000', p_what, octet_length(p_value)),
      format('Choose a shorter %s.', p_what));
  end if;
end $$;

-- A point in time that is finite and leaves room for an interval on top. Null passes.
create or replace function millrace.check_time(p_what text, p_value timestamptz)
returns void
language plpgsql
as $$
begin
  if not isfinite(p_value) or p_value > '100000-01-01' then
    perform millrace.refuse(format('%s must be a finite time before the year 100000, not %s', p_what, p_value),
      'Pass a time, or leave it out to run the job at once.');
  end if;
end $$;
