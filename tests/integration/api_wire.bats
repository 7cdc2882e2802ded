#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# The HTTP API against what no library would send: raw sockets, in api/wire.py.

# shellcheck disable=SC2034,SC2154 # variables go to and come from lib/api

bats_require_minimum_version 1.5.0
load ../lib/server
load ../lib/daemon
load ../lib/api

setup()
{
    fresh_db
}

teardown()
{
    end_daemons
    drop_db
}

wire()
{
    python3 "$MR_ROOT/tests/integration/api/wire.py" "${api##*:}" "$@"
}

@test "requests with two ends are refused, and what follows is not read" {
    api_up
    wire smuggling
    [ "$(sql "select count(*) from millrace.jobs")" = 0 ]
}

@test "hosts, origins, paths, methods, tokens" {
    api_up 'hosts = {"known.example"}'
    wire hosts
    wire paths
    wire methods
    wire tokens
}

@test "bodies of every kind" {
    api_up
    wire bodies
    wire pipelined
}

@test "what is far too large, and a crowd: memory stays flat" {
    api_up
    wire huge "$(measured)"
    wire crowd "$(measured)"
}

# The daemon, for whoever looks at its memory; 0 with a sanitizer, which keeps what was freed.
measured()
{
    if ldd "$MR_BIN" | grep -q libasan; then
        echo 0
    else
        pid_of api
    fi
}

@test "an event that is long, to many: one text for all of them" {
    sql "select count(millrace.set_queue('queue ' || n, '{}')) from generate_series(1, 200) n" >/dev/null
    api_up
    wire events "$(measured)"
}

@test "what is too large or too slow" {
    api_up 'max_body = 100000' 'idle = "2s"'
    wire large
    wire slow
    # and the daemon is as it was
    post /api/v1/jobs '{"kind": "a"}'
    says 201
}
