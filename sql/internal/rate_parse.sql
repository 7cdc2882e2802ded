-- SPDX-License-Identifier: PostgreSQL
-- Reads a rate: a whole number of jobs, a slash, and a time of 1 second to 1 day: 100/s, 5000/min, 20/h, 3/2s. Null for null.
create or replace function millrace.rate_parse(p_rate text, p_setting text = 'rate', out most bigint, out period interval)
language plpgsql
immutable
as $$
declare
  c_units constant jsonb := '{"s": 1, "min": 60, "h": 3600, "d": 86400}';
  c_most constant numeric := 1000000000;
  c_longest constant numeric := 86400;
  v_part text[] := regexp_match(p_rate, '^\s*([^/]*?)\s*/\s*([0-9]*)\s*([^/]*?)\s*$');
  v_time numeric;
begin
  if p_rate is null then
    return;
  elsif v_part is null then
    perform millrace.refuse_rate(p_setting, p_rate, 'it has no slash, or more than one', 'Write jobs per time, such as 100/s, 5000/min or 20/h.');
  elsif v_part[1] !~ '^[0-9]+$' then
    perform millrace.refuse_rate(p_setting, p_rate, format('%s is not a whole number of jobs', quote_literal(v_part[1])),
      'Write a longer time instead of a fraction: 3/2s and not 1.5/s.');
  elsif not c_units ? v_part[3] then
    perform millrace.refuse_rate(p_setting, p_rate, format('%s is not a unit of time', quote_literal(v_part[3])), 'Units are s, min, h and d.');
  elsif v_part[1]::numeric = 0 then
    perform millrace.refuse_rate(p_setting, p_rate, 'it allows no job at all', 'To stop a queue, pause it; null takes the limit away.');
  elsif v_part[1]::numeric > c_most then
    perform millrace.refuse_rate(p_setting, p_rate, format('it allows more than %s jobs', c_most), 'Null takes the limit away.');
  end if;
  v_time := coalesce(nullif(v_part[2], ''), '1')::numeric * (c_units ->> v_part[3])::numeric;
  if v_time not between 1 and c_longest then
    perform millrace.refuse_rate(p_setting, p_rate, 'its time is not from 1s to 1d', 'Write a time of 1 second to 1 day.');
  end if;
  most := v_part[1]::bigint;
  period := make_interval(secs => v_time::double precision);
end $$;

create or replace function millrace.refuse_rate(p_setting text, p_rate text, p_why text, p_hint text)
returns void
language plpgsql
immutable
as $$
begin
  perform millrace.refuse(format('setting %s does not accept %s: %s', p_setting, quote_literal(left(p_rate, 200)), left(p_why, 300)), p_hint);
end $$;
