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

-- Users and databases that have a setting of their own of this value, if it is in force here, as `alter` takes them.
create or replace function millrace.setting_places(p_name text, p_value text)
returns text[]
language sql
stable
as $$
  select array(select concat_ws(' ', 'role ' || quote_ident(u.rolname), case when u.rolname is null then 'database ' when r.setdatabase <> 0 then 'in database ' end || quote_ident(d.datname))
                 from pg_db_role_setting r
                cross join unnest(r.setconfig) x
                 left join pg_roles u on u.oid = r.setrole
                 left join pg_database d on d.oid = r.setdatabase
                where (r.setdatabase = 0 or d.datname = current_database())
                  and (u.rolname is not null or r.setrole = 0)
                  and split_part(x, '=', 1) = p_name
                  and lower(split_part(x, '=', 2)) = any (case p_value when 'on' then array['on', 'true', 'yes', '1'] else array['off', 'false', 'no', '0'] end)
                order by 1)
$$;

-- Settings that have one wrong value. What counts is the value a session gets: that of this function would be its own. A value that belongs to
-- a user or to this database goes before that of the server, and before it everybody else's may be right: those are named, and reset.
create or replace function millrace.doctor_settings(p_now timestamptz)
returns table (topic text, verdict text, evidence text, remedy text)
language sql
stable
as $$
  select c.name, case when s.reset_val = c.bad or o.places <> '{}' then c.verdict else 'ok' end,
         format('%s%s%s', s.reset_val, coalesce('; ' || c.bad || ' for ' || nullif(millrace.some_of(o.places), ''), ''),
                case when s.reset_val = c.bad or o.places <> '{}' then ': ' || c.why else '' end),
         case
           when o.places <> '{}' then format('alter %s reset %s -- for new sessions', o.places[1], c.name)
           when s.source = 'command line' then format('Start the server without %s=%s on its command line, which goes before any other place.', c.name, c.bad)
           else format('alter system set %s = %s; select pg_reload_conf()%s', c.name, c.good, c.more)
         end
    from (values
      ('fsync',              'off', 'critical', 'on',  'a crash of the machine can destroy the whole database', ''),
      ('full_page_writes',   'off', 'warning',  'on',  'a crash can leave torn pages, unless the file system writes whole pages', ''),
      ('synchronous_commit', 'off', 'warning',  'on',  'jobs whose enqueue was acknowledged can be lost in a crash', ' -- claims need no such setting: clients commit them without waiting'),
      ('autovacuum',         'off', 'critical', 'on',  'nothing freezes old rows, and the server stops before transaction ids run out', ''),
      ('track_counts',       'off', 'critical', 'on',  'autovacuum does not know what to do without it', ''),
      ('jit',                'on',  'note',     'off', 'the functions switch it off for themselves, but a look at the view jobs may be compiled for 100 ms', '')
    ) c(name, bad, verdict, good, why, more)
    join pg_settings s on s.name = c.name
   cross join lateral (select millrace.setting_places(c.name, c.bad) as places) o
$$;

create or replace function millrace.doctor_memory(p_now timestamptz)
returns table (topic text, verdict text, evidence text, remedy text)
language sql
stable
as $$
  select 'shared_buffers', case when b.bytes <= 134217728 then 'note' else 'ok' end,
         pg_size_pretty(b.bytes) || case when b.bytes <= 134217728 then ', the default or less' else '' end,
         'alter system set shared_buffers = ''2GB'' -- or a quarter of the machine''s memory; it takes a restart'
    from (select pg_size_bytes(current_setting('shared_buffers')) as bytes) b
$$;

-- Checkpoints that WAL forces write every page twice. The counters moved to a view of their own in PostgreSQL 17. They count since they were
-- last reset, so what cures them resets them, too.
create or replace function millrace.doctor_checkpoints(p_now timestamptz)
returns table (topic text, verdict text, evidence text, remedy text)
language plpgsql
stable
as $$
declare
  v_apart  constant boolean := to_regclass('pg_catalog.pg_stat_checkpointer') is not null;
  v_timed  bigint;
  v_forced bigint;
  v_since  timestamptz;
begin
  execute case when v_apart then 'select w.num_timed, w.num_requested, w.stats_reset from pg_stat_checkpointer w'
               else 'select w.checkpoints_timed, w.checkpoints_req, w.stats_reset from pg_stat_bgwriter w'
          end
     into v_timed, v_forced, v_since;
  return query
    select 'checkpoints', case when v_forced > 20 and v_forced > v_timed then 'warning' else 'ok' end,
           format('max_wal_size %s, checkpoint_timeout %s, %s by time and %s forced in %s', current_setting('max_wal_size'), current_setting('checkpoint_timeout'), v_timed, v_forced,
                  millrace.age_text(p_now - v_since)),
           format('alter system set max_wal_size = ''%s''; select pg_reload_conf(); select pg_stat_reset_shared(''%s'') -- enough for what is written within checkpoint_timeout',
                  pg_size_pretty(greatest(pg_size_bytes(current_setting('max_wal_size')) * 2, 8::bigint << 30)), case when v_apart then 'checkpointer' else 'bgwriter' end);
end $$;

-- Without a command the archiver fails at nothing and archives nothing.
create or replace function millrace.doctor_archiving(p_now timestamptz)
returns table (topic text, verdict text, evidence text, remedy text)
language sql
stable
as $$
  select 'archiving', case when f.idle or f.failing then 'critical' else 'ok' end,
         case
           when f.idle then 'archive_mode ' || f.mode || ', but no archive_command: WAL is kept until there is one'
           when f.failing then format('%s failures, the last %s ago at %s: WAL is kept until it succeeds', a.failed_count, millrace.age_text(p_now - a.last_failed_time), a.last_failed_wal)
           else 'archive_mode ' || f.mode
         end,
         case
           when f.idle then 'alter system set archive_command = ''...''; select pg_reload_conf() -- the command that copies %p to the archive as %f; or archive_mode = off, and a restart'
           else 'Look for archive_command in the server''s log and repair it: pg_wal fills the disk meanwhile.'
         end
    from pg_stat_archiver a
   cross join lateral (select current_setting('archive_mode') as mode,
                              current_setting('archive_mode') <> 'off' and not (pg_is_in_recovery() and current_setting('archive_mode') = 'on')
                                and current_setting('archive_command') = '' and coalesce(current_setting('archive_library', true), '') = '' as idle,
                              current_setting('archive_mode') <> 'off' and a.last_failed_time > coalesce(a.last_archived_time, '-infinity') as failing) f
$$;

-- Every database counts: what is freed is the log of commits, and all share it. One that nobody can connect to is left to autovacuum.
create or replace function millrace.doctor_wraparound(p_now timestamptz)
returns table (topic text, verdict text, evidence text, remedy text)
language sql
stable
as $$
  select 'transaction ids', case when w.xids > 1500000000 then 'critical' when w.xids > w.freeze * 2 then 'warning' else 'ok' end,
         format('database %s: the oldest unfrozen is %s back, autovacuum freezes from %s on', quote_ident(w.datname), w.xids, w.freeze),
         'End what holds the xmin horizon (see transactions, prepared transactions, replication slots), then '
           || case when w.datallowconn then 'in that database: vacuum (freeze)' else 'autovacuum does the rest; in the others: vacuum (freeze)' end
    from (select d.datname, d.datallowconn, age(d.datfrozenxid) as xids, current_setting('autovacuum_freeze_max_age')::bigint as freeze
            from pg_database d
           order by 3 desc, 2 desc
           limit 1) w
$$;

-- Of sessions of others a user without pg_read_all_stats does not see the type, but that they have a user and a database.
create or replace function millrace.doctor_connections(p_now timestamptz)
returns table (topic text, verdict text, evidence text, remedy text)
language sql
stable
as $$
  select 'connections', case when c.used >= c.room * 0.9 then 'critical' when c.used >= c.room * 0.75 then 'warning' else 'ok' end,
         format('%s of %s in use', c.used, c.room),
         format('alter system set max_connections = %s -- it takes a restart; or fewer workers with more concurrency each, or PgBouncer in front', c.most + c.room)
    from (select count(a.pid) as used, min(m.most) as most, min(m.most) - min(m.kept) as room
            from (select current_setting('max_connections')::int as most,
                         current_setting('superuser_reserved_connections')::int + coalesce(current_setting('reserved_connections', true), '0')::int as kept) m
            left join pg_stat_activity a on a.backend_type = 'client backend'
              or a.backend_type is null and a.usesysid is not null and a.datid is not null) c
$$;

-- A round of maintain locks about a thousand relations; the table of locks is shared by all.
create or replace function millrace.doctor_locks(p_now timestamptz)
returns table (topic text, verdict text, evidence text, remedy text)
language sql
stable
as $$
  select 'locks', case when l.each * l.sessions < 5000 then 'warning' else 'ok' end,
         format('room for %s: max_locks_per_transaction %s', l.each * l.sessions, l.each),
         format('alter system set max_locks_per_transaction = %s -- it takes a restart. "out of shared memory" in the log is the sign', greatest(256, (5000 + l.sessions - 1) / l.sessions))
    from (select current_setting('max_locks_per_transaction')::int as each,
                 current_setting('max_connections')::int + current_setting('max_prepared_transactions')::int as sessions) l
$$;

-- Payload parts are compressed with lz4 where the server has it; a schema that was made without it keeps pglz, and each partition has a setting of its own.
create or replace function millrace.doctor_compression(p_now timestamptz)
returns table (topic text, verdict text, evidence text, remedy text)
language sql
stable
as $$
  select 'compression', case when c.n = 0 then 'ok' else 'note' end,
         case when c.n = 0 then 'payloads are compressed with lz4' else format('payloads of %s columns are compressed with pglz, which takes several times as long', c.n) end,
         case
           when current_setting('server_version_num')::int < 140000 then 'lz4 comes with PostgreSQL 14.'
           when not c.can then 'Use a server that was built with lz4, then: select millrace.use_lz4()'
           else 'select millrace.use_lz4() -- as the owner of the schema; for new rows'
         end
    from (select count(p.column_name) as n, exists (select from pg_settings s where s.name = 'default_toast_compression' and 'lz4' = any (s.enumvals)) as can
            from millrace.payload_columns() p
           where p.method <> 'l') c
$$;

create or replace function millrace.doctor_zones(p_now timestamptz)
returns table (topic text, verdict text, evidence text, remedy text)
language sql
stable
as $$
  select 'time zones', case when z.lost <> '{}' then 'warning' when z.n < 100 then 'note' else 'ok' end,
         format('%s known%s', z.n, case when z.lost <> '{}' then '; unknown ones of schedules: ' || millrace.some_of(z.lost) else '' end),
         'Install the package tzdata on the server''s host; or `millrace cron set` with a zone of pg_timezone_names.'
    from (select count(*) as n, array(select distinct quote_literal(s.zone_name) from millrace.schedule s
                                       where s.zone_name <> all (array_agg(n.name))
                                       order by 1) as lost
            from pg_timezone_names n) z
$$;
