#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# The fuzz targets, for a moment each: what was found once, and changes of it. `make fuzz` looks for longer.

bats_require_minimum_version 1.5.0

fuzz()
{
    run -0 "$MR_BUILD/tests/fuzz/fuzz_$1" 2 "$MR_ROOT/tests/fuzz/corpus/$1"/*
    [[ $output =~ ^[0-9]{3,}' runs' ]]
}

@test "targets and routes" { fuzz target; }

@test "tokens, hosts and origins" { fuzz auth; }

@test "bodies" { fuzz params; }

@test "streams of jobs" { fuzz ndjson; }
