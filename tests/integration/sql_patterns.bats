#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# examples/sql-patterns from end to end. It checks itself, line by line.

bats_require_minimum_version 1.5.0
load ../lib/server
load ../lib/example

@test "examples/sql-patterns proves what it says" {
    proves sql-patterns 61
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
    leaves_nothing sql-patterns
}
