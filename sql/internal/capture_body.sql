-- SPDX-License-Identifier: PostgreSQL
-- The text of the function that capture() makes for a table: one for all events, because each of its triggers has transition tables of its own. It names
-- neither the table nor its columns but those that the settings name, so that it goes on when the table is renamed or gets other columns.

-- The query for the rows of an event: args, and key where there are unique keys. new and old are what the condition speaks of; the rows themselves go
-- to the jobs whole. The rows of an update come in pairs because both transition tables are written row by row and read in that order.
-- Columns that were dropped are left out of the rows at once (the inner select): where a row still has them, the server takes the columns behind them for
-- others. The number of the table is for plans: they do not depend on the table of a transition table, and a session that has one from before a
-- column was dropped would fail with it for ever. A constant of this type makes them depend; in a restored database it is another one's number, and does nothing.
create or replace function millrace.capture_query(p_event text, p_settings jsonb)
returns text
language plpgsql
immutable
as $$
declare
  v_here  text := case p_event when 'delete' then 'old' else 'new' end;
  v_parts text[] := case p_event when 'update' then array['old', 'new'] else array[v_here] end;
begin
  return format('select to_jsonb(millrace_event) as args, %s as key', coalesce((
                  select format('(millrace_table || '' '' || jsonb_build_array(%s)::text) collate "C"', string_agg(format('%s.%I', v_here, c.name), ', ' order by c.ord))
                    from jsonb_array_elements_text(p_settings -> 'unique_on') with ordinality c(name, ord)
                  having count(*) > 0), 'null::text'))
         || case p_event
              when 'update' then '
  from (select row_number() over () as millrace_n, millrace_row.*::record as millrace_row from (select millrace_row.* from new_rows millrace_row) millrace_row) millrace_new
  join (select row_number() over () as millrace_n, millrace_row.*::record as millrace_row from (select millrace_row.* from old_rows millrace_row) millrace_row) millrace_old on millrace_old.millrace_n = millrace_new.millrace_n
 cross join lateral (select (millrace_new.millrace_row).*) new
 cross join lateral (select (millrace_old.millrace_row).*) old'
              else replace(replace('
  from (select millrace_row.*::record as millrace_row from (select millrace_row.* from HERE_rows millrace_row) millrace_row) millrace_HERE
 cross join lateral (select (millrace_HERE.millrace_row).*) HERE
  left join lateral (select HERE.* where false) OTHER on true', 'HERE', v_here), 'OTHER', case v_here when 'new' then 'old' else 'new' end)
            end
         || (select string_agg(format(E'\n cross join lateral (select %s) millrace_%s_part', f.columns, p.side), '' order by p.ord)
               from unnest(v_parts) with ordinality p(side, ord)
              cross join lateral (select coalesce((select string_agg(format('%s.%I', p.side, c.name), ', ' order by c.ord)
                                                     from jsonb_array_elements_text(p_settings -> 'carry') with ordinality c(name, ord)), 'null') as columns) f)
         || format(E'\n cross join lateral (select %L::text as event, millrace_table as "table", %s) millrace_event', p_event,
                   (select string_agg(case when p_settings ? 'carry' then format('millrace_%1$s_part as "%1$s"', p.side) else format('millrace_%1$s.millrace_row as "%1$s"', p.side) end,
                                      ', ' order by p.ord)
                      from unnest(v_parts) with ordinality p(side, ord)))
         || format(E'\n where %L::regclass is not null\n   and (%s\n)', p_settings ->> 'table', coalesce(p_settings ->> 'condition', 'true'))
         || case when p_event = 'update' then coalesce((
              select format(E'\n   and row(%s)::record operator(pg_catalog.*<>) row(%s)::record', string_agg(format('new.%I', c.name), ', ' order by c.ord),
                            string_agg(format('old.%I', c.name), ', ' order by c.ord))
                from jsonb_array_elements_text(p_settings -> 'columns') with ordinality c(name, ord)
              having count(*) > 0), '') else '' end;
end $$;

-- What is done for one event. Few rows are one array and one call; of many each piece of 32 MiB is, because a call takes about six times as much memory
-- as its array, which could not be larger than a gigabyte either. Pieces with unique keys are in the order of the keys: two such writers wait for each other, and not in a circle.
create or replace function millrace.capture_branch(p_event text, p_settings jsonb)
returns text
language plpgsql
immutable
as $$
declare
  v_keyed boolean := p_settings ? 'unique_on' and p_event <> 'truncate';
  v_put   text := format('perform millrace.capture_put(%L, %L, millrace_table, millrace_args, %s, %L, ', p_settings ->> 'queue', p_settings ->> 'kind',
                         case when v_keyed then 'millrace_keys' else 'null' end, p_settings ->> 'on_conflict');
begin
  if p_event = 'truncate' then
    return format(E'millrace_args := array[jsonb_build_object(''event'', ''truncate'', ''table'', millrace_table)];\n%s%L);', v_put, p_settings ->> 'notify');
  end if;
  return format($branch$select array_agg(millrace_some.args), %2$s
  into millrace_args, millrace_keys
  from (%1$s
 limit 500) millrace_some;
if millrace_args is null then
  return null;
elsif cardinality(millrace_args) < 500 then
  millrace_found := cardinality(millrace_args);
  %4$s%5$L);
else
  millrace_args := null;
  millrace_keys := null;
  for millrace_one, millrace_key in
%3$s
  loop
    millrace_args := array_append(millrace_args, millrace_one);
    %6$s
    millrace_n := millrace_n + 1;
    millrace_bytes := millrace_bytes + pg_column_size(millrace_one);
    if millrace_bytes > 33554432 then
      %4$snull);
      millrace_args := null;
      millrace_keys := null;
      millrace_bytes := 0;
    end if;
  end loop;
  millrace_found := millrace_n;
  if millrace_args is not null then
    %4$snull);
  end if;
  %7$s
end if;$branch$,
    millrace.capture_query(p_event, p_settings),
    case when v_keyed then 'array_agg(millrace_some.key)' else 'null' end,
    millrace.capture_query(p_event, p_settings) || case when v_keyed then E'\n order by key' else '' end,
    v_put, p_settings ->> 'notify',
    case when v_keyed then 'millrace_keys := array_append(millrace_keys, millrace_key);' else '' end,
    case when p_settings ? 'notify' then format('perform pg_notify(%L, jsonb_build_object(''event'', %L, ''table'', millrace_table, ''rows'', millrace_n)::text);',
                                                p_settings ->> 'notify', p_event) else '' end);
end $$;

-- The whole body. What goes wrong is raised, in a capture that is strict; in any other it is counted, with nothing but what the table's owner has: the role may
-- have lost all rights here. Counts are kept in sequences, which are no part of the transaction: nobody waits for them, and a rollback does not take
-- them back. The first counts rows, the second has when it was, in seconds since 1970, and the SQLSTATE as a number of base 36.
create or replace function millrace.capture_body(p_name text, p_settings jsonb)
returns text
language plpgsql
immutable
as $$
declare
  v_work text := format($work$if (select pg_get_userbyid(c.relowner) from pg_class c where c.oid = tg_relid) <> current_user then
  raise exception using errcode = '42501', message = format('%%s belongs to somebody else than when it was captured', millrace_table),
    hint = 'Call millrace.capture again.';
end if;
case tg_op
%s
end case;$work$,
    (select string_agg(format(E'when %L then\n%s', upper(e.event), millrace.capture_branch(e.event, p_settings)), E'\n')
       from jsonb_array_elements_text(p_settings -> 'events') e(event)));
begin
  return format($body$
#variable_conflict use_column
-- Made by millrace.capture. It is not meant to be changed: call that again.
declare
  millrace_table text := format('%%I.%%I', tg_table_schema, tg_table_name);
  millrace_args  jsonb[];
  millrace_keys  text[];
  millrace_one   jsonb;
  millrace_key   text;
  millrace_n     bigint := 0;
  millrace_found bigint := 0;
  millrace_bytes bigint := 0;
  millrace_state text;
  millrace_error text;
begin
$body$)
  || case when (p_settings ->> 'strict')::boolean then v_work else format($body$begin
%s
exception when others then
  get stacked diagnostics millrace_state = returned_sqlstate, millrace_error = message_text;
  begin
    millrace_n := millrace_found;
    %s
    raise warning using errcode = '01000', message = format('millrace: %%s rows of %%s were not enqueued into queue %%s: %%s', millrace_n, millrace_table, %L, millrace_error),
      hint = 'The rows are written. See millrace.captures.';
    perform nextval(c.oid)
       from pg_trigger t
       join pg_proc p on p.oid = t.tgfoid
       join pg_class c on c.relnamespace = p.pronamespace and c.relname = %L
      cross join generate_series(1, millrace_n)
      where t.tgrelid = tg_relid
        and t.tgname = tg_name;
    perform setval(c.oid, (extract(epoch from clock_timestamp())::bigint << 26)
                          + (select sum((strpos('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ', substr(millrace_state, i, 1)) - 1) * (array[1679616, 46656, 1296, 36, 1])[i])::bigint
                               from generate_series(1, 5) i))
       from pg_trigger t
       join pg_proc p on p.oid = t.tgfoid
       join pg_class c on c.relnamespace = p.pronamespace and c.relname = %L
      where t.tgrelid = tg_relid
        and t.tgname = tg_name;
  exception when others then
    null;
  end;
end;$body$, v_work, millrace.capture_count_text(p_settings), p_settings ->> 'queue', p_name || '_missed', p_name || '_missed_at') end
  || E'\nreturn null;\nend';
end $$;

-- Where not all rows were gathered, all of the statement count: also those of a piece that was enqueued already are taken back, and which of the
-- others the condition would have let through is not known.
create or replace function millrace.capture_count_text(p_settings jsonb)
returns text
language sql
immutable
as $$
  select format(E'if millrace_n = 0 then\ncase tg_op\n%s\nend case;\nend if;',
                string_agg(format(E'when %L then\nmillrace_n := %s;', upper(e.event),
                                  case when e.event = 'truncate' then '1'
                                       else format('(select count(*) from %s_rows)', case e.event when 'delete' then 'old' else 'new' end) end), E'\n'))
    from jsonb_array_elements_text(p_settings -> 'events') e(event)
$$;
