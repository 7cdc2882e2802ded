-- SPDX-License-Identifier: PostgreSQL
-- Checks of doctor that look for whoever holds the xmin horizon, segments of the log, or WAL. Speed does not suffer from them here; the disk does.

-- Sessions. One that has written holds segments of the log, one that reads only keeps vacuum from dead rows.
-- A user without pg_read_all_stats sees no times of others: then the age is known in transactions only.
create or replace function millrace.doctor_sessions(p_now timestamptz)
returns table (topic text, verdict text, evidence text, remedy text)
language sql
stable
as $$
  select 'transactions',
         case when h.worst >= 3 then 'critical' when h.worst = 2 then 'warning' when h.worst = 1 then 'note' else 'ok' end,
         case when h.n > 0 then format('%s open, the oldest: %s', h.n, h.oldest) else 'none open' end,
         format('select pg_terminate_backend(%s); alter system set idle_in_transaction_session_timeout = ''5min''; select pg_reload_conf() -- if it may be ended', h.pid)
    from (select count(*) as n, max(t.level) as worst, (array_agg(t.pid order by t.level desc, t.started, t.xids desc))[1] as pid,
                 (array_agg(format('pid %s (%s, %s), %s for %s, %s', t.pid, t.usename, coalesce(nullif(t.application_name, ''), 'no name'), t.state,
                                   coalesce(millrace.age_text(p_now - t.started), t.xids || ' transactions'),
                                   case when t.wrote then 'has written: holds segments of the log' else 'reads: keeps vacuum from dead rows' end)
                            order by t.level desc, t.started, t.xids desc))[1] as oldest
            from (select a.pid, coalesce(a.usename, '?') as usename, a.application_name, coalesce(a.state, 'active') as state, a.xact_start as started, x.xids, x.wrote,
                         case
                           when p_now - a.xact_start > interval '1 hour' then 2 + x.wrote::int
                           when p_now - a.xact_start > interval '5 minutes' then 1 + x.wrote::int
                           when a.xact_start is null and x.xids > 1000000 then 2
                           else 0
                         end as level
                    from pg_stat_activity a
                   cross join lateral (select a.backend_xid is not null as wrote, age(coalesce(a.backend_xmin, a.backend_xid)) as xids) x
                   where a.pid <> pg_backend_pid()
                     and coalesce(a.backend_type, '') not in ('walsender', 'autovacuum worker')
                     and (a.backend_xmin is not null or a.backend_xid is not null)) t) h
$$;

create or replace function millrace.doctor_idle(p_now timestamptz)
returns table (topic text, verdict text, evidence text, remedy text)
language sql
stable
as $$
  select 'idle in transaction', case when i.longest > interval '5 minutes' then 'warning' when i.off then 'note' else 'ok' end,
         format('%s sessions%s; idle_in_transaction_session_timeout is %s', i.n, coalesce(', pid ' || i.pid || ' for ' || millrace.age_text(i.longest), ''),
                case when i.off then 'off' else i.setting || ' ms' end),
         'alter system set idle_in_transaction_session_timeout = ''5min''; select pg_reload_conf()' || coalesce('; select pg_terminate_backend(' || i.pid || ')', '')
    from (select count(a.pid) as n, max(p_now - a.state_change) as longest, (array_agg(a.pid order by a.state_change) filter (where a.pid is not null))[1] as pid,
                 min(s.reset_val) as setting, min(s.reset_val) = '0' as off
            from pg_settings s
            left join pg_stat_activity a on a.state like 'idle in transaction%'
           where s.name = 'idle_in_transaction_session_timeout') i
$$;

create or replace function millrace.doctor_prepared(p_now timestamptz)
returns table (topic text, verdict text, evidence text, remedy text)
language sql
stable
as $$
  select 'prepared transactions', case when p.age > interval '1 hour' then 'critical' when p.age > interval '5 minutes' then 'warning' when p.n > 0 then 'note' else 'ok' end,
         case when p.n = 0 then 'none' else format('%s, the oldest: %L of %s in %s for %s; holds segments of the log', p.n, p.gid, p.owner, quote_ident(p.database), millrace.age_text(p.age)) end,
         format('rollback prepared %1$L -- or commit prepared %1$L, in that database', p.gid)
    from (select count(*) as n, max(p_now - x.prepared) as age, (array_agg(x.gid order by x.prepared))[1] as gid,
                 (array_agg(x.owner order by x.prepared))[1] as owner, (array_agg(x.database order by x.prepared))[1] as database
            from pg_prepared_xacts x) p
$$;

-- Slots keep WAL, and rows where they have an xmin. An inactive one does so until somebody drops it.
create or replace function millrace.doctor_slots(p_now timestamptz)
returns table (topic text, verdict text, evidence text, remedy text)
language sql
stable
as $$
  select 'replication slots',
         case when s.most > 10737418240 then 'critical' when s.idle <> '{}' or s.most > 1073741824 then 'warning' else 'ok' end,
         case when s.n = 0 then 'none'
              else format('%s, WAL kept: %s by %s%s', s.n, pg_size_pretty(s.most), quote_literal(s.name), case when s.idle <> '{}' then '; inactive: ' || millrace.some_of(s.idle) else '' end)
         end,
         format('select pg_drop_replication_slot(%s) -- or start its consumer; max_slot_wal_keep_size limits what slots keep', coalesce(s.idle[1], quote_literal(s.name)))
    from (select count(*) as n, coalesce(max(k.kept), 0) as most, (array_agg(k.slot_name order by k.kept desc nulls last))[1]::text as name,
                 coalesce(array_agg(quote_literal(k.slot_name) order by k.slot_name) filter (where not k.active), '{}') as idle
            from (select r.slot_name, r.active, pg_wal_lsn_diff(case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_lsn() end, r.restart_lsn) as kept
                    from pg_replication_slots r
                   where not r.temporary) k) s
$$;

-- A standby that sends feedback holds the horizon in its walsender, or in its slot where it has one, and there even while it is away.
create or replace function millrace.doctor_standbys(p_now timestamptz)
returns table (topic text, verdict text, evidence text, remedy text)
language sql
stable
as $$
  select 'standby feedback', case when f.xids > 10000000 then 'warning' else 'ok' end,
         case when f.n = 0 then 'none' else format('%s hold the horizon, the oldest %s transactions back (%s)', f.n, f.xids, f.holder) end,
         'End the long query on the standby, or switch hot_standby_feedback off there; drop a slot whose standby is gone.'
    from (select count(*) as n, max(h.xids) as xids, (array_agg(h.holder order by h.xids desc, h.holder))[1] as holder
            from (select age(a.backend_xmin) as xids, 'pid ' || a.pid as holder
                    from pg_stat_activity a
                   where a.backend_type = 'walsender'
                     and a.backend_xmin is not null
                   union all
                  select age(r.xmin), 'slot ' || quote_literal(r.slot_name)
                    from pg_replication_slots r
                   where r.xmin is not null) h) f
$$;

-- Tables whose rows change in place. The leaves of the log are truncated, so what is dead there does not matter.
create or replace function millrace.doctor_bloat(p_now timestamptz)
returns table (topic text, verdict text, evidence text, remedy text)
language sql
stable
as $$
  select 'dead rows', case when d.worst > 1000000 then 'warning' when d.n > 0 then 'note' else 'ok' end,
         case when d.n = 0 then 'no table has many' else format('%s tables, the worst: %s with %s dead rows and %s live ones, vacuumed %s', d.n, d.name, d.worst, d.live,
                                                                 coalesce(millrace.age_text(p_now - d.vacuumed) || ' ago', 'never')) end,
         format('vacuum millrace.%s -- once what holds the xmin horizon has ended (see transactions)', d.name)
    from (select count(*) as n, max(b.n_dead_tup) as worst, (array_agg(quote_ident(b.relname) order by b.n_dead_tup desc))[1] as name,
                 (array_agg(b.n_live_tup order by b.n_dead_tup desc))[1] as live,
                 (array_agg(greatest(b.last_vacuum, b.last_autovacuum) order by b.n_dead_tup desc))[1] as vacuumed
            from pg_stat_all_tables b
           where b.schemaname = 'millrace'
             and b.relname !~ '^(job|claim|result|report|tally|pulse|started)_\d+$'
             and b.n_dead_tup > 10000
             and b.n_dead_tup > b.n_live_tup) d
$$;
