#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# Capture and the world around it: whose rights count, notifications, dumps, the command. What it captures is in
# sql/capture.sql. On a server of its own, because roles belong to a server.

bats_require_minimum_version 1.5.0
load ../lib/server

setup_file()
{
    private_server capture
    export SOURCE=$MR_SERVER SOURCE_HOST=$PGHOST SOURCE_PORT=$PGPORT
    "$MR_BIN" migrate >/dev/null
    sql "create role owner login; grant millrace_producer to owner;
         create role writer login; create role stranger login; grant millrace_producer to stranger;
         create role outsider login; create role team; grant team to owner; grant millrace_producer to team;
         create role admin login; grant millrace_admin to admin;
         alter database postgres set client_min_messages = error"
}

teardown_file()
{
    remove_private_server
}

# A table of the owner, which the writer may change.
setup()
{
    use_db postgres
    sql "drop schema if exists app cascade; create schema app authorization owner;
         set role owner;
         create table app.notes (id int primary key, status text);
         grant usage on schema app to writer, stranger, outsider, admin;
         grant select, insert, update, delete, trigger on app.notes to writer, stranger, outsider"
    sql "select count(millrace.purge(queue)) from millrace.queues"
}

as()
{
    psql -X -q -A -t -v ON_ERROR_STOP=1 -v VERBOSITY=verbose -U "$1" -c "$2"
}

# as ROLE SQL fails with SQLSTATE $1 and a text like $2.
refused()
{
    run as "$3" "$4"
    [ "$status" -ne 0 ]
    [[ $output == *"$1: "*$2* ]] || { echo "$output"; return 1; }
}

missed()
{
    sql "select missed, missed_code from millrace.captures where source = 'app.notes'"
}

# ---- rights ------------------------------------------------------------------------------

@test "a writer who may not enqueue writes, and the owner's rights enqueue" {
    as owner "select millrace.capture('app.notes', 'n', 'note', '{insert,update,delete}')"
    as writer "insert into app.notes values (1, 'a'); update app.notes set status = 'b'; delete from app.notes"
    [ "$(sql "select string_agg(args ->> 'event', ' ' order by id) from millrace.jobs where queue = 'n' and status = 'available'")" = 'insert update delete' ]
    [ "$(sql "select owner from millrace.captures")" = owner ]
    refused 42501 'permission denied for' writer "select millrace.enqueue('k')"
    # Nor may the writer call what enqueues in its name.
    refused 42501 'permission denied for function' writer "select app.$(sql "select proname from pg_proc where pronamespace = 'app'::regnamespace")()"
}

@test "who does not own the table does not capture it" {
    refused 42501 'must be owner of table app.notes' stranger "select millrace.capture('app.notes', 'n', 'note')"
    refused 42501 'permission denied for' writer "select millrace.capture('app.notes', 'n', 'note')"
    refused 42501 'must be owner of table app.notes' admin "select millrace.capture('app.notes', 'n', 'note')"
    as owner "select millrace.capture('app.notes', 'n', 'note')"
    refused 42501 'must be owner of' stranger "select millrace.capture_disable('app.notes', 'n')"
    refused 42501 'must be owner of' stranger "select millrace.uncapture('app.notes', 'n')"
    [ "$(sql "select enabled from millrace.captures")" = t ]
}

@test "an owner who may not enqueue is refused, with the remedy" {
    sql "create table app.strange (id int); alter table app.strange owner to outsider; grant create on schema app to outsider"
    refused 42501 'permission denied for' outsider "select millrace.capture('app.strange', 'n', 'note')"
    refused 42501 'outsider, who owns app.strange, may not enqueue' postgres "select millrace.capture('app.strange', 'n', 'note')"
    [[ $output == *'grant millrace_producer to outsider'* ]]
}

@test "an owner who may not enqueue any more: the row is written and the loss counted; strict refuses it" {
    as owner "select millrace.capture('app.notes', 'n', 'note')"
    sql "revoke millrace_producer from owner; revoke team from owner"
    as writer "insert into app.notes values (1), (2)"
    sql "grant millrace_producer to owner; grant team to owner"
    [ "$(missed)" = '2|42501' ]
    sql "select message from millrace.health() where queue = 'n'" | grep -q 'capture of app.notes missed 2 rows.*42501'
    as owner "select millrace.capture('app.notes', 'n', 'note', strict => true)"
    sql "revoke millrace_producer from owner; revoke team from owner"
    run as writer "insert into app.notes values (3)"
    sql "grant millrace_producer to owner; grant team to owner"
    [ "$status" -ne 0 ]
    [[ $output == *42501* ]]
    [ "$(sql "select count(*) from app.notes")" -eq 2 ]
}

@test "a condition has the rights of the table's owner, whoever writes and whoever calls capture" {
    sql "create table app.seen (who name); grant all on app.seen to public; alter table app.seen owner to owner;
         create function app.look() returns boolean language sql as 'insert into app.seen values (current_user); select true';
         alter function app.look() owner to owner"
    as owner "select millrace.capture('app.notes', 'n', 'note', condition => 'app.look()')"
    as writer "insert into app.notes values (1)"
    sql "insert into app.notes values (2)"
    # A superuser captures for the owner, not for itself.
    sql "select millrace.capture('app.notes', 'n', 'note', condition => 'app.look()')"
    sql "insert into app.notes values (3)"
    [ "$(sql "select count(*), string_agg(distinct who, ' ') from app.seen")" = '3|owner' ]
    # What the owner may not read, no condition reads.
    sql "create table public.secret (id int); insert into public.secret values (1)"
    refused 22023 'permission denied for table secret' owner "select millrace.capture('app.notes', 'n', 'note', condition => 'exists (select from public.secret)')"
    sql "grant select on public.secret to owner"
    as owner "select millrace.capture('app.notes', 'n', 'note', condition => 'exists (select from public.secret)')"
    sql "revoke select on public.secret from owner"
    sql "insert into app.notes values (4)"
    [ "$(missed)" = '1|42501' ]
    sql "drop table public.secret"
}

@test "a table that changes hands is not captured with the old owner's rights" {
    as owner "select millrace.capture('app.notes', 'n', 'note')"
    sql "alter table app.notes owner to stranger; grant create on schema app to stranger"
    as stranger "insert into app.notes values (1)"
    [ "$(missed)" = '1|42501' ]
    [ "$(sql "select count(*) from millrace.jobs where queue = 'n' and status = 'available'")" -eq 0 ]
}

@test "a table of a group: any member captures it, with the group's rights" {
    sql "create table app.shared (id int); alter table app.shared owner to team; grant create, usage on schema app to team"
    as owner "select millrace.capture('app.shared', 'n', 'note')"
    as owner "insert into app.shared values (1)"
    [ "$(sql "select owner, missed from millrace.captures where source = 'app.shared'")" = 'team|0' ]
    [ "$(sql "select count(*) from millrace.jobs where queue = 'n' and status = 'available'")" -eq 1 ]
    as owner "select millrace.uncapture('app.shared', 'n')"
}

@test "things in front of the search_path and in pg_temp change nothing" {
    sql "create schema evil; grant usage on schema evil to public;
         create function evil.to_jsonb(anyelement) returns jsonb language plpgsql as 'begin raise exception ''evil''; end';
         create function evil.current_user() returns name language plpgsql as 'begin raise exception ''evil''; end'"
    as owner "select millrace.capture('app.notes', 'n', 'note', '{insert}', 'new.id > 0', unique_on => '{id}', strict => true)"
    as writer "set search_path = evil, public; create temporary table pg_trigger (i int); create temporary table new_rows (i int); insert into app.notes values (1)"
    [ "$(sql "select args -> 'new' ->> 'id' from millrace.jobs where queue = 'n' and status = 'available'")" = 1 ]
    sql "drop schema evil cascade"
}

@test "dropping Millrace leaves writers alone" {
    sql 'create database doomed'
    use_db doomed
    "$MR_BIN" migrate >/dev/null
    sql "create table t (id int); select millrace.capture('t', 'n', 'k')"
    sql "drop schema millrace cascade"
    sql "insert into t values (1)"
    [ "$(sql 'select count(*) from t')" -eq 1 ]
}

# ---- notifications -----------------------------------------------------------------------

@test "a channel hears each row, a large row without its values, many rows as one" {
    as owner "select millrace.capture('app.notes', 'n', 'note', '{insert,delete,truncate}', condition => 'coalesce(new.id, old.id) > 0', notify => 'Note Inserted')"
    run psql -X -q -A -t <<'SQL'
listen "Note Inserted";
insert into app.notes values (1, 'a'), (-1, 'b');
insert into app.notes values (2, repeat('x', 9000));
delete from app.notes where id = 1;
insert into app.notes select i, 'many' from generate_series(10, 1009) i;
truncate app.notes;
select 1;
SQL
    mapfile -t heard < <(sed -n 's/^Asynchronous notification "Note Inserted" with payload "\(.*\)" received .*/\1/p' <<<"$output")
    printf '%s\n' "${heard[@]}"
    [ "${#heard[@]}" -eq 5 ]
    [ "$(sql "select '${heard[0]}'::jsonb = '{\"event\": \"insert\", \"table\": \"app.notes\", \"new\": {\"id\": 1, \"status\": \"a\"}}'")" = t ]
    [ "$(sql "select '${heard[1]}'::jsonb = '{\"event\": \"insert\", \"table\": \"app.notes\", \"large\": true}'")" = t ]
    [ "$(sql "select '${heard[2]}'::jsonb ->> 'event'")" = delete ]
    [ "$(sql "select '${heard[3]}'::jsonb = '{\"event\": \"insert\", \"table\": \"app.notes\", \"rows\": 1000}'")" = t ]
    [ "$(sql "select '${heard[4]}'::jsonb ->> 'event'")" = truncate ]
}

# ---- dumps -------------------------------------------------------------------------------

@test "a dump carries captures: restored elsewhere they enqueue, and a restore enqueues nothing" {
    as owner "select millrace.capture('app.notes', 'n', 'note', '{insert,delete}', 'new.id > 0', unique_on => '{id}', notify => 'c');
              select millrace.capture('app.notes', 'off', 'note');
              select millrace.capture_disable('app.notes', 'off')"
    as writer "insert into app.notes values (1), (2)"
    # Something to count: the owner cannot enqueue for a moment.
    sql "revoke millrace_producer from owner; revoke team from owner"
    as writer "insert into app.notes values (3)"
    sql "grant millrace_producer to owner; grant team to owner"
    local before
    before=$(sql "select queue, kind, events, condition, unique_on, on_conflict, notify, strict, enabled, owner, missed, missed_at, missed_code from millrace.captures order by queue")
    pg_dump -Fc -f "$MR_SCRATCH/capture.dump"
    (
        private_server other
        trap remove_private_server EXIT
        sql "create role owner login; create role writer login; create role stranger login; create role outsider login; create role admin login; create role team"
        # Roles of Millrace are not there yet, and so their grants.
        pg_restore -d postgres "$MR_SCRATCH/capture.dump" 2>/dev/null || true
        # Not at home yet: written, not enqueued.
        sql "grant usage on schema app to writer; insert into app.notes values (4)" 2>/dev/null
        [ "$(sql "select count(*) from app.notes")" -eq 4 ]
        "$MR_BIN" migrate
        sql "grant millrace_producer to owner"
        [ "$(sql "select queue, kind, events, condition, unique_on, on_conflict, notify, strict, enabled, owner, missed - (queue = 'n')::int from millrace.captures order by queue")" = \
            "$(cut -d '|' -f 1-11 <<<"$before")" ]
        [ "$(sql "select count(*) from millrace.jobs where queue in ('n', 'off')")" -eq 2 ]
        psql -X -q -U writer -c "insert into app.notes values (5)"
        [ "$(sql "select args -> 'new' ->> 'id' from millrace.jobs where queue = 'n' order by id desc limit 1")" = 5 ]
        sql "set role owner; select millrace.capture_enable('app.notes', 'off'); select millrace.uncapture('app.notes', 'n')"
        psql -X -q -U writer -c "insert into app.notes values (6)"
        [ "$(sql "select count(*) from millrace.jobs where queue = 'off'")" -eq 1 ]
    )
}

# ---- the command -------------------------------------------------------------------------

@test "millrace capture" {
    local dsn="host=$PGHOST port=$PGPORT user=owner dbname=postgres"
    export MILLRACE_DSN=$dsn
    run -0 "$MR_BIN" capture list
    [ "${#lines[@]}" -le 1 ]
    run -0 "$MR_BIN" capture add app.notes n note --events insert,update --when "new.status = 'open'" --columns status --unique-on id,status --replace \
        --carry id --notify c --strict
    [[ ${lines[1]} == 'app.notes  n      note  insert update  strict       0  -' ]] || { echo "$output"; return 1; }
    run -0 "$MR_BIN" capture list --json
    [ "$(sql "select c - 'missed_at' from jsonb_array_elements('${output//\'/\'\'}'::jsonb -> 'captures') c")" = \
        "$(sql "select '{\"kind\": \"note\", \"carry\": [\"id\"], \"owner\": \"owner\", \"queue\": \"n\", \"events\": [\"insert\", \"update\"], \"missed\": 0, \"notify\": \"c\", \"source\": \"app.notes\", \"strict\": true, \"columns\": [\"status\"], \"enabled\": true, \"condition\": \"new.status = ''open''\", \"unique_on\": [\"id\", \"status\"], \"missed_code\": null, \"on_conflict\": \"replace\"}'::jsonb")" ]
    as writer "insert into app.notes values (1, 'open'), (2, 'shut')"
    [ "$(sql "select args -> 'new' from millrace.jobs where queue = 'n' and status = 'available'")" = '{"id": 1}' ]
    run -0 "$MR_BIN" capture disable app.notes n
    [ "$output" = 'disabled: app.notes to n' ]
    run -0 "$MR_BIN" capture list
    [[ ${lines[1]} == *' off '* ]]
    run -0 "$MR_BIN" capture enable app.notes n --json
    [ "$output" = '{"source":"app.notes","queue":"n","enabled":true}' ]
    run -0 "$MR_BIN" capture remove app.notes n --json
    [ "$output" = '{"source":"app.notes","queue":"n","removed":true}' ]
    run -1 "$MR_BIN" capture remove app.notes n
    [ "${lines[0]}" = "millrace: app.notes is not captured into queue 'n'" ]
    [[ ${lines[1]} == 'hint: '* ]]
    run -1 "$MR_BIN" capture add app.nowhere n note
    [[ ${lines[0]} == *'"app.nowhere" does not exist'* ]]
    run -1 "$MR_BIN" capture add app.notes n note --when 'nonsense'
    [[ ${lines[0]} == "millrace: condition 'nonsense': "* ]]
    run -0 "$MR_BIN" capture add app.notes n note --json
    [[ $output == '{"source":"app.notes","queue":"n","kind":"note","events":["insert"],'* ]]
}
