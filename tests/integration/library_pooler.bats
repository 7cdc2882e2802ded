#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# libmillrace in its pooler mode, through PgBouncer in transaction mode: neither named
# statements nor LISTEN.

bats_require_minimum_version 1.5.0
load ../lib/server
load ../lib/pgbouncer

setup_file()
{
    fresh_db
    export DRIVER=$MR_BUILD/tests/integration/library/driver MR_TEST_DIRECT_DSN=$MILLRACE_DSN
    start_pgbouncer
    export MR_TEST_POOLER=1
}

teardown_file()
{
    stop_pgbouncer
    drop_db
}

@test "producing and working" {
    "$DRIVER" everything_of_a_job many many_in_pieces jobs heavy_jobs bad_json unique_one unique_replaced unique_many \
        completes completes_many fails requeues releases beats hears_of_cancelled finishes loses_its_lease \
        reports waits worker_reports
}

@test "without waiting" {
    "$DRIVER" many_in_flight every_call has_a_limit
}

@test "a call that takes too long" {
    "$DRIVER" times_out
}

@test "workers" {
    "$DRIVER" worker_completes worker_takes_steps worker_beats worker_stops worker_reconnects worker_wakes
}

# The mode is needed: without it the second session does not know the statement of the first.
@test "nothing stays behind in the sessions of the server" {
    "$DRIVER" completes worker_wakes
    [ "$(sql 'select count(*) from pg_prepared_statements')" -eq 0 ]
    [ "$(sql 'select count(*) from pg_listening_channels()')" -eq 0 ]
}
