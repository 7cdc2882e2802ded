#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# `millrace migrate`, with the program and the small sets of .sql files of migrate/. Roles
# belong to a whole cluster: the file has a server of its own, and each test begins without
# roles and with an empty database.

bats_require_minimum_version 1.5.0
load ../lib/server

setup_file()
{
    private_server migrate -o max_connections=60
    export SETS=${MR_BIN%/*}/tests/integration/migrate
    sql 'create role plain login; create role maker login createrole'
}

teardown_file()
{
    remove_private_server
}

setup()
{
    empty_db
}

teardown()
{
    drop_db
    PGDATABASE=postgres PGOPTIONS='-c client_min_messages=error' \
        sql 'drop role if exists millrace_admin, millrace_producer, millrace_worker, millrace_reader'
}

migrate()
{
    local set=$1
    shift
    "$SETS/millrace_$set" migrate "$@"
}

# The same as another user.
migrate_as()
{
    local user=$1 set=$2
    shift 2
    PGUSER=$user migrate "$set" --dsn "dbname=$PGDATABASE user=$user" "$@"
}

applied()
{
    sql "select string_agg(migration_number || '_' || migration_name, ' ' order by migration_number)
         from millrace.schema_migration"
}

# ---- the program -------------------------------------------------------------------------

@test "help, version, unknown command, no command" {
    run "$MR_BIN" --help
    [ "$status" -eq 0 ]
    has 'migrate'
    run "$MR_BIN" --version
    [ "$status" -eq 0 ]
    [[ $output =~ ^millrace\ [0-9]+\.[0-9]+\.[0-9]+$ ]]
    run "$MR_BIN" migrat
    [ "$status" -eq 2 ]
    [ "${lines[0]}" = 'millrace: unknown command: migrat' ]
    [[ ${lines[1]} == 'hint: '*'millrace migrate'* ]]
    run "$MR_BIN"
    [ "$status" -eq 2 ]
    run "$MR_BIN" migrate --help
    [ "$status" -eq 0 ]
    has '--lock-timeout TIME'
}

@test "wrong usage exits 2 and changes nothing" {
    local usage
    for usage in --chek extra -x --lock-timeout '--lock-timeout 5' '--lock-timeout=0s' \
        '--lock-timeout 25h' '--check=1' '--print --check' '--print --json' '--print --again' '--from 1' '--print --from 99'; do
        # shellcheck disable=SC2086  # several arguments
        run migrate base $usage
        echo "$usage: $output"
        [ "$status" -eq 2 ]
        [[ ${lines[0]} == 'millrace: '* ]]
    done
    run migrate base --chek
    has 'hint: Did you mean --check?'
    [ "$(sql "select count(*) from pg_namespace where nspname = 'millrace'")" = 0 ]
}

@test "a full standard output is an error" {
    run bash -c '"$0" migrate --print >/dev/full' "$MR_BIN"
    [ "$status" -eq 1 ]
    has 'cannot write to standard output'
}

# ---- connecting --------------------------------------------------------------------------

@test "an unreachable database exits 3 with a hint" {
    run migrate base --dsn 'host=/nonexistent dbname=x'
    [ "$status" -eq 3 ]
    [[ ${lines[0]} == 'millrace: cannot connect to the database: '* ]]
    has 'hint: '
    run migrate base --dsn "dbname=no_such_database"
    [ "$status" -eq 3 ]
    has 'no_such_database'
}

@test "--dsn comes before MILLRACE_DSN before DATABASE_URL before libpq's environment" {
    local good="dbname=$PGDATABASE"
    MILLRACE_DSN=dbname=wrong DATABASE_URL=dbname=wrong run migrate base --check --dsn "$good"
    has 'behind'
    MILLRACE_DSN=$good DATABASE_URL=dbname=wrong PGDATABASE=wrong run migrate base --check
    has 'behind'
    MILLRACE_DSN='' DATABASE_URL=$good PGDATABASE=wrong run migrate base --check
    has 'behind'
    MILLRACE_DSN='' DATABASE_URL='' run migrate base --check
    has 'behind'
    MILLRACE_DSN='' DATABASE_URL='' PGDATABASE=wrong run migrate base --check
    [ "$status" -eq 3 ]
}

@test "a connection string that cannot be parsed is not repeated" {
    local dsn
    for dsn in 'postgresql//me:s3cret@host/db' 'postgresql://me:s3cret@host/db?nonsense=1' \
        'password=s3cret nonsense=1' 'host=h password=s3cret db'; do
        run migrate base --dsn "$dsn"
        [ "$status" -eq 2 ]
        has 'in --dsn cannot be parsed'
        has_not s3cret
    done
    MILLRACE_DSN='x=s3cret' run migrate base
    has 'in MILLRACE_DSN cannot be parsed'
}

# ---- installing --------------------------------------------------------------------------

@test "an empty database: everything, in order, recorded; the second run has nothing to do" {
    run migrate base
    [ "$status" -eq 0 ]
    [ "${lines[0]}" = 'done: create role millrace_reader nologin' ]
    has 'done: grant millrace_worker to millrace_admin'
    has 'done: migration 0001_mill'
    [ "${lines[-2]}" = 'done: functions, views and grants' ]
    [ "${lines[-1]}" = 'up to date now' ]
    [ "$(applied)" = '1_mill 2_wheel' ]
    [ "$(sql 'select mill_text from millrace.mill')" = 'ground; grün' ]
    [ "$(sql 'select millrace.turns()')" = 0 ]
    [ "$(sql 'select count(*) from millrace.after_call')" = 1 ]
    [ "$(sql "select count(*) from pg_roles where rolname ~ '^millrace_' and not rolcanlogin")" = 4 ]
    [ "$(sql "select pg_has_role('millrace_admin', 'millrace_reader', 'usage')")" = t ]
    run migrate base
    [ "$status" -eq 0 ]
    [ "$output" = 'up to date' ]
    [ "$(sql 'select count(*) from millrace.mill')" = 1 ]
}

@test "recorded checksums are those of the files" {
    migrate base
    local number path
    for path in "$MR_ROOT"/tests/integration/migrate/base/migrations/*.sql; do
        number=${path##*/}
        number=${number%%_*}
        [ "$(sql "select checksum from millrace.schema_migration where migration_number = $number")" = \
            "$(sha256sum <"$path" | cut -d ' ' -f 1)" ]
    done
    [ "$(sql "select applied_by = current_user and applied_at <= now() and program_version ~ '^[0-9.]+$'
              from millrace.schema_functions")" = t ]
}

@test "the real files install and are up to date" {
    run "$MR_BIN" migrate
    echo "$output"
    [ "$status" -eq 0 ]
    run "$MR_BIN" migrate --check
    [ "$status" -eq 0 ]
    [ "$output" = 'up to date' ]
}

@test "no files at all: roles and bookkeeping only" {
    run migrate empty
    [ "$status" -eq 0 ]
    run migrate empty
    [ "$output" = 'up to date' ]
}

@test "no superuser is needed" {
    sql "grant create on database $PGDATABASE to maker"
    run migrate_as maker base
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$(sql "select nspowner::regrole from pg_namespace where nspname = 'millrace'")" = maker ]
    run migrate_as maker base
    [ "$output" = 'up to date' ]
}

@test "--json for both" {
    run migrate base --check --json
    [ "$status" -eq 1 ]
    [ "$(sql "select json_array_length(j -> 'roles') || ' ' || (j ->> 'schema') || ' ' || (j -> 'migrations')
              || ' ' || (j ->> 'functions') || ' ' || (j ->> 'up_to_date') || ' ' || (j ->> 'changed')
              from (select '$output'::json as j) as answer")" = \
        '8 true [{"number":1,"name":"mill"},{"number":2,"name":"wheel"}] true false false' ]
    run migrate base --json
    [ "$status" -eq 0 ]
    [ "$(sql "select json_array_length(j -> 'migrations') || ' ' || (j ->> 'up_to_date') || ' ' || (j ->> 'changed')
              from (select '$output'::json as j) as answer")" = '2 true true' ]
    run migrate base --json
    [ "$(sql "select json_array_length(j -> 'migrations') || ' ' || (j ->> 'up_to_date') || ' ' || (j ->> 'changed')
              from (select '$output'::json as j) as answer")" = '0 true false' ]
}

@test "--check tells what is left, changes nothing and exits 1" {
    run migrate base --check
    [ "$status" -eq 1 ]
    has 'pending: create role millrace_admin nologin'
    has 'pending: create schema millrace'
    has 'pending: migration 0002_wheel'
    has 'pending: functions, views and grants'
    [ "$(sql "select count(*) from pg_namespace where nspname = 'millrace'")" = 0 ]
    [ "$(sql "select count(*) from pg_roles where rolname ~ '^millrace_'")" = 0 ]
    migrate base
    run migrate upgraded --check
    [ "$status" -eq 1 ]
    [ "${lines[0]}" = 'pending: migration 0003_sluice' ]
    [ "$(applied)" = '1_mill 2_wheel' ]
}

# ---- upgrading ---------------------------------------------------------------------------

@test "an upgrade applies what is missing and installs functions again" {
    migrate base
    sql 'drop view millrace.wheels'
    run migrate upgraded
    [ "$status" -eq 0 ]
    [ "${lines[0]}" = 'done: migration 0003_sluice' ]
    [ "${lines[1]}" = 'done: functions, views and grants' ]
    [ "$(applied)" = '1_mill 2_wheel 3_sluice' ]
    [ "$(sql 'select count(*) from millrace.wheels')" = 0 ]
}

@test "functions that differ are installed again, migrations are left alone" {
    migrate base
    sql "update millrace.schema_functions set checksum = 'other'"
    run migrate base --check
    [ "$status" -eq 1 ]
    [ "${lines[0]}" = 'pending: functions, views and grants' ]
    run migrate base
    [ "${lines[0]}" = 'done: functions, views and grants' ]
    run migrate base
    [ "$output" = 'up to date' ]
}

@test "after_migrate() is called when there is nothing to install, too" {
    migrate base
    migrate base
    [ "$(sql 'select count(*) from millrace.after_call')" = 2 ]
}

@test "a schema restored without its roles gets roles and grants" {
    migrate base
    pg_dump --no-privileges >"$MR_SCRATCH/dump.sql"
    teardown
    setup
    psql -X -q -v ON_ERROR_STOP=1 -f "$MR_SCRATCH/dump.sql" >"$MR_SCRATCH/restore.log"
    run migrate base
    [ "$status" -eq 0 ]
    has 'done: create role millrace_reader nologin'
    has 'done: functions, views and grants'
    [ "$(sql "select has_table_privilege('millrace_worker', 'millrace.wheels', 'select')")" = t ]
    [ "$(sql 'select count(*) from millrace.after_call')" = 2 ]
}

@test "a failing migration: the ones before it stay, the message says where" {
    run migrate broken
    [ "$status" -eq 1 ]
    has 'done: migration 0002_wheel'
    has 'millrace: cannot apply sql/migrations/0003_broken.sql: line 5: type "grün_type" does not exist'
    has 'hint: '
    [ "$(applied)" = '1_mill 2_wheel' ]
    [ "$(sql "select to_regclass('millrace.sluice') is null")" = t ]
    run migrate upgraded
    [ "$status" -eq 0 ]
    [ "$(applied)" = '1_mill 2_wheel 3_sluice' ]
}

@test "a failing function: its transaction leaves nothing, nor the last migration, which it may not fit" {
    sql "create function public.refuse() returns event_trigger language plpgsql
         as 'begin raise exception ''no views today''; end';
         create event trigger refuse on ddl_command_start when tag in ('CREATE VIEW')
         execute function public.refuse()"
    run migrate base
    [ "$status" -eq 1 ]
    has 'cannot apply sql/views/wheels.sql: no views today'
    [ "$(sql "select count(*) from pg_proc where pronamespace = 'millrace'::regnamespace")" = 0 ]
    [ "$(applied)" = 1_mill ]
    sql 'drop event trigger refuse'
    run migrate base
    [ "$status" -eq 0 ]
    [ "${lines[0]}" = 'done: migration 0002_wheel' ]
    [ "${lines[1]}" = 'done: functions, views and grants' ]
}

@test "after_migrate() may raise: functions are not recorded" {
    migrate base
    sql "alter table millrace.after_call add constraint after_call_full check (false) not valid;
         delete from millrace.schema_functions"
    run migrate base
    [ "$status" -eq 1 ]
    has 'millrace.after_migrate(): '
    has 'after_call_full'
    [ "$(sql 'select count(*) from millrace.schema_functions')" = 0 ]
}

@test "a migration that commits is refused" {
    run migrate ends
    [ "$status" -eq 1 ]
    has 'cannot apply sql/migrations/0001_ends.sql: it ended its transaction'
    [ -z "$(applied)" ]
}

# ---- refusing ----------------------------------------------------------------------------

@test "a database newer than the program" {
    migrate upgraded
    run migrate base
    [ "$status" -eq 1 ]
    has 'the database is newer than this program: migration 0003_sluice'
    has 'hint: '
    run migrate base --check
    [ "$status" -eq 1 ]
    has 'newer'
}

@test "functions of a newer program are not replaced by older ones" {
    migrate base
    sql "update millrace.schema_functions set checksum = 'other', program_version = '999.0.0'"
    run migrate base
    [ "$status" -eq 1 ]
    has 'its functions are of millrace 999.0.0'
    [ "$(sql 'select program_version from millrace.schema_functions')" = 999.0.0 ]
}

@test "an altered migration" {
    migrate base
    sql "update millrace.schema_migration set checksum = 'other' where migration_number = 1"
    run migrate upgraded
    [ "$status" -eq 1 ]
    has 'migration 0001_mill was altered'
    has 'hint: '
    [ "$(applied)" = '1_mill 2_wheel' ]
}

@test "a schema of somebody else" {
    sql 'create schema millrace; create table millrace.flour (flour_id integer)'
    run migrate base
    [ "$status" -eq 1 ]
    has "it is not Millrace's"
    has 'hint: '
    [ "$(sql "select count(*) from pg_roles where rolname ~ '^millrace_'")" = 0 ]
}

@test "roles are missing and may not be created: the hint names the statements" {
    sql "grant create on database $PGDATABASE to plain"
    run migrate_as plain base
    [ "$status" -eq 1 ]
    has 'cannot create the roles'
    [ "$(sql "select count(*) from pg_namespace where nspname = 'millrace'")" = 0 ]
    local statements=${output#*let a DBA run: }
    sql "$statements"
    run migrate_as plain base
    echo "$output"
    [ "$status" -eq 0 ]
}

@test "no CREATE on the database: nothing changes, not even roles" {
    run migrate_as maker base
    [ "$status" -eq 1 ]
    has 'cannot create the schema'
    has "grant create on database $PGDATABASE to maker"
    [ "$(sql "select count(*) from pg_roles where rolname ~ '^millrace_'")" = 0 ]
    sql 'create schema millrace authorization maker'
    run migrate_as maker base
    echo "$output"
    [ "$status" -eq 0 ]
}

@test "not the owner of the schema" {
    migrate base
    sql 'grant millrace_reader to plain'
    run migrate_as plain upgraded
    [ "$status" -eq 1 ]
    has 'plain is not the owner of the schema millrace'
    has 'hint: Connect as postgres'
    run migrate_as plain base
    [ "$status" -eq 0 ]
    [ "$output" = 'up to date' ]
    [ "$(applied)" = '1_mill 2_wheel' ]
}

@test "a user without any right is told what it needs" {
    migrate base
    run migrate_as plain base --check
    [ "$status" -eq 1 ]
    has 'cannot read what is installed'
    has 'millrace_reader'
}

@test "read-only transactions" {
    sql "alter database $PGDATABASE set default_transaction_read_only = on"
    run migrate base
    [ "$status" -eq 1 ]
    has 'transactions are read-only here'
    has 'hint: '
}

@test "a standby" {
    migrate base
    install -m 600 --owner="$(stat -c %u "$MR_SERVER/data")" /dev/null "$MR_SERVER/data/standby.signal"
    "$MR_ROOT/tools/pgserver" restart "$MR_SERVER"
    run migrate base
    local same_status=$status same_output=$output
    run migrate upgraded
    local next_status=$status next_output=$output
    sql 'select pg_promote()'
    [ "$same_status" -eq 0 ]
    [ "$same_output" = 'up to date' ]
    [ "$next_status" -eq 1 ]
    output=$next_output
    has 'this server is a standby'
    has 'hint: Connect to the primary.'
}

# ---- at once -----------------------------------------------------------------------------

@test "ten at once: all succeed, everything is applied once" {
    local i pids=()
    for i in {1..10}; do
        migrate upgraded >"$MR_SCRATCH/at-once-$i" 2>&1 &
        pids+=($!)
    done
    for i in "${pids[@]}"; do
        wait "$i" || { cat "$MR_SCRATCH"/at-once-*; false; }
    done
    [ "$(cat "$MR_SCRATCH"/at-once-* | grep -c 'migration 0003_sluice')" -eq 1 ]
    [ "$(cat "$MR_SCRATCH"/at-once-* | grep -c 'functions, views')" -eq 1 ]
    [ "$(sql 'select count(*) from millrace.mill')" = 1 ]
}

@test "several databases of a cluster at once: roles are made once" {
    local i pids=() prefix=$PGDATABASE
    for i in {1..6}; do
        PGDATABASE=postgres sql "create database ${prefix}_$i"
    done
    for i in {1..6}; do
        migrate base --dsn "dbname=${prefix}_$i" >"$MR_SCRATCH/databases-$i" 2>&1 &
        pids+=($!)
    done
    local failed=0
    for i in "${pids[@]}"; do
        wait "$i" || failed=1
    done
    cat "$MR_SCRATCH"/databases-*
    for i in {1..6}; do
        PGDATABASE=postgres sql "drop database ${prefix}_$i with (force)"
    done
    [ $failed -eq 0 ]
}

# Holds a lock in a session of its own until its standard input is closed.
hold()
{
    coproc HOLDER { PGAPPNAME=holder psql -X -q -A -t; }
    printf 'begin; %s; select pg_backend_pid();\n' "$1" >&"${HOLDER[1]}"
    local pid
    until read -r pid <&"${HOLDER[0]}" && [[ $pid =~ ^[0-9]+$ ]]; do :; done
    holder_pid=$pid
}

release()
{
    local input=${HOLDER[1]}
    # shellcheck disable=SC2153  # coproc sets it
    local pid=$HOLDER_PID
    exec {input}>&-
    wait "$pid" || true
}

@test "a lock that is not granted: an error that names the holder" {
    migrate base
    hold 'lock table millrace.wheel in access share mode'
    run migrate upgraded --lock-timeout 200ms
    release
    [ "$status" -eq 1 ]
    has 'cannot apply sql/migrations/0003_sluice.sql: '
    has 'lock timeout'
    has "process $holder_pid (user postgres, application \"holder\", idle in transaction)"
    has '--lock-timeout'
    run migrate upgraded
    [ "$status" -eq 0 ]
}

@test "another migration that does not end: an error that names it" {
    hold 'select pg_advisory_xact_lock(7811887347127673)'
    run migrate base --wait-timeout 200ms
    release
    [ "$status" -eq 1 ]
    has 'another migration did not end within 200 ms'
    has "process $holder_pid "
    has '--wait-timeout'
    [ "$(sql "select count(*) from pg_namespace where nspname = 'millrace'")" = 0 ]
}

@test "a connection that breaks in the middle exits 3 and leaves whole steps" {
    migrate base
    hold 'lock table millrace.wheel in access share mode'
    migrate upgraded --lock-timeout 60s >"$MR_SCRATCH/broken" 2>&1 &
    local pid=$! status=0
    wait_until 20 test_waiting
    sql "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'millrace'"
    wait $pid || status=$?
    release
    cat "$MR_SCRATCH/broken"
    [ $status -eq 3 ]
    [ "$(applied)" = '1_mill 2_wheel' ]
    run migrate upgraded
    [ "$status" -eq 0 ]
}

test_waiting()
{
    [ "$(sql "select count(*) from pg_stat_activity where application_name = 'millrace' and wait_event_type = 'Lock'")" = 1 ]
}

# ---- printing ----------------------------------------------------------------------------

@test "--print needs no connection, and its SQL is a whole installation" {
    PGHOST=/nonexistent MILLRACE_DSN='' run --separate-stderr migrate base --print
    [ "$status" -eq 0 ]
    [ -z "$stderr" ]
    printf '%s\n' "$output" >"$MR_SCRATCH/print.sql"
    run psql -X -q -v ON_ERROR_STOP=1 -f "$MR_SCRATCH/print.sql"
    [ "$status" -eq 0 ]
    [ -z "$output" ]
    run migrate base --check
    [ "$status" -eq 0 ]
    [ "$output" = 'up to date' ]
    [ "$(sql 'select mill_text from millrace.mill')" = 'ground; grün' ]
    [ "$(sql 'select count(*) from millrace.after_call')" = 1 ]
}

@test "printed and migrated databases are the same" {
    local printed=$PGDATABASE
    migrate base --print | psql -X -q -v ON_ERROR_STOP=1
    pg_dump --schema-only >"$MR_SCRATCH/printed.dump"
    empty_db
    migrate base
    pg_dump --schema-only >"$MR_SCRATCH/migrated.dump"
    drop_db
    use_db "$printed"
    # some releases of pg_dump write a random \restrict word
    diff <(grep -v restrict "$MR_SCRATCH/printed.dump") <(grep -v restrict "$MR_SCRATCH/migrated.dump")
}

@test "the real files, printed" {
    "$MR_BIN" migrate --print | psql -X -q -v ON_ERROR_STOP=1
    run "$MR_BIN" migrate --check
    [ "$output" = 'up to date' ]
}

@test "--print --from is an upgrade, and refuses any other database" {
    migrate base
    migrate upgraded --print >"$MR_SCRATCH/install.sql"
    migrate upgraded --print --from 2 >"$MR_SCRATCH/upgrade.sql"
    run psql -X -q -v ON_ERROR_STOP=1 -f "$MR_SCRATCH/install.sql"
    [ "$status" -eq 3 ]
    has 'this SQL is for a database at Millrace migration 0, but this one is at 2'
    has 'millrace migrate --print --from 2'
    run migrate base --check
    [ "$output" = 'up to date' ]
    psql -X -q -v ON_ERROR_STOP=1 -f "$MR_SCRATCH/upgrade.sql"
    run migrate upgraded --check
    [ "$output" = 'up to date' ]
}

# ---- building ----------------------------------------------------------------------------

@test "embed: a file that appears changes the output, nothing else does" {
    local out=$MR_SCRATCH/embedded.c tree=$MR_SCRATCH/tree embed=${MR_BIN%/*}/tools/embed stamp
    mkdir -p "$tree/migrations" "$tree/api"
    echo 'select 1;' >"$tree/migrations/0001_one.sql"
    "$embed" "$out" "$MR_ROOT/sql/schema" "$tree"
    touch -d '2001-01-01' "$out"
    stamp=$(stat -c %Y "$out")
    "$embed" "$out" "$MR_ROOT/sql/schema" "$tree"
    [ "$(stat -c %Y "$out")" = "$stamp" ]
    echo 'select 2;' >"$tree/api/two.sql"
    "$embed" "$out" "$MR_ROOT/sql/schema" "$tree"
    [ "$(stat -c %Y "$out")" != "$stamp" ]
    grep -q 'sql/api/two.sql' "$out"
    echo 'select 1;' >"$tree/migrations/0001_other.sql"
    run "$embed" "$out" "$MR_ROOT/sql/schema" "$tree"
    [ "$status" -eq 1 ]
    has 'have the same number'
    mv "$tree/migrations/0001_other.sql" "$tree/migrations/other.sql"
    run "$embed" "$out" "$MR_ROOT/sql/schema" "$tree"
    [ "$status" -eq 1 ]
    has 'NNNN_name.sql'
}
