#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# `millrace doctor` on a server that is made ill in every way it looks for: the verdict, what was
# found, the remedy, and the exit status. What the tables alone can show is in tests/sql/doctor.sql.

bats_require_minimum_version 1.5.0
load ../lib/server

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

# The check $1 as "verdict: evidence -> remedy", as the program has it.
check()
{
    "$MR_BIN" doctor --json | jq -r --arg topic "$1" '.checks[] | select(.topic == $topic) | "\(.verdict): \(.evidence) -> \(.remedy)"'
}

# The same $2 later, by the clock that the SQL function is given.
check_later()
{
    sql "select d.verdict || ': ' || d.evidence || ' -> ' || coalesce(d.remedy, '') from millrace.doctor_at(clock_timestamp() + interval '$2') d where d.topic = '$1'"
}

# check_is TOPIC PATTERN, where * is anything
check_is()
{
    local found
    found=$(check "$1")
    # shellcheck disable=SC2053  # a pattern
    if [[ $found != $2 ]]; then
        printf 'expected: %s\nfound:    %s\n' "$2" "$found" >&2
        return 1
    fi
}

later_is()
{
    local found
    found=$(check_later "$1" "$2")
    # shellcheck disable=SC2053  # a pattern
    if [[ $found != $3 ]]; then
        printf 'expected: %s\nfound:    %s\n' "$3" "$found" >&2
        return 1
    fi
}

# A session with an open transaction that has run $1, until close_transaction; $backend is its pid.
open_transaction()
{
    local name=held_$RANDOM
    mkfifo "$BATS_TEST_TMPDIR/$name"
    PGAPPNAME=$name psql -X -q -v ON_ERROR_STOP=1 3>&- >/dev/null <"$BATS_TEST_TMPDIR/$name" &
    session=$!
    exec 7>"$BATS_TEST_TMPDIR/$name"
    printf 'begin;\n%s;\n' "$1" >&7
    wait_until 10 eval "[ \"\$(sql \"select count(*) from pg_stat_activity where application_name = '$name' and state = 'idle in transaction'\")\" = 1 ]"
    backend=$(sql "select pid from pg_stat_activity where application_name = '$name'")
}

close_transaction()
{
    exec 7>&-
    wait "$session"
    wait_until 10 eval "[ \"\$(sql \"select count(*) from pg_stat_activity where pid = $backend\")\" = 0 ]"
}

# Changes a setting for the length of one check.
with_setting()
{
    sql "alter system set $1 = $2"
    sql 'select pg_reload_conf()' >/dev/null
    wait_until 10 eval "[ \"\$(sql \"select reset_val from pg_settings where name = '$1'\")\" = '$2' ]"
    "${@:3}" || return
    sql "alter system reset $1"
    sql 'select pg_reload_conf()' >/dev/null
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
}

@test "settings of the server that endanger jobs" {
    with_setting fsync off check_is fsync 'critical: off: a crash * -> alter system set fsync = on; select pg_reload_conf()'
    with_setting fsync off eval 'run "$MR_BIN" doctor; [ "$status" -eq 1 ] && [[ ${lines[0]} == "critical  fsync "* ]]'
    with_setting full_page_writes off check_is full_page_writes 'warning: off: * -> alter system set full_page_writes = on*'
    with_setting synchronous_commit off check_is synchronous_commit 'warning: off: * -> alter system set synchronous_commit = on*'
    with_setting autovacuum off check_is autovacuum 'critical: off: * -> alter system set autovacuum = on*'
    with_setting track_counts off check_is track_counts 'critical: off: *'
    with_setting jit off check_is jit 'ok: off -> null'
    check_is jit 'note: on: * -> alter system set jit = off*'
    with_setting idle_in_transaction_session_timeout 300000 check_is 'idle in transaction' 'ok: 0 sessions; * is 300000 ms -> null'
    check_is 'idle in transaction' 'note: 0 sessions; * is off -> alter system set idle_in_transaction_session_timeout*'
    check_is shared_buffers 'note: * the default or less -> alter system set shared_buffers*'
}

@test "a transaction that has written and is left open" {
    open_transaction "select millrace.enqueue('held')"
    check_is transactions "ok: 1 open, the oldest: pid $backend ($PGUSER, held_*), idle in transaction for * s, has written: holds segments of the log -> null"
    later_is transactions '10 minutes' "warning: 1 open, the oldest: pid $backend *for 10 min, has written* -> select pg_terminate_backend($backend)*"
    later_is transactions '2 hours' "critical: *pid $backend *for 2 h, has written* -> *"
    later_is 'idle in transaction' '10 minutes' "warning: 1 sessions, pid $backend for 10 min; * -> *pg_terminate_backend($backend)"
    close_transaction
    check_is transactions 'ok: none open -> null'
}

@test "a snapshot that is held by a reader: only vacuum minds" {
    open_transaction 'set transaction isolation level repeatable read; select 1'
    check_is transactions "ok: 1 open, the oldest: pid $backend *reads: keeps vacuum from dead rows -> null"
    later_is transactions '10 minutes' "note: *pid $backend *"
    later_is transactions '2 hours' "warning: *pid $backend *"
    close_transaction
}

@test "a prepared transaction" {
    check_is 'prepared transactions' 'ok: none -> null'
    sql "begin; select millrace.enqueue('k'); prepare transaction 'it''s mine'" >/dev/null
    check_is 'prepared transactions' "note: 1, the oldest: 'it''s mine' of $PGUSER in postgres for * s; holds segments of the log -> commit prepared 'it''s mine' or rollback prepared 'it''s mine', *"
    later_is 'prepared transactions' '10 minutes' "warning: *"
    later_is 'prepared transactions' '2 hours' "critical: *"
    sql "rollback prepared 'it''s mine'"
}

@test "a replication slot that nobody reads" {
    check_is 'replication slots' 'ok: none -> null'
    sql "select pg_create_physical_replication_slot('gone', true)" >/dev/null
    check_is 'replication slots' "warning: 1, WAL kept: * by 'gone'; inactive: 'gone' -> *pg_drop_replication_slot('gone')*"
    run "$MR_BIN" doctor
    [ "$status" -eq 1 ]
    sql "select pg_drop_replication_slot('gone')"
}

@test "an archive command that fails" {
    check_is archiving 'ok: archive_mode on -> null'
    with_setting archive_command false archiving_fails
    sql 'create table wal_two (); select pg_switch_wal()' >/dev/null
    wait_until 60 check_is archiving 'ok: *'
}

archiving_fails()
{
    sql 'create table wal_one (); select pg_switch_wal()' >/dev/null
    wait_until 60 check_is archiving 'critical: * failures, the last * ago at *: WAL is kept until it succeeds -> *'
}

@test "checkpoints that are forced" {
    local i
    check_is checkpoints 'ok: max_wal_size 1GB, checkpoint_timeout 5min, *'
    for i in {1..25}; do
        sql "create table forced_$i ()" && sql checkpoint
    done
    wait_until 20 check_is checkpoints 'warning: * forced -> alter system set max_wal_size*'
}

@test "connections that run out" {
    local i sessions=()
    for i in {1..7}; do
        PGAPPNAME=idler psql -X -q -c 'select pg_sleep(300)' 3>&- >/dev/null 2>&1 &
        sessions+=($!)
    done
    wait_until 10 eval '[ "$(sql "select count(*) from pg_stat_activity where application_name = '"'idler'"'")" = 7 ]'
    check_is connections 'warning: 8 of 10 in use -> *max_connections*'
    PGAPPNAME=idler psql -X -q -c 'select pg_sleep(300)' 3>&- >/dev/null 2>&1 &
    sessions+=($!)
    wait_until 10 eval '[ "$(sql "select count(*) from pg_stat_activity where application_name = '"'idler'"'")" = 8 ]'
    check_is connections 'critical: 9 of 10 in use -> *'
    sql "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'idler'" >/dev/null
    for i in "${sessions[@]}"; do
        wait "$i" || true
    done
    wait_until 10 check_is connections 'ok: 1 of 10 in use -> null'
}

@test "dead rows that vacuum may not remove" {
    check_is 'dead rows' 'ok: no table has many -> null'
    open_transaction 'set transaction isolation level repeatable read; select 1'
    sql "select millrace.schedule('busy', '@daily', 'k')" >/dev/null
    sql "do 'begin for i in 1..12000 loop update millrace.schedule set set_at = now(); end loop; end'"
    wait_until 30 check_is 'dead rows' 'note: 1 tables, the worst: schedule with 1* dead rows and 1 live ones, vacuumed * -> *vacuum millrace.schedule'
    close_transaction
    sql 'vacuum millrace.schedule'
    wait_until 30 check_is 'dead rows' 'ok: *'
    sql "select millrace.unschedule('busy')" >/dev/null
}

@test "payloads that were made without lz4" {
    local leaf
    leaf=$(check compression)
    [[ $leaf == ok:* ]] || skip 'this server has no lz4'
    sql 'alter table millrace.job alter column payload_args set compression pglz'
    check_is compression 'note: payloads are compressed with pglz* -> *set compression lz4'
    sql 'alter table millrace.job alter column payload_args set compression lz4'
}

@test "a backlog that nobody maintains, and its cure" {
    sql "select count(*) from millrace.enqueue_many('k', array_fill('{}'::jsonb, array[1200]), 'deep')" >/dev/null
    check_is upkeep 'critical: maintain() has never run* -> *'
    check_is depth "critical: over critical_depth: 'deep' (1200 pending, oldest * s) -> *"
    later_is workers '2 minutes' "warning: nobody takes the jobs of *'deep' (1200, oldest 2 min) -> *"
    run "$MR_BIN" doctor
    [ "$status" -eq 1 ]
    sql "select millrace.purge('deep')" >/dev/null
    sql 'select count(*) from millrace.maintain()' >/dev/null
    check_is upkeep 'ok: maintain() ran * s ago -> null'
    check_is depth 'ok: *'
}

@test "segments that a queue pins" {
    sql "select millrace.enqueue('k', queue => 'pinned')" >/dev/null
    sql "select millrace.set_queue('pinned', '{\"retention\": \"1 second\"}')" >/dev/null
    sql "select millrace.pause('pinned')"
    check_is segments 'ok: * of 16 segments in use -> null'
    # half a day of upkeep at once, by its own clock; compaction is what a live queue has against it
    sql "do 'begin perform count(*) from generate_series(1, 3) h, millrace.rotate(clock_timestamp() + h * interval ''20 hours''); end'" >/dev/null
    later_is segments '10 days' 'warning: *'
    sql "select millrace.resume('pinned')"
    sql "select millrace.purge('pinned')" >/dev/null
}

@test "the disk: known on the server's host, over a socket and over the loopback" {
    check_is disk "*: * % of * GB free at $MR_SERVER/data -> *"
    run --separate-stderr "$MR_BIN" doctor --json --dsn "host=127.0.0.1 port=$PGPORT user=$PGUSER dbname=postgres"
    [[ "$(jq -r '.checks[] | select(.topic == "disk") | .evidence' <<<"$output")" == *" GB free at $MR_SERVER/data" ]]
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

@test "functions of another program" {
    check_is program 'ok: version * the schema'"'"'s functions are its own * -> null'
    sql "update millrace.schema_functions set checksum = 'x', program_version = '0.0.9'"
    check_is program 'warning: version * are other ones (0.0.9) -> Run `millrace migrate`.'
    sql "update millrace.schema_functions set program_version = '99.0'"
    check_is program 'warning: * (99.0) -> Use the newer program.'
    sql "update millrace.schema_functions set program_version = '0.0.9'"
    "$MR_BIN" migrate >/dev/null
    check_is program 'ok: *'
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
