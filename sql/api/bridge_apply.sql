-- SPDX-License-Identifier: PostgreSQL
-- Applies entries of a stream, each once: those that bridge_admit gives are passed to a function, or enqueued, in this transaction, all or none. Runs
-- with its caller's rights, and its search_path: so does the function. `fields` has an object for each id. Settings:
--   sql    function(jsonb[]) that gets {"id", "stream", "data"} for each entry; where it returns rows (id text, error text), those entries become
--          dead letters, and what it did stays
--   queue, kind, priority; kind_from, tenant_from, ordering_key_from, unique_key_from: fields whose text it is. A job for each entry, with its id as ref
--   json   the field that is JSON and is the data; otherwise the data are the fields
--   bury   the error with which the entries become dead letters instead
-- Errors: those of the function and of enqueue_jobs; 22023 an entry is not what was expected; 42883 no such function; those of bridge_admit.
create or replace function millrace.bridge_apply(bridge text,
  stream text,
  stream_group text,
  ids text[],
  fields jsonb[],
  contiguous boolean = false,
  settings jsonb = '{}')
returns table (applied int, repeated int, dead int)
language plpgsql
volatile
as $$
declare
  v_queue   text := coalesce(settings ->> 'queue', bridge);
  v_kind    text := coalesce(settings ->> 'kind', bridge);
  v_entries jsonb[];
  v_new     int[];
  v_call    record;
  v_bad     record;
begin
  if ids is null or cardinality(ids) is distinct from cardinality(fields) then
    raise exception using errcode = '22023',
      message = format('%s ids and %s fields do not go together', coalesce(cardinality(ids)::text, 'null'), coalesce(cardinality(fields)::text, 'null')),
      hint = 'Pass one object of fields for each id.';
  end if;
  v_new := millrace.bridge_admit(bridge, stream, stream_group, ids, contiguous);
  applied := cardinality(v_new);
  repeated := cardinality(ids) - applied;
  dead := 0;
  if applied = 0 then
    return next;
    return;
  end if;
  if settings ->> 'bury' is not null then
    perform millrace.bridge_bury(bridge, stream, stream_group, ids[n], v_queue, v_kind, fields[n], settings ->> 'bury') from unnest(v_new) n;
    dead := applied;
    applied := 0;
    return next;
    return;
  end if;

  if settings ->> 'json' is not null then
    select ids[n] as id
      into v_bad
      from unnest(v_new) n
     where jsonb_typeof(fields[n] -> (settings ->> 'json')) is distinct from 'string'
     limit 1;
    if found then
      raise exception using errcode = '22023', message = format('entry %s has no text in the field %s', v_bad.id, quote_literal(settings ->> 'json')),
        hint = 'The setting json names the field that holds the data.';
    end if;
  end if;
  v_entries := array(select jsonb_build_object('id', ids[n], 'stream', stream, 'data',
                              case when settings ->> 'json' is not null then (fields[n] ->> (settings ->> 'json'))::jsonb else fields[n] end)
                       from unnest(v_new) n
                      order by n);

  if settings ->> 'sql' is not null then
    select format('%I.%I', s.nspname, p.proname) as name, p.prorettype = 'record'::regtype or t.typtype = 'c' as rows
      into v_call
      from pg_catalog.pg_proc p
      join pg_catalog.pg_namespace s on s.oid = p.pronamespace
      join pg_catalog.pg_type t on t.oid = p.prorettype
     where p.oid = to_regprocedure((settings ->> 'sql') || '(jsonb[])');
    if not found then
      raise exception using errcode = '42883', message = format('there is no function %s(jsonb[])', settings ->> 'sql'),
        hint = 'Create it, or name it with its schema; it takes the entries of a batch as jsonb[].';
    end if;
    if not v_call.rows then
      execute format('select %s($1)', v_call.name) using v_entries;
    else
      for v_bad in execute format('select r.answer ->> ''id'' as id, r.answer ->> ''error'' as error from (select to_jsonb(f) as answer from %s($1) f) r', v_call.name)
                     using v_entries
      loop
        if array_position(ids, v_bad.id) is null or array_position(ids, v_bad.id) <> all (v_new) then
          raise exception using errcode = '22023', message = format('%s returned the id %s, which is not in its batch', v_call.name, coalesce(quote_literal(left(v_bad.id, 80)), 'null')),
            hint = 'It returns rows (id text, error text) for entries that cannot be applied, and no others.';
        end if;
        perform millrace.bridge_bury(bridge, stream, stream_group, v_bad.id, v_queue, v_kind, fields[array_position(ids, v_bad.id)],
                                     coalesce(v_bad.error, 'the function gave no reason'));
        dead := dead + 1;
        applied := applied - 1;
      end loop;
    end if;
    return next;
    return;
  end if;

  perform count(*)
     from millrace.enqueue_jobs((
       select jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
                          'kind', case when settings ? 'kind_from' then coalesce(e.data ->> (settings ->> 'kind_from'), '') else v_kind end, 'queue', v_queue,
                          'priority', settings -> 'priority', 'tenant', e.data ->> (settings ->> 'tenant_from'), 'ordering_key', e.data ->> (settings ->> 'ordering_key_from'),
                          'unique_key', e.data ->> (settings ->> 'unique_key_from'), 'ref', e.id,
                          'meta', jsonb_build_object('bridge', bridge, 'stream', stream, 'group', stream_group, 'entry', e.id)))
                        || jsonb_build_object('args', e.data) order by e.ord)
         from (select e.entry ->> 'id' as id, e.entry -> 'data' as data, e.ord
                 from unnest(v_entries) with ordinality e(entry, ord)) e), 'bridge:' || bridge);
  return next;
end $$;
comment on function millrace.bridge_apply(text, text, text, text[], jsonb[], boolean, jsonb) is
  'applies entries of a stream, each once: calls a function with them or enqueues them';
