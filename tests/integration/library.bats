#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# libmillrace, used by a program that knows nothing but its header: tests/integration/library.

bats_require_minimum_version 1.5.0
load ../lib/server

setup_file()
{
    fresh_db
    export DRIVER=$MR_BUILD/tests/integration/library/driver
}

teardown_file()
{
    drop_db
}

@test "a job comes out as it went in" {
    "$DRIVER" everything_of_a_job defaults_of_a_job delayed huge
}

@test "many jobs of one kind, many of all kinds, none" {
    "$DRIVER" many many_in_pieces pieces_meet_a_limit jobs heavy_jobs older_jobs
}

@test "unique jobs: one, replaced, held after completion, many, refused" {
    "$DRIVER" unique_one unique_replaced unique_for_a_while unique_many unique_refused unique_older
}

@test "a full queue is MR_EFULL, at once or after a wait; with room in time the call succeeds" {
    "$DRIVER" full_queue waits_for_room
}

@test "bad JSON, bad text and smuggled jobs are refused" {
    "$DRIVER" bad_json bad_text
}

@test "wrong arguments are told from bad input" {
    "$DRIVER" wrong_arguments sizes wrong_requests wrong_worker
}

@test "claim, complete, fail, requeue, release, heartbeat, finish, depth, job" {
    "$DRIVER" completes finds_nothing completes_many fails requeues releases beats finishes
}

@test "cancelled jobs: named by a heartbeat, told to a handler, not begun" {
    "$DRIVER" hears_of_cancelled replies_with_cancelled worker_is_cancelled worker_withdraws_cancelled
}

@test "progress: reported by a call or by a handler, seldom and the newest" {
    "$DRIVER" reports worker_reports worker_reports_badly
}

@test "waiting for the end of a job" {
    "$DRIVER" waits waits_through_trouble waits_wrapped
}

@test "compressed payloads: every way out and in, lookalikes, damaged ones, stories" {
    "$DRIVER" coded_jobs coded_args coded_not coded_lookalikes coded_outcomes coded_wrapped coded_damaged coded_nowait coded_worker coded_story
}

@test "toolbox: cache, rate limiter, locks, breaker" {
    "$DRIVER" cache_holds cache_expires cache_refuses rate_limits locks lock_is_lost lock_is_guarded leases no_session_locks in_a_transaction breaks breaks_for_threads
}

@test "a lost lease is MR_ELEASE and changes nothing" {
    "$DRIVER" loses_its_lease
}

@test "a connection of the caller's: inside of its transaction" {
    "$DRIVER" wrapped wrapped_wrongly
}

@test "without waiting: many in flight, every call, a limit" {
    "$DRIVER" many_in_flight every_call has_a_limit mixed
}

@test "a connection that breaks is made again" {
    "$DRIVER" reconnects breaks_under_way breaks_between_pieces
}

@test "a session that became read-only is not kept" {
    "$DRIVER" read_only
}

@test "no call takes longer than its time" {
    "$DRIVER" times_out
}

@test "a connection that cannot be made says why, at once" {
    "$DRIVER" wrong_dsn
}

@test "without a schema: MR_ESCHEMA and the remedy" {
    MR_TEST_BARE_DSN="host=$PGHOST port=$PGPORT user=$PGUSER dbname=postgres" \
        "$DRIVER" no_schema worker_without_schema
}

@test "a wrong password says so; stopping and starting the server is survived" {
    private_server own --listen
    "$MR_BIN" migrate
    export MR_TEST_STOP="$MR_ROOT/tools/pgserver stop $MR_SERVER"
    export MR_TEST_START="$MR_ROOT/tools/pgserver start $MR_SERVER"
    MR_TEST_WRONG_DSN="host=127.0.0.1 port=$PGPORT user=postgres password=wrong dbname=postgres" \
        "$DRIVER" wrong_password
    "$DRIVER" server_restarts
    "$DRIVER" waits_for_the_server
    "$DRIVER" worker_health
    remove_private_server
}

@test "a worker completes, fails, snoozes and requeues with state" {
    "$DRIVER" worker_completes worker_fails worker_takes_steps worker_says_nonsense
}

@test "where jobs are plenty, several leases are completed in one commit" {
    "$DRIVER" worker_completes_many
    run sql "select count(*) >= 300, count(distinct k.xmin::text) < count(*) / 2
               from millrace.claim k
               join millrace.queue q on q.queue_id = k.lane >> 12
              where q.queue_name = 'w completes many' and k.status = 'd'"
    echo "$output"
    [ "$output" = 't|t' ]
}

@test "a worker stops: from a thread, by a signal, before it began, at the end of its grace" {
    "$DRIVER" worker_stops worker_has_grace worker_stops_by_signal worker_stopped_before
}

@test "a worker keeps its leases, reconnects and wakes up" {
    "$DRIVER" worker_beats worker_reconnects worker_wakes
}

@test "every case of the driver is run above" {
    diff <("$DRIVER" --list | sort) \
        <(grep -A 20 '^@test' "$BATS_TEST_FILENAME" | grep -A 1 '"\$DRIVER"' | grep -oE '\b[a-z]+(_[a-z]+)*\b' |
            grep -Fxf <("$DRIVER" --list) | sort -u)
}
