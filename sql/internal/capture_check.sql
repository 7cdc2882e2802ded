-- SPDX-License-Identifier: PostgreSQL
-- Checks what capture() was given: the table, and the settings, which are as capture() has them by name.

-- Refuses a relation that cannot be captured.
create or replace function millrace.capture_check_table(p_source regclass)
returns void
language plpgsql
as $$
declare
  v_table record;
begin
  select c.relkind, c.relispartition, c.relpersistence, c.relnamespace, c.relowner
    into v_table
    from pg_class c
   where c.oid = p_source;
  if not found then
    perform millrace.refuse('source must be a table, not null or one that was dropped', 'Pass the name of a table, such as ''public.orders''.');
  elsif v_table.relkind not in ('r', 'p') then
    perform millrace.refuse(format('%s is %s: only tables can be captured', p_source,
                                   case v_table.relkind when 'v' then 'a view' when 'm' then 'a materialized view' when 'f' then 'a foreign table'
                                                        when 'S' then 'a sequence' else 'no table' end),
      'Triggers with transition tables need a table: capture the one that is behind it, where it is.');
  elsif v_table.relispartition then
    perform millrace.refuse(format('%s is a partition: what is written through its parent would be missed', p_source),
      format('Capture %s instead.', (select i.inhparent::regclass from pg_inherits i where i.inhrelid = p_source)));
  elsif v_table.relpersistence = 't' then
    perform millrace.refuse(format('%s is a temporary table', p_source), 'Call enqueue_many in the session that has it.');
  elsif v_table.relnamespace in ('millrace'::regnamespace, 'pg_catalog'::regnamespace, 'information_schema'::regnamespace) then
    perform millrace.refuse(format('%s belongs to the system', p_source), 'Capture tables of applications.');
  end if;
  if not has_schema_privilege(v_table.relowner, 'millrace', 'usage')
     or not has_function_privilege(v_table.relowner, 'millrace.capture_put(text, text, text, jsonb[], text[], text, text)', 'execute') then
    raise exception using errcode = '42501',
      message = format('%s, who owns %s, may not enqueue', pg_get_userbyid(v_table.relowner), p_source),
      hint = format('Captured rows are enqueued with the rights of the table''s owner: grant millrace_producer to %I.', pg_get_userbyid(v_table.relowner));
  end if;
end $$;

-- Checks one of the settings that are lists of names: of columns of the table, or of events.
create or replace function millrace.capture_check_list(p_source regclass, p_setting text, p_list jsonb, p_known text[], p_what text)
returns void
language plpgsql
as $$
declare
  v_bad text;
begin
  if p_list is null or p_list = 'null' then
    return;
  end if;
  if p_list = '[]' then
    perform millrace.refuse(format('%s must not be empty', p_setting), format('Name at least one %s, or leave it out.', p_what));
  end if;
  select coalesce(e #>> '{}', 'null')
    into v_bad
    from jsonb_array_elements(p_list) e
   where jsonb_typeof(e) <> 'string'
      or e #>> '{}' <> all (p_known)
   limit 1;
  if found then
    perform millrace.refuse(format('%s: %s is no %s of %s', p_setting, quote_literal(left(v_bad, 200)), p_what, p_source),
      format('Its %ss are %s.', p_what, array_to_string(p_known[1:40], ', ')));
  end if;
end $$;

create or replace function millrace.capture_check(p_source regclass, p_settings jsonb)
returns void
language plpgsql
as $$
declare
  v_columns text[] := array(select a.attname
                              from pg_attribute a
                             where a.attrelid = p_source
                               and a.attnum > 0
                               and not a.attisdropped
                             order by a.attnum);
  v_setting text;
begin
  perform millrace.capture_check_table(p_source);
  perform millrace.check_job('', p_settings ->> 'kind', '{}', p_settings ->> 'queue', 50, null, null, coalesce(p_settings -> 'unique_on' ->> 0, null), null, null,
                             null, null, null, null, p_settings ->> 'on_conflict');
  if p_settings ->> 'events' is null then
    perform millrace.refuse('events must not be null', 'Pass some of insert, update, delete, truncate.');
  end if;
  perform millrace.capture_check_list(p_source, 'events', p_settings -> 'events', array['insert', 'update', 'delete', 'truncate'], 'event');
  foreach v_setting in array array['columns', 'unique_on', 'carry'] loop
    perform millrace.capture_check_list(p_source, v_setting, p_settings -> v_setting, v_columns, 'column');
  end loop;
  if p_settings ->> 'columns' is not null and not p_settings -> 'events' ? 'update' then
    perform millrace.refuse('columns are for updates, and update is not among the events', 'Add update to events, or leave columns out; carry says what jobs hold.');
  end if;
  if octet_length(p_settings ->> 'notify') not between 1 and 63 then
    perform millrace.refuse(format('notify must be the name of a channel, 1 to 63 bytes, not %s', octet_length(p_settings ->> 'notify')),
      'Leave it out where nobody listens.');
  end if;
  if p_settings ->> 'strict' is null then
    perform millrace.refuse('strict must not be null', 'Pass true or false, or leave it out.');
  end if;
end $$;
