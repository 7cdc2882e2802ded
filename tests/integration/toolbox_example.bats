#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# examples/toolbox from end to end. It checks itself, line by line.

bats_require_minimum_version 1.5.0
load ../lib/server

@test "examples/toolbox proves what it says, on PostgreSQL" {
    TMPDIR=$MR_SCRATCH MR_BUILD=$(dirname "$MR_BIN") run "$MR_ROOT/examples/toolbox/run" 3>&-
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$(grep -c '^ok  ' <<<"$output")" -eq 26 ]
    [ "${lines[-1]}" = 'all as it should be' ]
}

# What Redis does not tell is the story of a job that has ended, and with it two of the checks.
@test "... and on Redis, with another DSN" {
    BACKEND=redis TMPDIR=$MR_SCRATCH MR_BUILD=$(dirname "$MR_BIN") run "$MR_ROOT/examples/toolbox/run" 3>&-
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$(grep -c '^ok  ' <<<"$output")" -eq 24 ]
    [ "${lines[-1]}" = 'all as it should be' ]
}

@test "its commands say what they want" {
    local toolbox
    toolbox=$(dirname "$MR_BIN")/examples/toolbox/toolbox
    run -2 "$toolbox"
    [[ $output == *'usage: toolbox web TENANT_DIRECTORY'* ]]
    run -2 "$toolbox" web
    run -2 "$toolbox" work nothing "$BATS_TEST_TMPDIR" http://127.0.0.1:1/
    [[ $output == *'nothing: no such queue'* ]]
    MILLRACE_DSN='host=/nowhere connect_timeout=1' run -1 "$toolbox" nightly "$BATS_TEST_TMPDIR" "$BATS_TEST_TMPDIR" 1000 0
    [[ $output == 'toolbox: connecting: '* ]]
}

@test "it leaves nothing behind when it fails" {
    mkdir -m 711 "$MR_SCRATCH/left"
    ln -s /bin/false "$BATS_TEST_TMPDIR/millrace"
    TMPDIR=$MR_SCRATCH/left MR_BUILD=$BATS_TEST_TMPDIR run "$MR_ROOT/examples/toolbox/run" 3>&-
    [ "$status" -eq 1 ]
    [ -z "$(ls -A "$MR_SCRATCH/left")" ]
}
