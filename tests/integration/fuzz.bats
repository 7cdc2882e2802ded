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

@test "JSON" { fuzz json; }

@test "what handlers answer" { fuzz answer; }

@test "whole requests" { fuzz request; }

@test "answers of S3" { fuzz s3; }

@test "every target is run here, and has a corpus" {
    local name
    for name in "$MR_ROOT"/tests/fuzz/fuzz_*.c; do
        name=${name##*/fuzz_}
        grep -qE "\{ fuzz ${name%.c}; \}" "$BATS_TEST_FILENAME"
        [ -n "$(ls "$MR_ROOT/tests/fuzz/corpus/${name%.c}")" ]
    done
}

@test "make fuzz compiles every layer below the daemon" {
    local dir
    for dir in "$MR_ROOT"/src/*/; do
        dir=${dir%/}
        case ${dir##*/} in
        bench | cli | daemon) continue ;;
        esac
        grep -qF "src/${dir##*/}/*.c" "$MR_ROOT/tools/fuzz" || { echo "tools/fuzz leaves out ${dir##*/}"; return 1; }
    done
}
