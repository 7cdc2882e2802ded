-- SPDX-License-Identifier: PostgreSQL
-- Reads a cron expression: five fields, or six with seconds first, or a name such as @daily. Errors (22023) name the field.
create or replace function millrace.cron_parse(p_cron text)
returns millrace.cron_spec
language plpgsql
immutable
as $$
declare
  c_names constant jsonb := '{"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
                              "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *"}';
  v_text   text := lower(btrim(p_cron, E' \t\n\r'));
  v_fields text[];
  v_spec   millrace.cron_spec;
begin
  if v_text is null or v_text = '' then
    perform millrace.refuse(format('cron must not be %s', case when p_cron is null then 'null' else 'empty' end),
      'Write five fields, such as ''0 2 * * *'' for two o''clock every night.');
  elsif octet_length(v_text) > 200 then
    perform millrace.refuse(format('cron is %s bytes long, the limit is 200', octet_length(v_text)), 'Use ranges and steps, or two schedules.');
  elsif v_text ~ '^@' and not c_names ? v_text then
    perform millrace.refuse(format('cron %s is not a known name', quote_literal(p_cron)),
      'Names are @yearly, @annually, @monthly, @weekly, @daily, @midnight and @hourly.');
  end if;
  v_fields := regexp_split_to_array(coalesce(c_names ->> v_text, v_text), '\s+');
  if cardinality(v_fields) not in (5, 6) then
    perform millrace.refuse(format('cron %s has %s field%s', quote_literal(p_cron), cardinality(v_fields),
                                   case when cardinality(v_fields) <> 1 then 's' else '' end),
      'Write minute, hour, day of the month, month and day of the week; a field for the second may stand before them.');
  end if;
  if cardinality(v_fields) = 5 then
    v_fields := array['0'] || v_fields;
  end if;
  v_spec.seconds := millrace.cron_field(p_cron, 'second', v_fields[1], 0, 59, '{}');
  v_spec.minutes := millrace.cron_field(p_cron, 'minute', v_fields[2], 0, 59, '{}');
  v_spec.hours := millrace.cron_field(p_cron, 'hour', v_fields[3], 0, 23, '{}');
  v_spec.days := millrace.cron_field(p_cron, 'day of the month', v_fields[4], 1, 31, '{}');
  v_spec.months := millrace.cron_field(p_cron, 'month', v_fields[5], 1, 12, '{jan,feb,mar,apr,may,jun,jul,aug,sep,oct,nov,dec}');
  v_spec.week_days := millrace.cron_field(p_cron, 'day of the week', v_fields[6], 0, 6, '{sun,mon,tue,wed,thu,fri,sat}');
  return v_spec;
end $$;

-- The values of one field: a list of ranges. Null for a field of days that names all of them.
create or replace function millrace.cron_field(p_cron text, p_field text, p_text text, p_least int, p_most int, p_names text[])
returns int[]
language plpgsql
immutable
as $$
declare
  v_is_day boolean := p_field like 'day%';
  v_part   text;
  v_values int[];
begin
  if v_is_day and p_text in ('*', '?') then
    return null;
  end if;
  foreach v_part in array string_to_array(p_text, ',') loop
    v_values := v_values || coalesce(millrace.cron_special(p_cron, p_field, v_part, p_names),
                                     millrace.cron_range(p_cron, p_field, v_part, p_least, p_most, p_names));
  end loop;
  v_values := array(select distinct v from unnest(v_values) v order by v);
  return case when not v_is_day or array(select generate_series(p_least, p_most)) <> v_values then v_values end;
end $$;

-- What only fields of days have: L, L-n, LW, nW; dL, Ld, d#n. Null for anything else.
create or replace function millrace.cron_special(p_cron text, p_field text, p_part text, p_names text[])
returns int[]
language plpgsql
immutable
as $$
declare
  v_match text[];
  v_value int;
begin
  if p_field = 'day of the month' then
    if p_part in ('lw', 'wl') then
      return array[300];
    end if;
    v_match := regexp_match(p_part, '^l(?:-([0-9]{1,2}))?$');
    if v_match is not null then
      v_value := coalesce(v_match[1]::int, 0);
      if v_value > 30 then
        perform millrace.refuse_cron(p_cron, p_field, p_part, 'no month has so many days before its last one');
      end if;
      return array[200 + v_value];
    end if;
    v_match := regexp_match(p_part, '^([0-9]+)w$');
    if v_match is not null then
      return array[100 + millrace.cron_value(p_cron, p_field, p_part, v_match[1], 1, 31, p_names)];
    end if;
  elsif p_field = 'day of the week' then
    v_match := coalesce(regexp_match(p_part, '^([0-9]|[a-z]{3})l$'), regexp_match(p_part, '^l([0-9])$'));
    if v_match is not null then
      return array[60 + millrace.cron_value(p_cron, p_field, p_part, v_match[1], 0, 7, p_names) % 7];
    end if;
    v_match := regexp_match(p_part, '^([0-9]|[a-z]{3})#([0-9]+)$');
    if v_match is not null then
      if v_match[2] !~ '^[1-5]$' then
        perform millrace.refuse_cron(p_cron, p_field, p_part, 'a month has the first to the fifth of a day of the week');
      end if;
      return array[10 * v_match[2]::int + millrace.cron_value(p_cron, p_field, p_part, v_match[1], 0, 7, p_names) % 7];
    end if;
  end if;
  return null;
end $$;

-- A value, a range or everything, with or without a step. A range whose end is before its start goes on at the least value: 22-2, FRI-MON.
create or replace function millrace.cron_range(p_cron text, p_field text, p_part text, p_least int, p_most int, p_names text[])
returns int[]
language plpgsql
immutable
as $$
declare
  v_size  int := p_most - p_least + 1;
  v_top   int := case when p_field = 'day of the week' then 7 else p_most end;      -- 7 is Sunday, too
  v_match text[] := regexp_match(p_part, '^(\*|[0-9a-z]+)(?:-([0-9a-z]+))?(?:/([0-9]+))?$');
  v_from  int;
  v_to    int;
  v_step  int := 1;
begin
  if v_match is null or v_match[1] = '*' and v_match[2] is not null then
    perform millrace.refuse_cron(p_cron, p_field, p_part, 'it is not a value, a range or a step');
  end if;
  if v_match[3] is not null then
    if v_match[3] !~ '^0*[1-9][0-9]?$' or v_match[3]::int >= v_size then
      perform millrace.refuse_cron(p_cron, p_field, p_part, format('a step must be from 1 to %s', v_size - 1));
    end if;
    v_step := v_match[3]::int;
  end if;
  v_from := case when v_match[1] = '*' then p_least else millrace.cron_value(p_cron, p_field, p_part, v_match[1], p_least, v_top, p_names) end;
  v_to := case
            when v_match[2] is not null then millrace.cron_value(p_cron, p_field, p_part, v_match[2], p_least, v_top, p_names)
            when v_match[1] = '*' or v_match[3] is not null then p_most
            else v_from
          end;
  if v_from > v_to then
    v_from := case when v_from > p_most then p_least else v_from end;
    v_to := case when v_from > v_to then v_to + v_size else v_to end;
  end if;
  return array(select (v - p_least) % v_size + p_least from generate_series(v_from, v_to, v_step) v);
end $$;

-- A number or a name.
create or replace function millrace.cron_value(p_cron text, p_field text, p_part text, p_value text, p_least int, p_most int, p_names text[])
returns int
language plpgsql
immutable
as $$
declare
  v_value int := array_position(p_names, p_value) - 1 + case when p_field = 'month' then 1 else 0 end;
begin
  if v_value is null and p_value ~ '^[0-9]{1,4}$' then
    v_value := p_value::int;
  end if;
  if v_value is null or not v_value between p_least and p_most then
    perform millrace.refuse_cron(p_cron, p_field, p_part,
      format('a value must be from %s to %s%s', p_least, p_most,
             case when cardinality(p_names) > 0 then format(', or one of %s', upper(array_to_string(p_names, ' '))) else '' end));
  end if;
  return v_value;
end $$;

-- A field that cannot be read (22023).
create or replace function millrace.refuse_cron(p_cron text, p_field text, p_part text, p_why text)
returns void
language plpgsql
immutable
as $$
begin
  perform millrace.refuse(format('cron %s: %s %s is wrong', quote_literal(p_cron), p_field, quote_literal(p_part)),
    upper(left(p_why, 1)) || substr(p_why, 2) || '.');
end $$;
