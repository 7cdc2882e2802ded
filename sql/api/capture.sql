-- SPDX-License-Identifier: PostgreSQL
-- Captures a table: each insert, update or delete of rows enqueues a job for each of them, in the writer's transaction. Runs with the rights of its
-- caller, who must own the table, and what it makes (triggers, a function and two sequences beside the table) has the rights of the table's owner, who
-- must be able to enqueue; those who write need no rights here. Called again for the same table and queue it replaces what was there.
-- events: insert, update, delete, truncate. condition: an expression over new and old; only rows for which it is true. columns: of updates only
-- those that changed one of these. unique_on: jobs have a unique key of these columns; on_conflict: ignore, or replace: a job that waits gets the new
-- values. carry: the columns that jobs hold, instead of all. notify: a channel that is told, too. strict: what cannot be enqueued cannot be written;
-- otherwise it is written, and counted: see the view captures and health.
-- A job's args: event, table, new (insert, update), old (update, delete). Waits for transactions that write the table, as every new trigger does.
-- Errors: 22023 bad argument, also a condition that is none, 42501 not the owner, or an owner who may not enqueue, MR004 restored schema.
create or replace function millrace.capture(
  source regclass,
  queue text,
  kind text,
  events text[] = '{insert}',
  condition text = null,
  columns text[] = null,
  unique_on text[] = null,
  on_conflict text = 'ignore',
  carry text[] = null,
  notify text = null,
  strict boolean = false)
returns void
language plpgsql
volatile
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_statement text;
  v_none      record;
begin
  if not coalesce((select pg_has_role(c.relowner, 'usage') from pg_class c where c.oid = source), true) then
    raise exception using errcode = '42501', message = format('must be owner of table %s', source), hint = 'Call capture as the role that owns the table.';
  end if;
  v_statement := format('select from (select (null::%1$s).* where false) new cross join (select (null::%1$s).* where false) old where ', source);
  begin
    -- Once with and once without parentheses: only an expression can stand in both. As a cursor, which takes a single statement.
    if condition is not null and source is not null and exists (select from pg_class c where c.oid = source and c.relkind in ('r', 'p')) then
      for v_none in execute v_statement || condition loop
        null;
      end loop;
      for v_none in execute v_statement || '(' || condition || E'\n)' loop
        null;
      end loop;
    end if;
  exception
    when others then
      raise exception using errcode = '22023', message = format('condition %s: %s', quote_literal(left(condition, 200)), sqlerrm),
        hint = 'Write a condition over new and old, such as new.status = ''open''. Names of functions, types and tables need their schema.';
  end;
  perform millrace.capture_run(millrace.capture_plan(source, jsonb_build_object(
    'queue', queue, 'kind', kind, 'events', events, 'condition', condition, 'columns', columns, 'unique_on', unique_on, 'on_conflict', on_conflict,
    'carry', carry, 'notify', notify, 'strict', strict)));
end $$;
comment on function millrace.capture(regclass, text, text, text[], text, text[], text[], text, text[], text, boolean) is
  'enqueues the changes of a table';
