#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# The worker in moments that chance alone would seldom bring about: tests/integration/worker.

bats_require_minimum_version 1.5.0
load ../lib/server

setup_file()
{
    private_server worker --listen
    "$MR_BIN" migrate
    sql "create role clerk login in role millrace_worker"
    export DRIVER=$MR_BUILD/tests/integration/worker/driver
}

teardown_file()
{
    remove_private_server
}

@test "the first host of the dsn refuses, the second is used at once" {
    MR_TEST_HOSTS_DSN="host=127.0.0.1,127.0.0.1 port=1,$PGPORT user=$PGUSER password=$PGPASSWORD dbname=$PGDATABASE" \
        "$DRIVER" second_host
}

@test "the first host of the dsn does not answer, the second is tried" {
    "$DRIVER" silent_host
}

@test "a job that does not end does not keep the processor busy after the grace period" {
    "$DRIVER" quiet_at_the_end
}

@test "outcomes that cannot be written stop claims and keep their leases" {
    MR_TEST_ROLE_DSN="host=$PGHOST port=$PGPORT user=clerk dbname=$PGDATABASE" "$DRIVER" piles_nothing_up
}

@test "a standby is asked less and less often" {
    MR_TEST_READONLY_DSN="$MILLRACE_DSN options='-c default_transaction_read_only=on'" \
        "$DRIVER" patient_with_a_standby
}

@test "an outcome whose answer was lost costs no other job of the lease" {
    MR_TEST_HASTY_DSN="$MILLRACE_DSN options='-c lock_timeout=500'" "$DRIVER" written_without_an_answer
}

@test "a lease is lost once" {
    "$DRIVER" lost_once
    "$DRIVER" lost_by_writing
}

@test "a job that was finished elsewhere costs no other job of the lease" {
    "$DRIVER" finished_elsewhere
}

@test "large outcomes go in several calls" {
    "$DRIVER" large_outcomes
}

@test "a cancelled job is told once, and its handler has the last word" {
    "$DRIVER" cancelled_once
}

@test "in a queue with limits no more jobs are held than are run, and room is used" {
    "$DRIVER" limited
    "$DRIVER" rated
}

@test "reports of progress: seldom, the newest, and none behind the outcome" {
    "$DRIVER" reports_in_turn
    "$DRIVER" reports_without_a_lease
}

@test "reports that the server refuses cost the job nothing" {
    MR_TEST_ROLE_DSN="host=$PGHOST port=$PGPORT user=clerk dbname=$PGDATABASE" "$DRIVER" reports_refused
}
