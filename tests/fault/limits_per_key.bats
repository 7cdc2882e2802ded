#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# Limits inside a queue with sixteen claimers, of which one is killed with SIGKILL again and again: at
# no moment run more jobs of a key than the limit says, in no second are more of a tenant started,
# what the killed ones held comes back with their leases, and every job completes.

load ../lib/server
load ../lib/workers

setup()
{
    fresh_db
}

teardown()
{
    stop_workers
    drop_db
}

# limited SETTINGS OPTION JOBS: a hundred keys or tenants, of which the first few have most of the jobs.
limited()
{
    sql "select millrace.set_queue('limited', '$1')"
    sql "select count(*) from millrace.enqueue_jobs((select jsonb_agg(jsonb_build_object('kind', 'k', 'queue', 'limited', '$2', s.name,
            'args', jsonb_build_object('of', s.name))) from (select 'of' || floor(100 * power(random(), 2)) as name from generate_series(1, $3)) s))"
}

# Debian's module is for Debian's interpreter, which need not be the first one.
need_psycopg2()
{
    for python in python3 /usr/bin/python3; do
        ! "$python" -c 'import psycopg2' 2>/dev/null || return 0
    done
    skip 'psycopg2 is not installed: tools/deps test'
}

# Prints the figures behind the test's name.
show()
{
    echo "# $*" >&3
}

all_done()
{
    [ "$(sql "select available + running + scheduled + retrying from millrace.stats('limited')")" -eq 0 ]
}

@test "concurrency_per_key: sixteen claimers, killed at random, never run more than two jobs of a key" {
    need_psycopg2
    limited '{"concurrency_per_key": 2, "max_attempts": 1000, "poison_limit": 1000}' ordering_key 3000
    run "$python" "$BATS_TEST_DIRNAME/limits.py" keys 2 16 12 3s
    show "$output"
    [ "$status" -eq 0 ]
}

@test "rate_per_tenant: sixteen claimers, killed at random, never start more than ten jobs of a tenant in a second" {
    need_psycopg2
    limited '{"rate_per_tenant": "10/s", "max_attempts": 1000, "poison_limit": 1000}' tenant 1000
    run "$python" "$BATS_TEST_DIRNAME/limits.py" tenants 10 16 10 2s
    show "$output"
    [ "$status" -eq 0 ]
}

# A worker knows that it may ask again at once where it has let jobs in: with a poll interval of 5 s these would take 1000 s.
@test "a worker drains one key at its limit, not at the poll interval" {
    local begun
    export QUEUE_POLL_INTERVAL_MS=5000
    sql "select millrace.set_queue('limited', '{\"concurrency_per_key\": 2}')"
    sql "select count(millrace.enqueue('k', queue => 'limited', ordering_key => 'a')) from generate_series(1, 400)"
    begun=${EPOCHREALTIME/./}
    "$MR_BIN" work limited --exec "python3 '$BATS_TEST_DIRNAME/../lib/note_runs.py' /dev/null 0" --concurrency 4 --until-empty --json
    all_done
    show "400 jobs of one key, two at once: $(((${EPOCHREALTIME/./} - begun) / 1000)) ms"
}
