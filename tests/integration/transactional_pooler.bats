#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# The workers of examples/transactional through PgBouncer in transaction mode, more of them than it
# has connections.

bats_require_minimum_version 1.5.0
load ../lib/server
load ../lib/pgbouncer
load ../lib/transactional
worker=() # filled by worker_of

setup_file()
{
    fresh_db
    make_ledger
    start_pgbouncer
}

teardown_file()
{
    stop_pgbouncer
    drop_db
}

setup()
{
    q=pooled$BATS_TEST_NUMBER
    sql 'truncate ledger'
}

shared_connections()
{
    local i pids=() refused
    refused=$(enqueue '{"amount": -1}')
    enqueue_many 60 0.02
    for i in 1 2 3 4 5 6; do
        "${worker[@]}" "$q" --batch 3 --until-empty >"$BATS_TEST_TMPDIR/out$i" 2>&1 3>&- &
        pids+=($!)
    done
    for i in "${pids[@]}"; do
        wait "$i" || { cat "$BATS_TEST_TMPDIR"/out*; return 1; }
    done
    wait_until 60 worked_off
    [ "$(ledger)" = '60|60|1830' ]
    [ "$(jobs_with completed)" -eq 60 ]
    story_is "$refused" 'failed dead|dead|*amount must be positive, not -1'
}

@test "Python: six workers on three connections" {
    worker_of python
    shared_connections
}

@test "Node: six workers on three connections" {
    worker_of node
    shared_connections
}
