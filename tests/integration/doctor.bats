#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# `millrace doctor` as a program: what it prints, its exit status, who may call it, and what it says
# where it cannot look. Its verdicts are in doctor_verdicts.bats and tests/sql/doctor.sql.

bats_require_minimum_version 1.5.0
load ../lib/server
load ../lib/doctor

setup_file()
{
    private_server ill -o fsync=on -o autovacuum=on -o max_connections=40 -o max_locks_per_transaction=160 \
        -o superuser_reserved_connections=30 -o max_prepared_transactions=5 -o wal_level=replica \
        -o archive_mode=on -o archive_command=true -o listen_addresses=127.0.0.1
    "$MR_BIN" migrate >/dev/null
}

teardown_file()
{
    remove_private_server
}

@test "a healthy server: every check has its row, nothing is worse than a note, and the status is 0" {
    run --separate-stderr "$MR_BIN" doctor
    echo "$output"
    [ "$status" -eq 0 ]
    [ -z "$stderr" ]
    [[ ${lines[0]} == note* ]]
    [[ ${lines[-1]} == *' checks: 0 critical, 0 warnings, '*' notes, '*' ok' ]]
    [[ $output != *$'\033'* ]]
    grep -qE '^ok +server version +PostgreSQL [0-9]+' <<<"$output"
    grep -qE '^ok +pooler +none in between$' <<<"$output"
    # a remedy for each that is not ok, and for no other
    [ "$(grep -cE '^ +-> ' <<<"$output")" -eq "$(grep -c '^note ' <<<"$output")" ]
}

@test "JSON has the same checks, and the worst verdict" {
    run --separate-stderr "$MR_BIN" doctor --json
    [ "$status" -eq 0 ]
    [ "$(jq -r .verdict <<<"$output")" = note ]
    [ "$(jq '.checks | length' <<<"$output")" -ge 36 ]
    [ "$(jq '[.checks[] | select((.remedy == null) != (.verdict == "ok"))] | length' <<<"$output")" -eq 0 ]
    [ "$(jq -r '.checks | map(.topic) | unique | length' <<<"$output")" = "$(jq '.checks | length' <<<"$output")" ]
}

@test "colours on a terminal" {
    need_terminal
    run script --quiet --return --command "'$MR_BIN' doctor" /dev/null
    [ "$status" -eq 0 ]
    [[ $output == *$'\033[32mok'* ]]
    NO_COLOR=1 run script --quiet --return --command "'$MR_BIN' doctor" /dev/null
    [[ $output != *$'\033['* ]]
    TERM=dumb run script --quiet --return --command "'$MR_BIN' doctor" /dev/null
    [[ $output != *$'\033['* ]]
}

@test "the disk: known on the server's host, over a socket" {
    check_is disk "*: * % of * GB free at $MR_SERVER/data -> *"
    run --separate-stderr "$MR_BIN" doctor --json --dsn "host=127.0.0.1 port=$PGPORT user=$PGUSER dbname=postgres"
    [ "$(jq -r '.checks[] | select(.topic == "disk") | "\(.verdict): \(.evidence)"' <<<"$output")" = 'note: not known: the server is reached over the network' ]
}

@test "a reader may call it, and is told what it may not see" {
    sql 'create role looker login' && sql 'grant millrace_reader to looker' && sql "alter role looker password '$PGPASSWORD'"
    run --separate-stderr "$MR_BIN" doctor --json --dsn "host=$PGHOST port=$PGPORT user=looker dbname=postgres"
    echo "$output $stderr"
    [ "$(jq -r '.checks[] | select(.topic == "disk") | .evidence' <<<"$output")" = 'not known: the data directory is told to members of pg_read_all_settings' ]
    [ "$(jq -r '.checks[] | select(.topic == "roles") | .evidence' <<<"$output")" = '1 users have one' ]
    [ "$(jq -r '[.checks[] | select(.evidence | startswith("could not"))] | length' <<<"$output")" = 0 ]
    sql 'create role stranger login' && sql "alter role stranger password '$PGPASSWORD'"
    run --separate-stderr "$MR_BIN" doctor --dsn "host=$PGHOST port=$PGPORT user=stranger dbname=postgres"
    [ "$status" -eq 1 ]
    [[ $stderr == 'millrace: '*'permission denied'* ]]
}

@test "a schema of another cluster, no schema, no server" {
    sql 'update millrace.home set system_id = system_id + 1'
    check_is schema 'critical: restored from another cluster: every function refuses (MR004)* -> Run `millrace migrate`.'
    sql 'update millrace.home set system_id = system_id - 1'
    run --separate-stderr "$MR_BIN" doctor --json --dsn "host=$PGHOST port=$PGPORT user=$PGUSER dbname=template1"
    [ "$status" -eq 1 ]
    [ "$(jq -r '.checks[] | "\(.topic) \(.verdict)"' <<<"$output")" = 'schema critical' ]
    [[ $stderr == *'hint: Install or upgrade the schema with `millrace migrate`.'* ]]
    run --separate-stderr "$MR_BIN" doctor --dsn 'host=/nonexistent port=1 dbname=x user=me password=sesame'
    [ "$status" -eq 3 ]
    [ -z "$output" ]
    [[ $stderr == 'millrace: cannot connect to the database: '* ]]
    [[ $stderr == *'detail: Tried '*'host=/nonexistent port=1; nothing else'* ]]
    [[ $stderr != *sesame* ]]
    run --separate-stderr "$MR_BIN" doctor --json --dsn 'host=/nonexistent dbname=x'
    [ "$status" -eq 3 ]
    [ "$(jq -r '.verdict + " " + .checks[0].topic' <<<"$output")" = 'critical connection' ]
}
