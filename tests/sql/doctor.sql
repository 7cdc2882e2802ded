-- SPDX-License-Identifier: PostgreSQL
-- doctor: each check with a verdict that it gives for cause, and the remedy. Sessions of other tests would be found, too:
-- server: own
-- What takes settings of a server, slots or prepared transactions is in tests/integration/doctor.bats.
\ir lib/helpers.psql
select no_plan();

-- One check at a time: its row at p_now, as text.
create function t.check(p_topic text, p_after interval = '0')
returns text
language sql
as $$
  select d.verdict || ': ' || d.evidence || coalesce(' -> ' || d.remedy, '')
    from millrace.doctor_at(clock_timestamp() + p_after) d
   where d.topic = p_topic
$$;

-- ---- the rows as such ----
select is((select array_agg(distinct d.topic) filter (where d.n > 1) from (select d.topic, count(*) as n from millrace.doctor() d group by 1) d), null, 'each topic has one row');
select is(array(select d.topic from millrace.doctor() d where d.verdict not in ('ok', 'note', 'warning', 'critical') or coalesce(d.evidence, '') = ''), '{}', 'a verdict and what was found');
select is(array(select d.topic from millrace.doctor() d where (d.verdict = 'ok') <> (d.remedy is null)), '{}', 'a remedy where something is to be done, and only there');
select is(array(select d.topic from millrace.doctor() d where d.evidence like 'could not be%'), '{}', 'everything could be looked at');
select cmp_ok((select count(*) from millrace.doctor()), '>=', 32::bigint, 'all of them');
select is(array(select d.topic || ' ' || d.verdict from millrace.doctor() d where d.verdict in ('warning', 'critical') order by 1), array['autovacuum critical', 'fsync critical'],
          'a new schema is well, but for what a server of the tests switches off');
begin read only;
select is((select count(*) from millrace.doctor() d where d.evidence like 'could not be%'), 0::bigint, 'in a read-only transaction, too');
rollback;
begin isolation level repeatable read;
select is((select count(*) from millrace.doctor() d where d.evidence like 'could not be%'), 0::bigint, 'and at repeatable read');
rollback;
-- A check that fails is a note, and the others go on.
alter function millrace.doctor_zones(timestamptz) rename to doctor_lost;
select matches(t.check('zones'), '^note: could not be looked at: function millrace.doctor_zones\(.*\) does not exist \(42883\) -> ', 'a check that fails says why');
select matches(t.check('schedules'), '^ok: 0 active$', 'those after it are made');
alter function millrace.doctor_lost(timestamptz) rename to doctor_zones;

-- ---- the schema ----
select matches(t.check('schema'), '^ok: version \S+, \d+ migrations, the last \d+ ', 'the schema');
begin;
delete from millrace.schema_functions;
select matches(t.check('schema'), '^warning: .*have to be installed again -> Run `millrace migrate`', 'functions that are to be installed again');
rollback;
begin;
update millrace.home set system_id = system_id + 1;
select matches(t.check('schema'), '^critical: restored from another cluster.*MR004.* -> Run `millrace migrate`', 'a schema of another cluster');
select is(array(select d.topic from millrace.doctor() d where d.topic in ('upkeep', 'clock', 'segments', 'depth', 'workers', 'dead letters', 'schedules')), '{}', 'of its logs nothing is said');
select cmp_ok((select count(*) from millrace.doctor()), '>=', 20::bigint, 'of the server all the same');
rollback;

-- ---- who may do what ----
create role t_shop login;
grant millrace_producer to t_shop;
select matches(t.check('roles'), '^ok: 1 users have one$', 'roles');
revoke millrace_producer from t_shop;
select matches(t.check('roles'), '^note: no user has one of the four.* -> grant millrace_producer to ', 'roles that nobody has');
revoke millrace_reader from millrace_worker;
select matches(t.check('roles'), '^critical: not members as they should be: millrace_worker of millrace_reader -> Run `millrace migrate --again`', 'a membership that is gone');
grant millrace_reader to millrace_worker;
alter role millrace_admin rename to t_admin;
select matches(t.check('roles'), '^critical: missing: millrace_admin -> ', 'a role that is gone');
alter role t_admin rename to millrace_admin;
begin;
revoke execute on function millrace.health() from millrace_reader;
select matches(t.check('roles'), '^critical: without their grants: millrace_reader -> ', 'a grant that is gone');
rollback;
select matches(t.check('functions'), '^note: \d+, owned by \S+, a superuser -> ', 'functions of a superuser');
begin;
grant execute on function millrace.purge(text, text) to public;
select matches(t.check('functions'), '^critical: everybody may call: millrace.purge\(text,text\) -> ', 'a function that everybody may call');
rollback;
begin;
alter function millrace.purge(text, text) reset search_path;
select matches(t.check('functions'), '^critical: security definer without a pinned search_path: millrace.purge\(text,text\) -> ', 'one whose search_path is the caller''s');
rollback;
begin;
alter function millrace.purge(text, text) owner to t_shop;
select matches(t.check('functions'), '^warning: not owned by the owner of the schema: millrace.purge\(text,text\) -> ', 'one of another owner');
rollback;
-- The owner is asked, not the caller: here the function is called by itself.
grant usage on schema millrace, t to t_shop;
grant execute on function millrace.doctor_sight(timestamptz) to t_shop;
select matches((select d.verdict || ' ' || d.evidence from millrace.doctor_sight(now()) d), '^ok \S+ sees the sessions', 'sight');
set role t_shop;
select d.verdict || ' ' || d.remedy as sight from millrace.doctor_sight(now()) d
\gset
reset role;
select is(:'sight'::text, 'note grant pg_read_all_stats to t_shop', 'an owner who does not see sessions of others');

-- ---- storage ----
select matches(t.check('compression'), case when (select 'lz4' = any (s.enumvals) from pg_settings s where s.name = 'default_toast_compression') then '^ok: .*lz4' else '^note: .*pglz' end, 'compression');
select matches(t.check('segments'), '^ok: 1 of 16 segments in use$', 'segments');
select matches(t.check('transaction ids'), '^ok: database ', 'transaction ids');

-- ---- upkeep and the clock ----
select matches(t.check('upkeep'), '^ok: maintain\(\) has not run yet, and there was no job yet$', 'before the first job nobody misses it');
select millrace.enqueue('k', queue => 'lonely') as id
\gset
select matches(t.check('upkeep'), '^critical: maintain\(\) has never run.* -> .*millrace serve', 'a job and no upkeep');
select count(*) from millrace.maintain()
\gset
select matches(t.check('upkeep'), '^ok: maintain\(\) ran \d+ s ago$', 'after maintain');
-- Before any look from the future: whoever asks for depth counts on, by the clock that it is given.
select matches(t.check('clock'), '^ok: \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$', 'the clock');
select matches(t.check('clock', '-10 seconds'), '^warning: .*times \d+ s ahead of it: the clock went back -> ', 'a clock that went back');
select matches(t.check('clock', '-2 hours'), '^critical: .*the clock went back -> ', 'by hours');
select matches(t.check('upkeep', '2 minutes'), '^warning: maintain\(\) ran 12\d s ago -> |^warning: maintain\(\) ran 2 min ago -> ', 'two minutes later');
select matches(t.check('upkeep', '1 hour'), '^critical: maintain\(\) ran 60 min ago -> ', 'an hour later');

-- ---- queues ----
select matches(t.check('workers'), '^ok: 0 took jobs in the last minute$', 'a job that has just come may wait');
select matches(t.check('workers', '2 minutes'), '^warning: nobody takes the jobs of ''lonely'' \(1, oldest 2 min\) -> Start workers', 'a queue without workers');
select millrace.pause('lonely')
\gset
select matches(t.check('workers', '2 minutes'), '^note: paused, with jobs that wait: ''lonely'' .* -> `millrace resume', 'a paused one');
select millrace.resume('lonely')
\gset
select millrace.enqueue('k', queue => 'lonely')
\gset
select c.lease, c.id from millrace.claim('lonely', 'w', 1, '10 minutes') c
\gset
select matches(t.check('workers', '2 minutes'), '^ok: ', 'a job of it runs: it has a worker, a slow one');
select millrace.complete(:'lease')
\gset
select matches(t.check('depth'), '^ok: 1 queues, none over its warn_depth$', 'depth');
select count(*) from millrace.enqueue_many('k', array_fill('{}'::jsonb, array[150]), 'deep')
\gset
select matches(t.check('depth'), '^warning: over warn_depth or full: ''deep'' \(150 pending, .*\) -> More workers', 'a queue over warn_depth');
select count(*) from millrace.enqueue_many('k', array_fill('{}'::jsonb, array[1000]), 'deep')
\gset
select matches(t.check('depth'), '^critical: over critical_depth: ''deep'' \(1150 pending', 'and over critical_depth');
select millrace.purge('deep')
\gset
select matches(t.check('depth'), '^ok: ', 'and empty again');
-- Names are data: quoted, never cut short by what they contain.
select count(*) from millrace.enqueue_many('k', array_fill('{}'::jsonb, array[101]), E'%s it''s\n\x1b[31m $1')
\gset
select is(position(quote_literal(E'%s it''s\n\x1b[31m $1') in t.check('depth')) > 0, true, 'a hostile name is quoted as it is');

-- ---- dead letters ----
select matches(t.check('dead letters'), '^ok: none in the last hour$', 'dead letters');
create procedure t.bury(p_queue text, p_n int)
language plpgsql
as $$
declare
  v_lease text;
begin
  perform count(*) from millrace.enqueue_many('k', array_fill('{}'::jsonb, array[p_n]), p_queue);
  commit;
  loop
    select c.lease, count(*) into v_lease from millrace.claim(p_queue, 'w', 1000) c group by 1;
    exit when not found;
    perform millrace.finish(v_lease, jsonb_agg(jsonb_build_object('id', k.id, 'outcome', 'failed', 'error', 'gone', 'retry', false)))
       from (select unnest(coalesce(c.job_ids, c.positions)) as id from millrace.claim c where c.token = (millrace.lease_parts(v_lease)).token) k;
    commit;
  end loop;
end $$;
call t.bury('mail', 3);
select matches(t.check('dead letters'), '^note: in the last hour: ''mail'' 3 -> `millrace dead list`', 'three of them');
select matches(t.check('dead letters', '2 hours'), '^ok: ', 'are old after an hour');
call t.bury('mail', 100);
select matches(t.check('dead letters'), '^warning: in the last hour: ''mail'' 103 -> ', 'a hundred');
select millrace.set_queue('mail', '{"dead_max": 120}')
\gset
select matches(t.check('dead letters', '2 hours'), '^warning: near their dead_max, the oldest are removed then: ''mail'' 103 of 120 -> ', 'and nearly too many');

-- ---- schedules ----
select millrace.schedule('nightly', '0 2 * * *', 'k', timezone => 'Europe/Berlin')
\gset
select matches(t.check('schedules'), '^ok: 1 active$', 'schedules');
select matches(t.check('schedules', '2 days'), '^warning: should have fired: ''nightly'' -> ', 'one that should have fired');
begin;
update millrace.schedule set last_error = 'queue full';
select matches(t.check('schedules'), '^warning: their last job could not be enqueued: ''nightly'' -> `millrace cron list`', 'one that could not');
rollback;
select matches(t.check('time zones'), '^ok: \d+ known$', 'time zones');
begin;
update millrace.schedule set zone_name = 'Mars/Base';
select matches(t.check('time zones'), '^warning: \d+ known; unknown ones of schedules: ''Mars/Base'' -> Install the package tzdata', 'one that the server has lost');
rollback;

-- ---- figures that no server of the tests has ----
-- Views and a function that stand before the catalogue's: a check that is called by itself takes its figures from there.
create schema figures;
create function figures.back(p_xids bigint)
returns xid
language sql
as $$
  select ((pg_current_xact_id()::text::numeric - p_xids + 4294967296) % 4294967296)::text::xid
$$;
create function figures.current_setting(p_name text)
returns text
language sql
as $$
  select case when p_name = 'server_version_num' then '120022' else pg_catalog.current_setting(p_name) end
$$;
create function figures.pg_current_wal_lsn()
returns pg_lsn
language sql
as $$
  select '4/0'::pg_lsn
$$;
create view figures.pg_replication_slots as
  select 'far'::name as slot_name, true as active, false as temporary, '3/80000000'::pg_lsn as restart_lsn, figures.back(10000001) as xmin;
create view figures.pg_timezone_names as select 'zone ' || g as name from generate_series(1, 50) g;
create view figures.pg_database as select 'old one'::name as datname, false as datallowconn, figures.back(1500000001) as datfrozenxid;
create view figures.pg_stat_activity as
  select 4711 as pid, null::name as usename, '' as application_name, null::text as state, null::timestamptz as xact_start, null::xid as backend_xid,
         figures.back(1000001) as backend_xmin, null::text as backend_type;
set search_path = figures, pg_catalog, public;
select matches((select d.verdict || ': ' || d.remedy from millrace.doctor_version(now()) d), '^critical: Millrace needs PostgreSQL 13 or later', 'a server before PostgreSQL 13');
select matches((select d.verdict || ': ' || d.evidence from millrace.doctor_standbys(now()) d), '^warning: 1 hold the horizon, the oldest 1000000\d transactions back \(slot ''far''\)', 'a standby that holds ten million transactions');
select matches((select d.verdict || ': ' || d.evidence from millrace.doctor_slots(now()) d), '^warning: 1, WAL kept: 2048 MB by ''far''$', 'two gigabytes of WAL for a slot that is read');
select matches((select d.verdict || ': ' || d.evidence from millrace.doctor_zones(now()) d), '^note: 50 known$|^warning: 50 known; unknown ones of schedules: ''Europe/Berlin''$', 'few time zones');
select matches((select d.verdict || ': ' || d.evidence || ' -> ' || d.remedy from millrace.doctor_wraparound(now()) d), '^critical: database "old one": the oldest unfrozen is 150000000\d back.* -> .*autovacuum does the rest', 'a database that nobody can connect to');
select matches((select d.verdict || ': ' || d.evidence from millrace.doctor_sessions(now()) d), '^warning: 1 open, the oldest: pid 4711 \(\?, no name\), active for 100000\d transactions, reads', 'a session whose times are not to be seen');
reset search_path;
select is(millrace.setting_places('work_mem', 'off'), '{}', 'a setting that nobody has');

-- ---- the texts ----
select is(array(select millrace.age_text(a::interval) from unnest(array['-5 s', '0', '119 s', '120 s', '7199 s', '7200 s', '47 h', '49 h', '400 days']) a),
          array['0 s', '0 s', '119 s', '2 min', '119 min', '2 h', '47 h', '2 d', '400 d'], 'ages');
select is(array[millrace.some_of('{}'), millrace.some_of('{a}'), millrace.some_of('{a,b,c}'), millrace.some_of('{a,b,c,d,e}')], array['', 'a', 'a, b, c', 'a, b, c and 2 more'], 'lists');
drop owned by t_shop;
drop role t_shop;
select * from finish();
