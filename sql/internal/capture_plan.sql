-- SPDX-License-Identifier: PostgreSQL
-- What capture() and its companions have to say to the database. They run with the rights of their callers, who may not read what stands here, and so
-- get it as statements, to be executed with their own rights: nothing here changes anything but a queue that is made.

-- The settings of a trigger, from its argument; null where it is none of ours. Anybody may make a trigger with any argument.
create or replace function millrace.capture_settings(p_args bytea)
returns jsonb
language plpgsql
immutable
as $$
declare
  v_settings jsonb;
begin
  v_settings := convert_from(substring(p_args for octet_length(p_args) - 1), getdatabaseencoding())::jsonb;
  return case when jsonb_typeof(v_settings) = 'object' and v_settings ? 'capture' and jsonb_typeof(v_settings -> 'queue') = 'string' then v_settings end;
exception
  when others then
    return null;
end $$;

-- The triggers of captures: of one table, or all.
create or replace function millrace.capture_triggers(p_source oid = null)
returns table (table_oid oid, function_oid oid, trigger_name text, fires boolean, settings jsonb)
language sql
stable
as $$
  select t.tgrelid, t.tgfoid, t.tgname::text, t.tgenabled <> 'D', s.settings
    from pg_trigger t
   cross join lateral (select millrace.capture_settings(t.tgargs) as settings offset 0) s
   where t.tgname like 'millrace\_%'
     and t.tgnargs = 1
     and not t.tgisinternal
     and (p_source is null or t.tgrelid = p_source)
     and s.settings is not null
$$;

-- The statements that remove, enable or disable a capture. p_must: there has to be one (MR003).
create or replace function millrace.capture_change(p_source regclass, p_queue text, p_verb text, p_must boolean = true)
returns text[]
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_plan text[];
begin
  perform millrace.at_home();
  select array_agg(format(case p_verb when 'remove' then 'drop trigger %1$I on %2$s' else 'alter table %2$s ' || p_verb || ' trigger %1$I' end, t.trigger_name, p_source)
                   order by t.trigger_name)
    into v_plan
    from millrace.capture_triggers(coalesce(p_source, 0)) t
   where t.settings ->> 'queue' = p_queue;
  if v_plan is null then
    if p_must then
      perform millrace.refuse_unknown(format('%s is not captured into queue %s', coalesce(p_source::text, 'null'), coalesce(quote_literal(left(p_queue, 200)), 'null')),
        'See the view millrace.captures for those there are.');
    end if;
    return '{}';
  end if;
  if p_verb = 'remove' then
    select v_plan || array_agg(s.statement order by s.statement)
      into v_plan
      from (select distinct f.oid, f.proname, n.nspname
              from millrace.capture_triggers(coalesce(p_source, 0)) t
              join pg_proc f on f.oid = t.function_oid
              join pg_namespace n on n.oid = f.pronamespace
             where t.settings ->> 'queue' = p_queue
               and f.proname like 'millrace\_%') f
     cross join lateral (values (format('drop function %I.%I()', f.nspname, f.proname)),
                                (format('drop sequence if exists %1$I.%2$I, %1$I.%3$I', f.nspname, f.proname || '_missed', f.proname || '_missed_at'))) s(statement);
  end if;
  return v_plan;
end $$;

-- A name for what is made beside the table, which nothing there has: millrace_, a piece of the queue's, and a few letters.
create or replace function millrace.capture_name(p_schema oid, p_table text, p_queue text)
returns text
language plpgsql
stable
as $$
declare
  v_slug text := left(regexp_replace(p_queue, '[^a-z0-9]+', '_', 'g'), 20);
  v_name text;
begin
  for i in 0..1000 loop
    v_name := format('millrace_%s_%s', v_slug, left(md5(p_table || ' ' || p_queue || ' ' || i), 8));
    exit when not exists (select from pg_proc f where f.pronamespace = p_schema and f.proname = v_name)
          and not exists (select from pg_class c where c.relnamespace = p_schema and c.relname like v_name || '\_%');
  end loop;
  return v_name;
end $$;

-- The statements that make a capture, in the place of one that is there. p_settings: what capture() was given.
create or replace function millrace.capture_plan(p_source regclass, p_settings jsonb)
returns text[]
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_settings jsonb := jsonb_strip_nulls(p_settings);
  v_table    record;
  v_place    text;
  v_name     text;
  v_owner    text;
  v_here     text := (select pg_get_userbyid(n.nspowner) from pg_namespace n where n.nspname = 'millrace');
begin
  perform millrace.at_home();
  perform millrace.capture_check(p_source, p_settings);
  perform millrace.queue_of(v_settings ->> 'queue');
  select c.relname, c.relnamespace, n.nspname, pg_get_userbyid(c.relowner) as owner
    into v_table
    from pg_class c
    join pg_namespace n on n.oid = c.relnamespace
   where c.oid = p_source;
  v_name := millrace.capture_name(v_table.relnamespace, v_table.relname, v_settings ->> 'queue');
  v_place := format('%I.%I', v_table.nspname, v_name);
  v_owner := quote_ident(v_table.owner);
  v_settings := v_settings || jsonb_build_object('capture', v_name, 'events',
    (select jsonb_agg(e.event order by e.ord)
       from (select e.event, min(e.ord) as ord from jsonb_array_elements_text(v_settings -> 'events') with ordinality e(event, ord) group by 1) e));
  return millrace.capture_change(p_source, v_settings ->> 'queue', 'remove', false)
         || array[
           format('create sequence %s_missed as bigint minvalue 0 start 1', v_place),
           format('create sequence %s_missed_at as bigint minvalue 0 start 1', v_place),
           format('comment on sequence %s_missed is %L', v_place, 'rows that a capture of millrace could not enqueue'),
           format('comment on sequence %s_missed_at is %L', v_place, 'when that was last, and why'),
           format('grant select on sequence %1$s_missed, %1$s_missed_at to %2$I', v_place, v_here),
           format('alter sequence %s_missed owner to %s', v_place, v_owner),
           format('alter sequence %s_missed_at owner to %s', v_place, v_owner),
           format('create function %s() returns trigger language plpgsql security definer set search_path = pg_catalog, pg_temp set timezone = ''UTC'''
                  || ' set intervalstyle = ''iso_8601'' set bytea_output = ''hex'' set extra_float_digits = 1 set jit = off as %L',
                  v_place, millrace.capture_body(v_name, v_settings || jsonb_build_object('table', p_source::oid::bigint))),
           format('comment on function %s() is %L', v_place, format('enqueues changes into queue %s of millrace', v_settings ->> 'queue'))]
         || (select array_agg(format('create trigger %I after %s on %s%s for each statement execute function %s(%L)', v_name || '_' || e.event, e.event, p_source,
                                     case e.event when 'insert' then ' referencing new table as new_rows'
                                                  when 'update' then ' referencing old table as old_rows new table as new_rows'
                                                  when 'delete' then ' referencing old table as old_rows' else '' end,
                                     v_place, v_settings))
               from jsonb_array_elements_text(v_settings -> 'events') e(event))
         || array[format('revoke all on function %s() from public', v_place),
                  format('alter function %s() owner to %s', v_place, v_owner)];
end $$;
