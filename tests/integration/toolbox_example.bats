#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# examples/toolbox from end to end. It checks itself, line by line.

bats_require_minimum_version 1.5.0
load ../lib/server
load ../lib/example

@test "examples/toolbox proves what it says, on PostgreSQL" {
    proves toolbox 26
}

# What Redis does not tell is the story of a job that has ended, and with it two of the checks.
@test "... and on Redis, with another DSN" {
    BACKEND=redis proves toolbox 24
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
    leaves_nothing toolbox
}
