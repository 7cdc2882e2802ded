#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# Limits of a queue with sixteen claimers, of which one is killed with SIGKILL again and again: at no
# moment run more jobs than the limit says, in no second are more started, and what the killed ones
# held comes back with their leases. And a limited queue is drained as fast as its limit allows.

load ../lib/server
load ../lib/workers
python= # set by need_psycopg2

setup()
{
    fresh_db
}

teardown()
{
    stop_workers
    drop_db
}

# limited SETTINGS JOBS
limited()
{
    sql "select millrace.set_queue('limited', '$1')"
    sql "select count(*) from millrace.enqueue_many('k', array(select jsonb_build_object('n', n) from generate_series(1, $2) n), 'limited')"
}

@test "concurrency: sixteen claimers, killed at random, never run more than five jobs" {
    need_psycopg2
    limited '{"concurrency": 5, "max_attempts": 1000, "poison_limit": 1000}' 100000
    run "$python" "$BATS_TEST_DIRNAME/limits.py" concurrency 5 16 20 3s
    show "$output"
    [ "$status" -eq 0 ]
}

@test "concurrency over four parts and two priorities" {
    need_psycopg2
    limited '{"concurrency": 5, "parts": 4, "max_attempts": 1000, "poison_limit": 1000}' 2000
    sql "select count(*) from millrace.enqueue_many('k', array(select jsonb_build_object('n', n) from generate_series(1, 50000) n), 'limited', priority => 60)"
    run "$python" "$BATS_TEST_DIRNAME/limits.py" concurrency 5 16 10 3s
    show "$output"
    [ "$status" -eq 0 ]
}

@test "rate: sixteen claimers, killed at random, never start more than forty jobs in a second" {
    need_psycopg2
    limited '{"rate": "40/s", "max_attempts": 1000, "poison_limit": 1000}' 100000
    run "$python" "$BATS_TEST_DIRNAME/limits.py" rate 40 16 15 2s
    show "$output"
    [ "$status" -eq 0 ]
}

# drain WORKERS SLOTS: 800 jobs of 10 ms, in a minute; sets rate to the jobs a second.
drain()
{
    local i begun
    sql "select count(*) from millrace.enqueue_many('k', array_fill('{}'::jsonb, array[800]), 'limited')"
    begun=${EPOCHREALTIME/./}
    for ((i = 0; i < $1; i++)); do
        start_worker limited --exec "python3 '$BATS_TEST_DIRNAME/../lib/note_runs.py' /dev/null 0.01" --concurrency "$2"
    done
    wait_until 60 queue_is_done limited
    rate=$((800 * 1000000 / (${EPOCHREALTIME/./} - begun)))
    stop_workers
}

# Whoever looked for room at the poll interval only would need 1000 s here.
@test "a limited queue is drained at its limit, not at the poll interval" {
    local rate
    export QUEUE_POLL_INTERVAL_MS=5000
    limited '{}' 0
    drain 4 1
    show "no limit, 4 workers of one slot: $rate jobs/s, with their start"
    limited '{"concurrency": 4}' 0
    drain 8 1
    show "concurrency 4, 8 workers of one slot: $rate jobs/s"
    drain 1 8
    show "concurrency 4, 1 worker of 8 slots: $rate jobs/s"
}

# A worker that is told "until empty" does not take a limit for an empty queue, and one that waits for a rate comes back in time.
@test "a rate lets a worker go on to the end" {
    local begun took
    limited '{"rate": "100/s"}' 400
    begun=${EPOCHREALTIME/./}
    "$MR_BIN" work limited --exec "python3 '$BATS_TEST_DIRNAME/../lib/note_runs.py' /dev/null 0" --concurrency 4 --until-empty --json
    took=$((${EPOCHREALTIME/./} - begun))
    queue_is_done limited
    show "rate 100/s: 400 jobs in $((took / 1000)) ms"
}
