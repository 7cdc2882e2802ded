#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# examples/notes-streaming from end to end, with fewer notes than its own default. It checks itself, line by line.

bats_require_minimum_version 1.5.0
load ../lib/server
load ../lib/example

@test "examples/notes-streaming proves what it says" {
    local proved
    MR_BUILD=$(dirname "$MR_BIN") NOTES_SECONDS=1 NOTES_BURST=1000 NOTES_KILLS=1 run "$MR_ROOT/examples/notes-streaming/run"
    echo "$output"
    [ "$status" -eq 0 ]
    proved=$(grep -c '^ok  ' <<<"$output")
    [ "$proved" -eq 17 ]
    [ "$(grep -c 'seconds from insert to fact' <<<"$output")" -eq 2 ]
    [ "${lines[-1]}" = 'all as it should be' ]
}

@test "numbers that are none are refused" {
    local settings
    for settings in 'NOTES_BURST=many' 'NOTES_BURST=10' 'NOTES_SECONDS=0' 'NOTES_RATE=-1' 'NOTES_KILLS=1.5'; do
        run env "$settings" "$MR_ROOT/examples/notes-streaming/run"
        [ "$status" -eq 2 ] || { echo "$settings: $status $output"; return 1; }
    done
}

@test "the script refuses what is no note" {
    local args
    for args in '' '--note-id 1' '--note-id x --sequence 1' '--note-id 1 --sequence' '--note-id 1;2 --sequence 1' '--note-id 1 --sequence 1 x'; do
        # shellcheck disable=SC2086  # several arguments
        run "$MR_ROOT/examples/notes-streaming/micro_etl.sh" $args
        [ "$status" -eq 64 ] || { echo "$args: $status"; return 1; }
    done
}

@test "it leaves nothing behind when it fails" {
    mkdir -m 711 "$MR_SCRATCH/left"
    ln -s /bin/false "$BATS_TEST_TMPDIR/millrace"
    TMPDIR=$MR_SCRATCH/left MR_BUILD=$BATS_TEST_TMPDIR run "$MR_ROOT/examples/notes-streaming/run" 3>&-
    [ "$status" -eq 1 ]
    wait_until 20 nothing_left
}

@test "... nor when it is ended in the middle" {
    local status=0
    rm -rf "$MR_SCRATCH/left"
    mkdir -m 711 "$MR_SCRATCH/left"
    TMPDIR=$MR_SCRATCH/left MR_BUILD=$(dirname "$MR_BIN") NOTES_SECONDS=2 NOTES_BURST=1000 "$MR_ROOT/examples/notes-streaming/run" >"$BATS_TEST_TMPDIR/out" 2>&1 3>&- &
    wait_until 120 grep -q '^Stream' "$BATS_TEST_TMPDIR/out"
    [ -n "$(started_by_run)" ]
    kill $!
    wait $! || status=$?
    cat "$BATS_TEST_TMPDIR/out"
    [ "$status" -eq 1 ]
    wait_until 20 nothing_left
}
