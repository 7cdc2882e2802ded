-- SPDX-License-Identifier: PostgreSQL
-- The captures, for the view: what stands in the catalogue, and what their sequences have counted (see capture_body).
create or replace function millrace.capture_list()
returns table (source text, queue text, kind text, events text[], condition text, columns text[], carry text[], unique_on text[], on_conflict text, notify text,
               strict boolean, enabled boolean, owner text, missed bigint, missed_at timestamptz, missed_code text)
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
begin
  return query
    select c.table_oid::regclass::text, c.settings ->> 'queue', c.settings ->> 'kind', millrace.capture_names(c.settings -> 'events'),
           c.settings ->> 'condition', millrace.capture_names(c.settings -> 'columns'), millrace.capture_names(c.settings -> 'carry'),
           millrace.capture_names(c.settings -> 'unique_on'), c.settings ->> 'on_conflict', c.settings ->> 'notify', (c.settings -> 'strict' = 'true') is true,
           c.fires, pg_get_userbyid(f.proowner)::text, coalesce(millrace.capture_counter(f.pronamespace, f.proname || '_missed'), 0),
           to_timestamp(l.last >> 26), millrace.capture_code(l.last & 67108863)
      from (select t.table_oid, t.function_oid, t.settings, bool_and(t.fires) as fires
              from millrace.capture_triggers() t
             group by t.table_oid, t.function_oid, t.settings) c
      join pg_proc f on f.oid = c.function_oid
     cross join lateral (select millrace.capture_counter(f.pronamespace, f.proname || '_missed_at') as last) l;
end $$;

create or replace function millrace.capture_names(p_list jsonb)
returns text[]
language sql
immutable
as $$
  select array_agg(e.name order by e.ord)
    from jsonb_array_elements_text(case when jsonb_typeof(p_list) = 'array' then p_list else '[]' end) with ordinality e(name, ord)
$$;

-- The value of a sequence beside a captured table; null: it has none, is not there, or may not be read. One that is dropped this moment must not
-- fail the whole list.
create or replace function millrace.capture_counter(p_schema oid, p_name text)
returns bigint
language plpgsql
stable
as $$
begin
  return (select case when has_sequence_privilege(c.oid, 'select') then pg_sequence_last_value(c.oid) end
            from pg_class c
           where c.relnamespace = p_schema
             and c.relname = p_name
             and c.relkind = 'S');
exception
  when others then
    return null;
end $$;

-- A SQLSTATE from its number.
create or replace function millrace.capture_code(p_number bigint)
returns text
language sql
immutable
as $$
  select string_agg(substr('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ', (p_number / d.weight % 36)::int + 1, 1), '' order by d.weight desc)
    from unnest(array[1679616, 46656, 1296, 36, 1]) d(weight)
   where p_number is not null
$$;

-- What health says of captures that have missed rows in the last day, for each queue.
create or replace function millrace.capture_verdicts(p_now timestamptz)
returns table (queue text, message text)
language sql
stable
as $$
  select c.queue, string_agg(format('capture of %s missed %s rows, the last at %s (%s)', c.source, c.missed,
                                    to_char(c.missed_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS"Z"'),
                                    case c.missed_code
                                      when 'MR002' then 'MR002, the queue is full'
                                      when 'MR004' then 'MR004, restored from another cluster: run millrace migrate'
                                      when '42501' then '42501, the table''s owner lacks a right or is another by now'
                                      when '42703' then '42703, the table has other columns: capture it again'
                                      else c.missed_code || ', the server''s log has the message'
                                    end), '; ' order by c.source)
    from millrace.capture_list() c
   where c.missed > 0
     and c.missed_at > p_now - interval '1 day'
   group by c.queue
$$;
