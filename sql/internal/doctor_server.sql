-- SPDX-License-Identifier: PostgreSQL
-- Checks of doctor that look at the server as such: its version, its settings, its disk habits.

create or replace function millrace.doctor_version(p_now timestamptz)
returns table (topic text, verdict text, evidence text, remedy text)
language sql
stable
as $$
  select 'server version', case when v.num < 130000 then 'critical' when pg_is_in_recovery() then 'note' else 'ok' end,
         format('PostgreSQL %s%s', current_setting('server_version'), case when pg_is_in_recovery() then ', a standby: jobs can be looked at, not taken' else '' end),
         case when v.num < 130000 then 'Millrace needs PostgreSQL 13 or later.' else 'Connect to the primary for anything but looking.' end
    from (select current_setting('server_version_num')::int as num) v
$$;

-- The schema: what migrate has written down, and whether the logs are of this cluster.
create or replace function millrace.doctor_home(p_now timestamptz)
returns table (topic text, verdict text, evidence text, remedy text)
language sql
stable
as $$
  select 'schema', case when not millrace.is_home() then 'critical' when f.version is null then 'warning' else 'ok' end,
         case
           when not millrace.is_home() then 'restored from another cluster: every function refuses (MR004), nothing of the logs is looked at'
           when f.version is null then format('%s migrations, but its functions have to be installed again', m.n)
           else format('version %s, %s migrations, the last %s ago', f.version, m.n, millrace.age_text(p_now - m.last_at))
         end,
         'Run `millrace migrate`.'
    from (select count(*) as n, max(s.applied_at) as last_at from millrace.schema_migration s) m
    left join (select s.program_version as version from millrace.schema_functions s) f on true
$$;

-- Settings that have one wrong value. What counts is the value a session gets: that of this function would be its own.
create or replace function millrace.doctor_settings(p_now timestamptz)
returns table (topic text, verdict text, evidence text, remedy text)
language sql
stable
as $$
  select c.name, case when s.reset_val = c.bad then c.verdict else 'ok' end, format('%s%s', s.reset_val, case when s.reset_val = c.bad then ': ' || c.why else '' end),
         format('alter system set %s = %s; select pg_reload_conf()%s', c.name, c.good, c.more)
    from (values
      ('fsync',              'off', 'critical', 'on',  'a crash of the machine can destroy the whole database', ''),
      ('full_page_writes',   'off', 'warning',  'on',  'a crash can leave torn pages, unless the file system writes whole pages', ''),
      ('synchronous_commit', 'off', 'warning',  'on',  'jobs whose enqueue was acknowledged can be lost in a crash', ' -- claims need no such setting: clients commit them without waiting'),
      ('autovacuum',         'off', 'critical', 'on',  'nothing freezes old rows, and the server stops before transaction ids run out', ''),
      ('track_counts',       'off', 'critical', 'on',  'autovacuum does not know what to do without it', ''),
      ('jit',                'on',  'note',     'off', 'the functions switch it off for themselves, but a look at the view jobs may be compiled for 100 ms', '')
    ) c(name, bad, verdict, good, why, more)
    join pg_settings s on s.name = c.name
$$;

create or replace function millrace.doctor_memory(p_now timestamptz)
returns table (topic text, verdict text, evidence text, remedy text)
language sql
stable
as $$
  select 'shared_buffers', case when b.bytes <= 134217728 then 'note' else 'ok' end,
         pg_size_pretty(b.bytes) || case when b.bytes <= 134217728 then ', the default or less' else '' end,
         'alter system set shared_buffers = ''2GB'', or a quarter of the machine''s memory; it takes a restart'
    from (select pg_size_bytes(current_setting('shared_buffers')) as bytes) b
$$;

-- Checkpoints that WAL forces write every page twice. The counters moved to a view of their own in PostgreSQL 17.
create or replace function millrace.doctor_checkpoints(p_now timestamptz)
returns table (topic text, verdict text, evidence text, remedy text)
language plpgsql
stable
as $$
declare
  v_timed  bigint;
  v_forced bigint;
begin
  execute case when to_regclass('pg_catalog.pg_stat_checkpointer') is null
               then 'select w.checkpoints_timed, w.checkpoints_req from pg_stat_bgwriter w'
               else 'select w.num_timed, w.num_requested from pg_stat_checkpointer w'
          end
     into v_timed, v_forced;
  return query
    select 'checkpoints', case when v_forced > 20 and v_forced > v_timed then 'warning' else 'ok' end,
           format('max_wal_size %s, checkpoint_timeout %s, %s by time and %s forced', current_setting('max_wal_size'), current_setting('checkpoint_timeout'), v_timed, v_forced),
           'alter system set max_wal_size = ''8GB''; select pg_reload_conf() -- enough for what is written within checkpoint_timeout';
end $$;

create or replace function millrace.doctor_archiving(p_now timestamptz)
returns table (topic text, verdict text, evidence text, remedy text)
language sql
stable
as $$
  select 'archiving', case when f.failing then 'critical' else 'ok' end,
         case
           when f.failing then format('%s failures, the last %s ago at %s: WAL is kept until it succeeds', a.failed_count, millrace.age_text(p_now - a.last_failed_time), a.last_failed_wal)
           else 'archive_mode ' || current_setting('archive_mode')
         end,
         'Look for archive_command in the server''s log and repair it: pg_wal fills the disk meanwhile.'
    from pg_stat_archiver a
   cross join lateral (select current_setting('archive_mode') <> 'off' and a.last_failed_time > coalesce(a.last_archived_time, '-infinity') as failing) f
$$;

create or replace function millrace.doctor_wraparound(p_now timestamptz)
returns table (topic text, verdict text, evidence text, remedy text)
language sql
stable
as $$
  select 'transaction ids', case when w.xids > 1500000000 then 'critical' when w.xids > w.freeze * 2 then 'warning' else 'ok' end,
         format('database %s: the oldest unfrozen is %s back, autovacuum freezes from %s on', quote_ident(w.datname), w.xids, w.freeze),
         'End what holds the xmin horizon (see transactions, prepared transactions, replication slots), then: vacuum (freeze)'
    from (select d.datname, age(d.datfrozenxid) as xids, current_setting('autovacuum_freeze_max_age')::bigint as freeze
            from pg_database d
           order by 2 desc
           limit 1) w
$$;

create or replace function millrace.doctor_connections(p_now timestamptz)
returns table (topic text, verdict text, evidence text, remedy text)
language sql
stable
as $$
  select 'connections', case when c.used >= c.room * 0.9 then 'critical' when c.used >= c.room * 0.75 then 'warning' else 'ok' end,
         format('%s of %s in use', c.used, c.room),
         'Fewer workers with more concurrency each, PgBouncer in front, or: alter system set max_connections = ' || c.room * 2 || '; it takes a restart'
    from (select count(*) as used, current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int as room
            from pg_stat_activity a
           where a.backend_type = 'client backend') c
$$;

-- A round of maintain locks about a thousand relations; the table of locks is shared by all.
create or replace function millrace.doctor_locks(p_now timestamptz)
returns table (topic text, verdict text, evidence text, remedy text)
language sql
stable
as $$
  select 'locks', case when l.total < 5000 then 'warning' else 'ok' end,
         format('room for %s: max_locks_per_transaction %s', l.total, current_setting('max_locks_per_transaction')),
         'alter system set max_locks_per_transaction = 256; it takes a restart. "out of shared memory" in the log is the sign'
    from (select current_setting('max_locks_per_transaction')::int * (current_setting('max_connections')::int + current_setting('max_prepared_transactions')::int) as total) l
$$;

-- Payload parts are compressed with lz4 where the server has it; a schema that was made without it keeps pglz.
create or replace function millrace.doctor_compression(p_now timestamptz)
returns table (topic text, verdict text, evidence text, remedy text)
language sql
stable
as $$
  select 'compression', case when c.method = 'l' then 'ok' else 'note' end,
         case when c.method = 'l' then 'payloads are compressed with lz4' else 'payloads are compressed with pglz, which takes several times as long' end,
         case
           when current_setting('server_version_num')::int < 140000 then 'lz4 comes with PostgreSQL 14.'
           else 'Use a server that was built with lz4; new rows get it after: alter table millrace.job alter column payload_args set compression lz4'
         end
    from (select to_jsonb(a) ->> 'attcompression' as method
            from pg_attribute a
           where a.attrelid = 'millrace.job'::regclass
             and a.attname = 'payload_args') c
$$;

create or replace function millrace.doctor_zones(p_now timestamptz)
returns table (topic text, verdict text, evidence text, remedy text)
language sql
stable
as $$
  select 'time zones', case when z.lost <> '{}' then 'warning' when z.n < 100 then 'note' else 'ok' end,
         format('%s known%s', z.n, case when z.lost <> '{}' then '; unknown ones of schedules: ' || millrace.some_of(z.lost) else '' end),
         'Install the package tzdata on the server''s host.'
    from (select count(*) as n, array(select distinct quote_literal(s.zone_name) from millrace.schedule s
                                       where s.zone_name <> all (array_agg(n.name))
                                       order by 1) as lost
            from pg_timezone_names n) z
$$;
