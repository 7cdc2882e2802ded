-- SPDX-License-Identifier: PostgreSQL
-- system with the time as an argument.
create or replace function millrace.system_at(p_now timestamptz)
returns jsonb
language plpgsql
as $$
begin
  perform millrace.at_home();
  return jsonb_build_object(
    'at', p_now, 'server_version', current_setting('server_version'),
    'schema_version', (select max(m.migration_number) from millrace.schema_migration m),
    'version', (select f.program_version from millrace.schema_functions f limit 1),
    'database_bytes', pg_database_size(current_database()),
    'millrace_bytes', millrace.schema_bytes(),
    'segments', millrace.segment_faces(p_now),
    'xmin', coalesce((select jsonb_agg(jsonb_strip_nulls(to_jsonb(h)) order by h.age_seconds desc) from millrace.xmin_holders(p_now) h), '[]'),
    'maintain', millrace.rounds_face(),
    'connections', jsonb_build_object('used', (select count(*) from pg_stat_activity a where a.backend_type = 'client backend'),
                                      'max', current_setting('max_connections')::int),
    'settings', (select jsonb_agg(jsonb_build_object('name', s.name, 'value', current_setting(s.name)) order by s.name)
                   from pg_settings s
                  where s.name in ('autovacuum', 'checkpoint_timeout', 'default_transaction_isolation', 'effective_cache_size', 'fsync', 'full_page_writes',
                                   'idle_in_transaction_session_timeout', 'jit', 'lock_timeout', 'max_connections', 'max_prepared_transactions',
                                   'max_wal_size', 'shared_buffers', 'statement_timeout', 'synchronous_commit', 'track_counts', 'wal_compression',
                                   'wal_level', 'work_mem')),
    'disk', jsonb_strip_nulls(jsonb_build_object('data_directory', millrace.data_directory())));
end $$;

-- Where the server keeps its data: told to callers who may know it, where the owner of the schema does. Null otherwise.
create or replace function millrace.data_directory()
returns text
language plpgsql
stable
as $$
begin
  if pg_has_role(session_user, 'pg_read_all_settings', 'member') and pg_has_role(current_user, 'pg_read_all_settings', 'member') then
    return current_setting('data_directory');
  end if;
  return null;
end $$;

-- What the schema takes on the disk, with indexes and what lies out of line.
create or replace function millrace.schema_bytes()
returns bigint
language sql
set enable_seqscan = on
as $$
  select coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint
    from pg_class c
   where c.relnamespace = 'millrace'::regnamespace
     and c.relkind in ('r', 'S')
$$;

-- The segments of the log, newest first: open, closed (a transaction may still write to it), sealed, or leaving (parked, about to be truncated).
-- jobs: rows and jobs of packs that the ledger counted while it was open.
create or replace function millrace.segment_faces(p_now timestamptz)
returns jsonb
language plpgsql
as $$
declare
  v_open int := pg_sequence_last_value('millrace.seg_seq'::regclass);
  v_jobs jsonb := millrace.segment_jobs();
  v_pins jsonb := (select jsonb_object_agg(p.seg, p.queues)
                     from (select p.seg, jsonb_agg(q.queue_name order by q.queue_name) as queues
                             from millrace.segments_pinned() p
                             join millrace.queue q on q.queue_id = p.queue_id
                            group by p.seg) p);
begin
  return (select jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
                   'seg', s.seg, 'state', s.state, 'closed_at', s.closed_at, 'jobs', greatest(0, (v_jobs ->> s.seg::text)::bigint - coalesce((v_jobs ->> (s.seg - 1)::text)::bigint, 0)),
                   'bytes', (select sum(pg_total_relation_size(('millrace.' || l || s.seg % 16)::regclass)) from unnest(array['job_', 'claim_', 'result_', 'report_', 'tally_']) l),
                   'pinned_by', s.pinned_by)) order by s.seg desc)
            from (select v_open as seg, 'open' as state, null::timestamptz as closed_at, null::jsonb as pinned_by
                   union all
                  select g.seg,
                         case when g.parked then 'leaving' when millrace.segment_sealed(g) then 'sealed' else 'closed' end,
                         g.closed_at,
                         v_pins -> g.seg::text
                    from millrace.segments_live() g) s);
end $$;

-- For each segment in the ring, by number: how many jobs the ledgers had counted at its end, all lanes together.
create or replace function millrace.segment_jobs()
returns jsonb
language plpgsql
as $$
declare
  v_open int := pg_sequence_last_value('millrace.seg_seq'::regclass);
begin
  return (select coalesce(jsonb_object_agg(c.seg, c.counted), '{}')
            from (select c.seg, sum(c.counted) as counted
                    from (select s.seg, l.lane, max(t.counted) over (partition by l.lane order by s.seg) as counted
                            from generate_series(greatest(v_open - 15, 0), v_open) s(seg)
                           cross join millrace.lanes_all() l(lane)
                            left join lateral (select t.counted
                                                 from millrace.tally t
                                                where t.slot = s.seg % 16
                                                  and t.lane = l.lane
                                                order by t.no desc
                                                limit 1) t on true) c
                   group by c.seg) c);
end $$;

-- Who keeps dead rows from being removed: transactions with a snapshot, prepared transactions, replication slots; the oldest ten. What a session
-- runs is shown to those who may see it in pg_stat_activity themselves.
create or replace function millrace.xmin_holders(p_now timestamptz)
returns table (pid int, "user" text, application text, state text, age_seconds double precision, query text, what text)
language sql
stable
as $$
  select h.pid, h.who, h.application, h.state, date_part('epoch', greatest(p_now - h.since, '0')), h.query, h.what
    from (select a.pid, a.usename::text as who, a.application_name as application, a.state, coalesce(a.xact_start, a.backend_start) as since,
                 case when pg_has_role(session_user, 'pg_read_all_stats', 'member') or a.usename = session_user then left(a.query, 100) end as query,
                 'session' as what, age(a.backend_xmin) as xids
            from pg_stat_activity a
           where a.backend_xmin is not null
             and a.pid <> pg_backend_pid()
           union all
          select null, p.owner::text, null, 'prepared', p.prepared, p.gid, 'prepared transaction', age(p.transaction)
            from pg_prepared_xacts p
           union all
          select s.active_pid, null, s.slot_name, case when s.active then 'active' else 'inactive' end, null, null, 'replication slot',
                 greatest(age(s.xmin), age(s.catalog_xmin))
            from pg_replication_slots s
           where s.xmin is not null
              or s.catalog_xmin is not null) h
   order by h.xids desc, h.since
   limit 10
$$;

-- What is known of upkeep: from rounds of maintain, whoever called it. Without a daemon nobody does, and claims do a slice of some duties.
create or replace function millrace.rounds_face()
returns jsonb
language plpgsql
as $$
declare
  v_last   jsonb := millrace.rounds_last();
  v_sliced bigint := millrace.hint('millrace.upkeep_clock');
begin
  return jsonb_strip_nulls(jsonb_build_object(
    'last_at', (select max((d.value ->> 'last_at')::timestamptz) from jsonb_each(v_last) d),
    'last_slice_at', case when v_sliced > 0 and v_sliced & 1 = 0 then to_timestamp(v_sliced / 1000.0) end,
    'duties', coalesce((select jsonb_agg(jsonb_build_object('duty', d.key, 'last_at', d.value -> 'last_at', 'done', d.value -> 'done',
                                                            'total', d.value -> 'total', 'seconds', (d.value ->> 'ms')::double precision / 1000) order by d.key)
                          from jsonb_each(v_last) d), '[]')));
end $$;
