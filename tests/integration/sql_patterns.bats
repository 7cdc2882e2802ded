#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# examples/sql-patterns from end to end. It checks itself, line by line.

bats_require_minimum_version 1.5.0
load ../lib/server

@test "examples/sql-patterns proves what it says" {
    TMPDIR=$MR_SCRATCH MR_BUILD=$(dirname "$MR_BIN") run "$MR_ROOT/examples/sql-patterns/run" 3>&-
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$(grep -c '^ok  ' <<<"$output")" -eq 61 ]
    [ "${lines[-1]}" = 'all as it should be' ]
}

@test "a promise that does not hold ends the page" {
    private_server patterns
    "$MR_BIN" migrate >/dev/null
    sed "s/max_attempts => 5, base => '30 seconds'/max_attempts => 5, base => '31 seconds'/" "$MR_ROOT/examples/sql-patterns/patterns.sql" >"$BATS_TEST_TMPDIR/page.sql"
    run -3 psql -X -q -A -t -v ON_ERROR_STOP=1 -f "$BATS_TEST_TMPDIR/page.sql"
    [[ $output == *'a promise does not hold: email_send waits 30 s'* ]]
    [[ $output != *'report_generate'* ]]
    remove_private_server
}

@test "it leaves nothing behind when it fails" {
    mkdir -m 711 "$MR_SCRATCH/left"
    ln -s /bin/false "$BATS_TEST_TMPDIR/millrace"
    TMPDIR=$MR_SCRATCH/left MR_BUILD=$BATS_TEST_TMPDIR run "$MR_ROOT/examples/sql-patterns/run" 3>&-
    [ "$status" -eq 1 ]
    [ -z "$(ls -A "$MR_SCRATCH/left")" ]
}
