#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# The HTTP API when clients leave and the database goes away.

# shellcheck disable=SC2034,SC2154 # variables go to and come from lib/api

bats_require_minimum_version 1.5.0
load ../lib/server
load ../lib/daemon
load ../lib/api

teardown()
{
    end_daemons
    [ -z "${MR_SERVER:-}" ] || remove_private_server
}

@test "clients that leave while they wait take no job with them" {
    fresh_db
    api_up
    run -0 python3 "$MR_ROOT/tests/fault/api_leave.py" "$api" politely 400
    [ "$(sql "select running from millrace.stats('q')")" = 0 ]
    drop_db
}

@test "clients that are cut off delay a job by its lease at most" {
    fresh_db
    api_up
    run -0 python3 "$MR_ROOT/tests/fault/api_leave.py" "$api" abruptly 400
    drop_db
}

# Whether /readyz answers with this status.
ready_is()
{
    [ "$(curl -s -o "$BATS_TEST_TMPDIR/ready" -w '%{http_code}' "$api/readyz")" = "$1" ]
}

@test "the database is restarted: not ready, refused at once, ready again, nothing twice" {
    private_server own
    "$MR_BIN" migrate
    api_up
    post /api/v1/jobs '{"kind": "a"}'
    says 201
    "$MR_ROOT/tools/pgserver" stop "$MR_SERVER"
    wait_until 20 ready_is 503
    grep -q 'the database cannot be reached' "$BATS_TEST_TMPDIR/ready"
    run -0 curl -s "$api/healthz"
    post /api/v1/jobs '{"kind": "a"}'
    says 503 .error.code '"unavailable"'
    grep -qi '^retry-after:' "$BATS_TEST_TMPDIR/head"
    post /api/v1/queues/default/claim '{"wait_ms": 1000}'
    says 503
    api GET /metrics
    says 200
    grep -q '^millrace_database_up 0' <<<"$body"
    "$MR_ROOT/tools/pgserver" start "$MR_SERVER"
    wait_until 30 ready_is 200
    post /api/v1/jobs '{"kind": "a"}'
    says 201
    [ "$(sql "select count(*) from millrace.jobs")" = 2 ]
    api GET /metrics
    grep -q '^millrace_reconnects_total [1-9]' <<<"$body"
}

# Whether somebody waits for a lock on the table of jobs.
blocked()
{
    [ "$(sql "select count(*) from pg_locks where relation in ('millrace.job'::regclass) and not granted")" -ge 1 ]
}

@test "a stream whose client is cut off while a chunk is under way: the daemon goes on, the chunk stays" {
    fresh_db
    api_up
    post /api/v1/jobs '{"kind": "first", "queue": "q"}' # so that the queue is there
    mkfifo "$BATS_TEST_TMPDIR/in"
    psql -X -q <"$BATS_TEST_TMPDIR/in" >"$BATS_TEST_TMPDIR/out" 3>&- &
    local holder=$!
    exec 7>"$BATS_TEST_TMPDIR/in"
    echo "begin; lock table millrace.job in exclusive mode; select 'locked';" >&7
    wait_until 10 grep -q locked "$BATS_TEST_TMPDIR/out"
    # a chunk ends with its thousandth job, and nothing follows: the client leaves while it is under way
    python3 "$MR_ROOT/tests/fault/api_cut.py" "${api##*:}" 1000 5 "$BATS_TEST_TMPDIR/sent" 3>&- 7>&- &
    local client=$!
    wait_until 20 blocked
    wait_until 20 test -e "$BATS_TEST_TMPDIR/sent"
    wait "$client"
    api GET /healthz
    says 200
    echo 'commit;' >&7
    exec 7>&-
    wait "$holder"
    wait_until 20 jobs_are q available 5001
    post /api/v1/jobs '{"kind": "last", "queue": "q"}'
    says 201
    signal api TERM
    ended api
    [ "$status" -eq 0 ]
    drop_db
}

@test "the database goes away in the middle of everything: each gets one answer, nothing is done twice" {
    private_server own
    "$MR_BIN" migrate
    api_up
    python3 "$MR_ROOT/tests/fault/api_outage.py" "$api" "$MR_ROOT/tools/pgserver" "$MR_SERVER"
    # what was said to be enqueued is there, and no more than was sent
    wait_until 30 ready_is 200
    signal api TERM
    ended api
    [ "$status" -eq 0 ]
}

@test "SIGTERM: who waits gets an empty answer, who listens an end, what was taken is kept" {
    fresh_db
    api_up
    curl -s -o "$BATS_TEST_TMPDIR/claim" -X POST -H 'Authorization: Bearer admin-token' -H 'Content-Type: application/json' \
        -d '{"wait_ms": 60000}' "$api/api/v1/queues/q/claim" 3>&- &
    local claim=$!
    curl -sN -o "$BATS_TEST_TMPDIR/events" -H 'Authorization: Bearer admin-token' "$api/api/v1/events" 3>&- &
    local events=$!
    wait_until 10 grep -q overview "$BATS_TEST_TMPDIR/events"
    signal api TERM
    ended api
    [ "$status" -eq 0 ]
    wait "$claim"
    [ "$(jq -c .lease "$BATS_TEST_TMPDIR/claim")" = null ]
    wait "$events"
    drop_db
}
