#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# examples/cyclotron from end to end, shorter, part by part: with a poison pill, a fleet that stands still, payloads in S3, a shard that is killed, a Redis that is
# emptied, and the incident. It checks itself, line by line.

bats_require_minimum_version 1.5.0
load ../lib/server
load ../lib/example

@test "every invocation ends once, whatever happens to its workers" {
    PARTS=life INVOCATIONS=1000 proves cyclotron 20
}

@test "payloads are compressed, wait in S3 and come back, and no object is left" {
    "$MR_ROOT/tools/s3server" there || skip 'OpenStack Swift is not installed: tools/deps test'
    PARTS=payloads INVOCATIONS=1000 proves cyclotron 12
}

@test "three shards, one of which is killed, and by way of a Redis that is emptied: every step once" {
    PARTS='shards redis' INVOCATIONS=1000 proves cyclotron 11
}

@test "20,000 dead letters arrive, the other queue works on, and the disk comes back" {
    TMPDIR=$MR_SCRATCH MR_BUILD=$(dirname "$MR_BIN") DEAD=20000 WINDOW=1 run "$MR_ROOT/examples/cyclotron/incident" 3>&-
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$(grep -c '^ok  ' <<<"$output")" -eq 8 ]
    [[ $output == *before*'jobs a second'*during*'jobs a second'*after*'jobs a second'* ]]
    [ "${lines[-1]}" = 'all as it should be' ]
}

# ended PART LINE: the part is ended when it has said the line
ended()
{
    local status=0
    mkdir -m 711 "$MR_SCRATCH/left"
    TMPDIR=$MR_SCRATCH/left MR_BUILD=$(dirname "$MR_BIN") INVOCATIONS=1000 PARTS=$1 "$MR_ROOT/examples/cyclotron/run" >"$BATS_TEST_TMPDIR/out" 2>&1 3>&- &
    wait_until 120 grep -q "$2" "$BATS_TEST_TMPDIR/out" || { cat "$BATS_TEST_TMPDIR/out"; return 1; }
    [ -n "$(started_by_run)" ]
    kill $!
    wait $! || status=$?
    cat "$BATS_TEST_TMPDIR/out"
    [ "$status" -eq 1 ]
    wait_until 20 nothing_left
    rmdir "$MR_SCRATCH/left"
}

@test "it leaves nothing behind when it is ended in the middle" {
    ended life '^Work'
    ended shards '^ok .* each has'
    ended redis 'has forgotten'
}

@test "it leaves no S3 server behind, either" {
    "$MR_ROOT/tools/s3server" there || skip 'OpenStack Swift is not installed: tools/deps test'
    ended payloads '^Delayed'
}
