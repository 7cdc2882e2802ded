#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# What `make run` and `make stop` do, with fewer jobs.

bats_require_minimum_version 1.5.0
load ../lib/server

setup_file()
{
    export MR_RUN_DIR=$MR_SCRATCH/run MR_DEMO_JOBS=2000
    # Nobody's database but its own, and no home.
    export MILLRACE_DSN=host=192.0.2.1 MILLRACE_CONFIG=/nowhere
    unset HOME
}

teardown_file()
{
    "$MR_ROOT/tools/run" stop
    rm -rf "$MR_RUN_DIR"
}

at()
{
    psql -X -A -t "$(cat "$MR_RUN_DIR/up/dsn")" -c "$1"
}

@test "the first run starts it and does all jobs" {
    run "$MR_ROOT/tools/run" start 3>&-
    [ "$status" -eq 0 ] || { cat "$MR_RUN_DIR/log" >&2; has 'status 0'; }
    has '100 %  2000 of 2000 jobs done'
    [[ $output =~ ledger\ .*\ 1400\ +0\ +0 ]]
    [[ $output =~ mail\ .*\ 593\ +14\ +1 ]]
    [[ $output =~ report\ .*\ 6\ +0\ +0 ]]
    has 'idle: from enqueued to claimed'
    has 'make stop'
    # exactly once
    [ "$(at 'select count(*) from demo.entry')" = 1400 ]
}

@test "the second run finds it running, and does the demo again" {
    pid=$(head -n 1 "$MR_RUN_DIR/up/pid")
    run "$MR_ROOT/tools/run" start 3>&-
    [ "$status" -eq 0 ] || { cat "$MR_RUN_DIR/log" >&2; has 'status 0'; }
    has "runs already (pid $pid)"
    [[ $output =~ ledger\ .*\ 1400\ +0\ +0 ]]
    [ "$(at 'select count(*) from demo.entry')" = 2800 ]
}

@test "stop leaves nothing behind, and is fine when nothing runs" {
    port=$(cat "$MR_RUN_DIR/up/port")
    run "$MR_ROOT/tools/run" stop
    [ "$status" -eq 0 ]
    has 'stopped'
    run grep -lsF "$MR_RUN_DIR" /proc/[0-9]*/cmdline
    [ -z "$output" ]
    run ls -A "$MR_RUN_DIR/up/socket"
    [ -z "$output" ]
    run bash -c "exec 3<>/dev/tcp/127.0.0.1/$port"
    [ "$status" -ne 0 ]
    run "$MR_ROOT/tools/run" stop
    [ "$status" -eq 0 ]
    has 'does not run'
}

@test "a number left by an earlier run is not taken for ours" {
    sleep 600 3>&- &
    bystander=$!
    printf '%s\n12345\n' "$bystander" >"$MR_RUN_DIR/up/pid"
    run "$MR_ROOT/tools/run" stop
    has 'does not run'
    kill -0 "$bystander"
    kill "$bystander"
}

@test "a start that fails says why" {
    run env MILLRACE_PGBIN=/nowhere "$MR_ROOT/tools/run" start 3>&-
    [ "$status" -eq 1 ]
    has 'holds no PostgreSQL server'
    has 'hint:'
}
