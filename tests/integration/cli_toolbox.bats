#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# millrace cache and millrace lock: what they print, how they end, and who holds the lock after what.

# shellcheck disable=SC2154  # stderr_lines is set by run
bats_require_minimum_version 1.5.0
load ../lib/server
load ../lib/cache

setup_file()
{
    fresh_db
}

teardown_file()
{
    drop_db
}

lock_is_free()
{
    [ "$(sql "select millrace.try_lock('$1')")" = t ]
}

lock_is_held()
{
    ! lock_is_free "$1"
}

# Ends the session that holds a lock.
end_holder()
{
    sql "select pg_terminate_backend(l.pid) from pg_locks l where l.locktype = 'advisory' and l.objsubid = 1 and l.granted
            and l.classid::bigint << 32 | l.objid::bigint = millrace.lock_key('$1')"
}

# ends_with STATUS PID: of a process in the background.
ends_with()
{
    local status=0
    wait "$2" || status=$?
    [ "$status" -eq "$1" ]
}

gone()
{
    ! kill -0 "$1" 2>/dev/null
}

@test "cache: set, get, delete, like, stats" {
    cache_speaks
}

@test "cache: what is missing, wrong or not there" {
    run --separate-stderr -2 "$MR_BIN" cache set k 1
    [ "${stderr_lines[0]}" = 'millrace: --ttl is missing' ]
    run -2 "$MR_BIN" cache set k 1 --ttl 0s
    run -2 "$MR_BIN" cache set k 1 --ttl -5s
    run --separate-stderr -2 "$MR_BIN" cache set k '{' --ttl 5s
    [[ ${stderr_lines[0]} == 'millrace: VALUE: '* ]]
    run -2 "$MR_BIN" cache delete
    run -2 "$MR_BIN" cache delete k --like k
    run --separate-stderr -1 "$MR_BIN" cache set "$(printf '%16385s' x)" 1 --ttl 5s
    [[ ${stderr_lines[0]} == 'millrace: key is 16385 bytes long'* ]]
    run -2 "$MR_BIN" cache
    run -2 "$MR_BIN" cache put
    "$MR_BIN" cache --help | grep -q '^usage: millrace cache set KEY VALUE'
}

@test "lock: the command runs under it, with its own input, output and status" {
    [ "$(echo hello | "$MR_BIN" lock 'a lock' -- sh -c 'cat; echo "$1"' sh world)" = $'hello\nworld' ]
    run -0 "$MR_BIN" lock l -- true
    run -7 "$MR_BIN" lock l -- sh -c 'exit 7'
    run -143 "$MR_BIN" lock l -- sh -c 'kill -TERM $$'
    run --separate-stderr -127 "$MR_BIN" lock l -- no-such-command
    [ "${stderr_lines[0]}" = 'millrace: no-such-command: No such file or directory' ]
    run -126 "$MR_BIN" lock l -- /etc/passwd
    lock_is_free l
    # it is held meanwhile
    "$MR_BIN" lock l -- psql -XAtq -c "select millrace.try_lock('l')" >"$BATS_TEST_TMPDIR/inside"
    [ "$(cat "$BATS_TEST_TMPDIR/inside")" = f ]
}

@test "lock: a second one waits, or not for long" {
    "$MR_BIN" lock w -- sleep 30 3>&- &
    local holder=$!
    wait_until 10 lock_is_held w
    run --separate-stderr -124 "$MR_BIN" lock w --try -- touch "$BATS_TEST_TMPDIR/ran"
    [ "${stderr_lines[0]}" = 'millrace: lock "w" is held by another' ]
    run -124 "$MR_BIN" lock w --wait 200ms -- touch "$BATS_TEST_TMPDIR/ran"
    [ ! -e "$BATS_TEST_TMPDIR/ran" ]
    # nobody waits on the server for one that has given up
    [ "$(sql "select count(*) from pg_locks where locktype = 'advisory' and not granted and database = (select oid from pg_database where datname = current_database())")" = 0 ]
    "$MR_BIN" lock w -- touch "$BATS_TEST_TMPDIR/ran" 3>&- &
    local waiting=$!
    kill "$holder"
    ends_with 143 "$holder"
    wait "$waiting"
    [ -e "$BATS_TEST_TMPDIR/ran" ]
}

@test "lock: a signal is passed on, and one ends the wait" {
    "$MR_BIN" lock s -- sh -c 'trap "echo told >$0; exit 5" TERM; : >$0; while :; do sleep 0.05; done' "$BATS_TEST_TMPDIR/told" 3>&- &
    local holder=$!
    wait_until 10 test -e "$BATS_TEST_TMPDIR/told"
    "$MR_BIN" lock s -- true 3>&- &
    local waiting=$!
    wait_until 10 eval '[ "$(sql "select count(*) from pg_locks l where l.locktype = '\''advisory'\'' and not l.granted")" -gt 0 ]'
    kill "$waiting"
    ends_with 143 "$waiting"
    kill "$holder"
    ends_with 5 "$holder"
    [ "$(cat "$BATS_TEST_TMPDIR/told")" = told ]
}

@test "lock: killed with SIGKILL, it is free and the command is gone with all it has started" {
    "$MR_BIN" lock k -- sh -c 'sleep 300 & echo $! $$ >"$0.new"; mv "$0.new" "$0"; wait' "$BATS_TEST_TMPDIR/pids" 3>&- &
    local holder=$! pid pids
    wait_until 10 test -e "$BATS_TEST_TMPDIR/pids"
    read -ra pids <"$BATS_TEST_TMPDIR/pids"
    lock_is_held k
    kill -KILL "$holder"
    wait_until 10 lock_is_free k
    for pid in "${pids[@]}"; do
        wait_until 10 gone "$pid"
    done
}

@test "lock: when its connection is lost the command is told, then killed" {
    "$MR_BIN" lock c -- sh -c 'trap "" TERM; : >"$0"; while :; do sleep 0.05; done' "$BATS_TEST_TMPDIR/up" 2>"$BATS_TEST_TMPDIR/err" 3>&- &
    local holder=$!
    wait_until 10 test -e "$BATS_TEST_TMPDIR/up"
    end_holder c
    ends_with 125 "$holder"
    grep -qx 'millrace: lock "c" is lost: stopping the command' "$BATS_TEST_TMPDIR/err"
    lock_is_free c
}

@test "lock: a server that hears nothing of its holder frees it" {
    # a client that says nothing is as silent as one whose network has died
    mkfifo "$BATS_TEST_TMPDIR/in"
    exec 7<>"$BATS_TEST_TMPDIR/in"
    psql -XAtq <"$BATS_TEST_TMPDIR/in" >"$BATS_TEST_TMPDIR/out" 2>&1 3>&- 7>&- &
    local holder=$!
    echo "select millrace.lock_guard('1 second'); select millrace.lock('silent');" >&7
    wait_until 10 lock_is_held silent
    wait_until 10 lock_is_free silent
    exec 7>&-
    wait "$holder" || true
}

@test "lock --ttl: a lease with a fencing number, renewed, lost and given back" {
    local one two
    one=$("$MR_BIN" lock f --ttl 30s -- sh -c 'echo $MILLRACE_FENCE')
    two=$("$MR_BIN" lock f --ttl 30s -- sh -c 'echo $MILLRACE_FENCE')
    [ "$two" -gt "$one" ]
    # longer than its lease: until somebody has waited in vain for longer than that
    "$MR_BIN" lock f --ttl 2s -- sh -c 'until [ -e "$0" ]; do sleep 0.05; done' "$BATS_TEST_TMPDIR/go" 3>&- &
    local holder=$!
    wait_until 10 eval '[ -z "$(sql "select millrace.lock_lease('\''f'\'', '\''me'\'', '\''1 ms'\'')")" ]'
    run -124 "$MR_BIN" lock f --ttl 1s --wait 2500ms -- true
    touch "$BATS_TEST_TMPDIR/go"
    wait "$holder"
    [ "$(sql "select millrace.lock_lease('f', 'me', '1 minute') > $two")" = t ]
    # taken away from its owner: the command is stopped
    sql "select millrace.unlock_lease('f', 'me')"
    "$MR_BIN" lock f --ttl 1s --owner holder -- sleep 30 3>&- &
    holder=$!
    wait_until 10 eval '[ "$(sql "select millrace.unlock_lease('\''f'\'', '\''holder'\'')")" = t ]'
    sql "select millrace.lock_lease('f', 'thief', '1 minute')"
    ends_with 125 "$holder"
}

@test "lock: wrong usage" {
    run -2 "$MR_BIN" lock
    run -2 "$MR_BIN" lock name
    run -2 "$MR_BIN" lock name --
    run -2 "$MR_BIN" lock name --ttl 10ms -- true
    run -2 "$MR_BIN" lock name --owner me -- true
    run -2 "$MR_BIN" lock name --wait soon -- true
    run --separate-stderr -1 "$MR_BIN" lock '' -- true
    [ "${stderr_lines[0]}" = 'millrace: name must not be empty' ]
    [[ ${stderr_lines[1]} == 'hint: '* ]]
    run -3 "$MR_BIN" lock name --dsn 'host=/nowhere' -- true
    "$MR_BIN" lock --help | grep -q '^usage: millrace lock NAME -- CMD'
}
