#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# examples/cyclotron from end to end, shorter: with a poison pill, a fleet that stands still, and the incident. It checks itself, line by line.

bats_require_minimum_version 1.5.0
load ../lib/server
load ../lib/example

@test "every invocation ends once, whatever happens to its workers" {
    INVOCATIONS=1000 proves cyclotron 20
}

@test "20,000 dead letters arrive, the other queue works on, and the disk comes back" {
    TMPDIR=$MR_SCRATCH MR_BUILD=$(dirname "$MR_BIN") DEAD=20000 WINDOW=1 run "$MR_ROOT/examples/cyclotron/incident" 3>&-
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$(grep -c '^ok  ' <<<"$output")" -eq 8 ]
    [[ $output == *before*'jobs a second'*during*'jobs a second'*after*'jobs a second'* ]]
    [ "${lines[-1]}" = 'all as it should be' ]
}

@test "it leaves nothing behind when it is ended in the middle" {
    local status=0
    mkdir -m 711 "$MR_SCRATCH/left"
    TMPDIR=$MR_SCRATCH/left MR_BUILD=$(dirname "$MR_BIN") INVOCATIONS=1000 "$MR_ROOT/examples/cyclotron/run" >"$BATS_TEST_TMPDIR/out" 2>&1 3>&- &
    wait_until 120 grep -q '^Work' "$BATS_TEST_TMPDIR/out"
    [ -n "$(started_by_run)" ]
    kill $!
    wait $! || status=$?
    cat "$BATS_TEST_TMPDIR/out"
    [ "$status" -eq 1 ]
    wait_until 20 nothing_left
}
