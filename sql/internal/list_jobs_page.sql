-- SPDX-License-Identifier: PostgreSQL
-- A page of jobs, for list_jobs. Jobs are in four places; which of them can have some depends on the status that is asked for. Each place is a source
-- with a place of its own to go on from, and gives up to a page of jobs, newest first; the newest of all are the page. Each source looks at a bounded
-- number of rows, so that a page may have fewer jobs than there are.
create or replace function millrace.list_jobs_page(p_now timestamptz, p_filter jsonb)
returns jsonb
language plpgsql
as $$
declare
  c_keys    constant text[] := array['queue', 'status', 'kind', 'tenant', 'ref', 'source', 'error', 'id', 'limit', 'after'];
  c_sources constant jsonb := '{"scheduled": ["delayed"], "paused": ["delayed"], "waiting": ["delayed"], "available": ["log", "delayed"],
                                "running": ["running"], "completed": ["log", "archive"], "cancelled": ["marked", "log", "archive"],
                                "expired": ["log", "delayed", "archive"], "dead": ["dead"], "any": ["log", "delayed", "dead", "archive"]}';
  c_time    constant interval := '100 ms';      -- that sources may take together; each gets a little in any case
  v_f       jsonb := millrace.page_filter(p_filter, c_keys);
  v_place   jsonb := coalesce(millrace.page_place(v_f), '{}');
  v_until   timestamptz := clock_timestamp() + c_time;
  v_sources text[];
  v_source  text;
  v_names   text[] := '{}';
  v_parts   millrace.page_part[] := '{}';
begin
  perform millrace.at_home();
  if not c_sources ? coalesce(v_f ->> 'status', 'any') or v_f ->> 'status' = 'any' then
    perform millrace.refuse(format('there is no status %s', quote_literal(left(v_f ->> 'status', 80))),
      'A status is scheduled, paused, waiting, available, running, completed, cancelled, expired or dead.');
  end if;
  if v_f ? 'queue' then
    v_f := v_f || jsonb_build_object('queue_id', (millrace.queue_known(v_f ->> 'queue')).queue_id);
  end if;
  if v_f ? 'id' then
    return millrace.list_one(v_f);
  end if;
  v_sources := array(select jsonb_array_elements_text(c_sources -> coalesce(v_f ->> 'status', 'any')));
  if v_f ? 'ref' and v_sources && '{log,running}' and millrace.ref_rare(v_f ->> 'ref') and not v_place ?| '{log,running,marked}' then
    -- The log has an index for it, and knows every status that a job there can have.
    v_sources := array['ref'] || array_remove(array_remove(array_remove(v_sources, 'log'), 'running'), 'marked');
  end if;
  for v_source in select s from unnest(v_sources) s loop
    continue when v_place -> v_source = 'true';      -- nothing more there
    if v_place ? v_source and jsonb_typeof(v_place -> v_source) <> 'object' then
      perform millrace.refuse_cursor();
    end if;
    v_names := v_names || v_source;
    v_parts := v_parts || case v_source
                            when 'ref' then millrace.part_ref(p_now, v_f, v_place -> v_source, v_until)
                            when 'log' then millrace.part_log(p_now, v_f, v_place -> v_source, v_until)
                            when 'marked' then millrace.part_marked(v_f, v_place -> v_source, v_until)
                            when 'running' then millrace.part_running(v_f, v_place -> v_source, v_until)
                            when 'delayed' then millrace.part_delayed(p_now, v_f, v_place -> v_source, v_until)
                            when 'dead' then millrace.part_dead(v_f, v_place -> v_source, v_until)
                            when 'archive' then millrace.part_archive(p_now, v_f, v_place -> v_source, v_until)
                          end;
  end loop;
  return millrace.page_merged(v_f, v_place, v_names, v_parts);
end $$;

-- The page out of its parts. Of a source whose jobs all went into it the next page begins where the source stopped, of another behind the last that did.
create or replace function millrace.page_merged(p_f jsonb, p_place jsonb, p_names text[], p_parts millrace.page_part[])
returns jsonb
language plpgsql
as $$
declare
  v_faces jsonb;
  v_used  jsonb;
  v_part  millrace.page_part;
  v_n     int;
  v_seen  bigint := (select coalesce(sum(p.seen), 0) from unnest(p_parts) p);
begin
  with candidate as (
    select p.ord as source, f.ord as nth, f.key, f.face
      from unnest(p_parts) with ordinality p(keys, places, faces, place, seen, ord)
     cross join lateral unnest(p.keys, p.faces) with ordinality f(key, face, ord)),
  chosen as (
    -- A source is taken in its own order, even where that is not quite the order of keys.
    select c.source, c.nth, c.face, min(c.key) over (partition by c.source order by c.nth) as rank
      from candidate c
     order by rank desc, c.source, c.nth
     limit (p_f ->> 'limit')::int)
  select coalesce(jsonb_agg(c.face order by c.rank desc, c.source, c.nth), '[]'), coalesce((select jsonb_object_agg(u.source, u.n)
                                                                                             from (select h.source, count(*) as n from chosen h group by h.source) u), '{}')
    into v_faces, v_used
    from chosen c;
  for i in 1 .. cardinality(p_names) loop
    v_part := p_parts[i];
    v_n := coalesce((v_used ->> i::text)::int, 0);
    if v_n = cardinality(v_part.keys) then
      p_place := p_place || jsonb_build_object(p_names[i], coalesce(v_part.place, 'true'));
    elsif v_n > 0 then
      p_place := p_place || jsonb_build_object(p_names[i], v_part.places[v_n]);
    end if;
  end loop;
  if exists (select from unnest(p_names) s where p_place -> s is distinct from 'true') then
    return jsonb_build_object('jobs', v_faces, 'complete', false, 'next', millrace.page_cursor(p_f - 'queue_id', p_place), 'looked_at', v_seen);
  end if;
  return jsonb_build_object('jobs', v_faces, 'complete', true, 'next', null, 'looked_at', v_seen);
end $$;

-- The page of a filter that names a job.
create or replace function millrace.list_one(p_f jsonb)
returns jsonb
language plpgsql
as $$
declare
  v_id  bigint := (p_f ->> 'id')::bigint;
  v_row record;
begin
  select l.*
    into v_row
    from millrace.job_list l
   where l.id = v_id
     and l.row_id >= v_id
     and l.row_id <= v_id | 31
     and coalesce(l.queue = p_f ->> 'queue', true)
     and coalesce(l.status = p_f ->> 'status', true)
     and coalesce(l.kind = p_f ->> 'kind', true)
     and (p_f ->> 'tenant' is null or l.tenant = p_f ->> 'tenant')
     and (p_f ->> 'source' is null or l.source = p_f ->> 'source')
     and (p_f ->> 'ref' is null or l.ref = p_f ->> 'ref')
     and (p_f ->> 'error' is null or strpos(l.error, p_f ->> 'error') > 0)
   limit 1;
  return jsonb_build_object('jobs', case when v_row.id is null then '[]'::jsonb
                                         else jsonb_build_array(millrace.page_face(to_jsonb(v_row) - 'row_id', v_row.args, v_row.meta)) end,
                            'complete', true, 'next', null, 'looked_at', case when v_row.id is null then 0 else 1 end);
end $$;

-- Whether what a filter names besides queue and status fits.
create or replace function millrace.page_fits(p_f jsonb, p_kind text, p_tenant text, p_ref text, p_source text, p_error text)
returns boolean
language sql
immutable
as $$
  select coalesce(p_kind = p_f ->> 'kind', true)
     and (p_f ->> 'tenant' is null or p_tenant is not distinct from p_f ->> 'tenant')
     and (p_f ->> 'ref' is null or p_ref is not distinct from p_f ->> 'ref')
     and (p_f ->> 'source' is null or coalesce(p_source, 'sql') = p_f ->> 'source')
     and (p_f ->> 'error' is null or coalesce(strpos(p_error, p_f ->> 'error'), 0) > 0)
$$;
