#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# examples/transactional: workers with psycopg2 and node-postgres whose effects and completions are
# one transaction. Each job that completed has exactly one row in the ledger, whatever happens.

bats_require_minimum_version 1.5.0
load ../lib/server
load ../lib/transactional
worker=() # filled by worker_of

setup_file()
{
    fresh_db
    make_ledger
}

teardown_file()
{
    drop_db
}

setup()
{
    q=t$BATS_TEST_NUMBER
    log=$BATS_TEST_TMPDIR/log
    pid=
    sql 'truncate ledger'
}

teardown()
{
    [ -z "$pid" ] || kill -KILL "$pid" 2>/dev/null || true
    [ -n "${BATS_TEST_COMPLETED:-}" ] || cat "$log" 2>/dev/null || true
}

# start OPTION...: a worker in the background.
start()
{
    "${worker[@]}" "$q" "$@" >>"$log" 2>&1 3>&- &
    pid=$!
}

# ---- what is asked of both ---------------------------------------------------------------------

charges_all()
{
    enqueue_many 25
    "${worker[@]}" "$q" --batch 4 --until-empty
    [ "$(ledger)" = '25|25|325' ]
    [ "$(jobs_with completed)" -eq 25 ]
    [ "$(sql "select millrace.depth('$q')")" -eq 0 ]
}

connects_in_three_ways()
{
    local bare=(env -u PGHOST -u PGPORT -u PGUSER -u PGDATABASE)
    enqueue '{"amount": 1}'
    "${bare[@]}" "${worker[@]}" "$q" --until-empty
    [ "$(ledger)" = '1|1|1' ]
    enqueue '{"amount": 2}'
    MILLRACE_DSN="postgresql:///$PGDATABASE?host=$PGHOST&port=$PGPORT&user=$PGUSER" \
        "${bare[@]}" "${worker[@]}" "$q" --until-empty
    [ "$(ledger)" = '2|2|3' ]
    enqueue '{"amount": 3}'
    env -u MILLRACE_DSN "${worker[@]}" "$q" --until-empty
    [ "$(ledger)" = '3|3|6' ]
}

# A job's time passes between its effect and its completion, so that is where most kills come.
survives_kills()
{
    local i before
    sql "select millrace.set_queue('$q', '{\"poison_limit\": 1000}')"
    enqueue_many 120 0.04
    for ((i = 0; i < 8; i++)); do
        before=$(rows)
        start --batch 5 --lease 1
        wait_until 30 more_rows_than "$before"
        kill -KILL "$pid"
        wait "$pid" || true
    done
    pid=
    # They were in the middle of something.
    [ "$(jobs_with completed)" -lt 120 ]
    wait_until 90 worked_off
    [ "$(ledger)" = '120|120|7260' ]
    [ "$(jobs_with completed)" -eq 120 ]
    # And what they had in hand came again.
    [ "$(sql "select count(*) > 0 from millrace.jobs where queue = '$q' and attempt > 1")" = t ]
}

# Its lease is over, and its jobs are given back.
rescued()
{
    sql 'select count(*) from millrace.maintain()'
    [ "$(sql "select count(*) from millrace.jobs where queue = '$q' and status = 'available' and attempt = 2")" -eq 2 ]
}

table_is_locked()
{
    [ "$(sql "select count(*) from pg_locks where relation = 'ledger'::regclass and mode = 'ShareLock' and granted")" -eq 1 ]
}

drops_what_is_lost()
{
    local holder
    enqueue_many 2
    # The effect waits for this lock, and so the completion comes after the lease is lost.
    PGAPPNAME=holder psql -X -q -c 'begin; lock table ledger in share mode; select pg_sleep(600)' >/dev/null 2>&1 3>&- &
    holder=$!
    wait_until 20 table_is_locked
    start --lease 1 --until-empty
    wait_until 30 rescued
    # Paused, so that it does not take them again.
    sql "select millrace.pause('$q')"
    sql "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'holder' and datname = current_database()"
    wait "$holder" || true
    wait "$pid"
    pid=
    grep -q "^worker\.[a-z]*: lease .* is lost" "$log"
    [ "$(grep -c . "$log")" -eq 1 ]
    [ "$(rows)" -eq 0 ]
    [ "$(sql "select millrace.depth('$q')")" -eq 2 ]
    sql "select millrace.resume('$q')"
    "${worker[@]}" "$q" --until-empty
    [ "$(ledger)" = '2|2|3' ]
    [ "$(jobs_with completed)" -eq 2 ]
}

# The row is written before the application raises, and in the third case it is the server that does.
fails_without_effect()
{
    local good refused large
    good=$(enqueue '{"amount": 5}')
    refused=$(enqueue '{"amount": -1}')
    large=$(enqueue '{"amount": 99999999999}')
    wait_until 60 worked_off
    story_is "$good" 'completed|completed|'
    story_is "$refused" 'failed dead|dead|*amount must be positive, not -1'
    story_is "$large" 'failed dead|dead|*out of range*'
    [ "$(sql 'select job_id, amount from ledger')" = "$good|5" ]
}

# For wait_until: upkeep all the while, so that an expired lease would be noticed.
ended_under_upkeep()
{
    sql 'select count(*) from millrace.maintain()'
    ! kill -0 "$pid"
}

renews_its_lease()
{
    enqueue_many 10 0.45
    start --batch 10 --lease 3 --until-empty
    wait_until 60 ended_under_upkeep
    wait "$pid"
    pid=
    [ "$(ledger)" = '10|10|55' ]
    [ "$(jobs_with completed)" -eq 10 ]
    [ "$(sql "select max(attempt) from millrace.jobs where queue = '$q'")" -eq 1 ]
    # All of them under one lease, and it was longer than three seconds.
    [ "$(sql "select count(distinct claimed_at), max(finished_at) - min(claimed_at) > interval '3 s' from millrace.jobs where queue = '$q'")" = '1|t' ]
}

# The transaction is rolled back by the server; the job comes again when its lease has expired.
ends_without_a_connection()
{
    local status=0
    enqueue_many 1 2
    start --lease 1 --until-empty
    wait_until 20 between_effect_and_completion
    sql "select pg_terminate_backend(pid) from pg_stat_activity where $between"
    wait "$pid" || status=$?
    pid=
    [ $status -eq 1 ]
    [ "$(rows)" -eq 0 ]
    wait_until 30 worked_off
    [ "$(ledger)" = '1|1|1' ]
}

between="datname = current_database() and state = 'idle in transaction' and query like 'insert into ledger%'"

between_effect_and_completion()
{
    [ "$(sql "select count(*) from pg_stat_activity where $between")" -eq 1 ]
}

# ---- Python --------------------------------------------------------------------------------------

@test "Python: as many rows as jobs, and nothing left" {
    worker_of python
    charges_all
}

@test "Python: connects with words, with a URL, with libpq's environment" {
    worker_of python
    connects_in_three_ways
}

@test "Python: killed again and again, each job is charged once" {
    worker_of python
    survives_kills
}

@test "Python: a lease that is lost before the completion takes the effect back" {
    worker_of python
    drops_what_is_lost
}

@test "Python: a job that fails is tried again, then dead, and leaves no effect" {
    worker_of python
    fails_without_effect
}

@test "Python: a batch that takes longer than its lease" {
    worker_of python
    renews_its_lease
}

@test "Python: a connection that breaks" {
    worker_of python
    ends_without_a_connection
}

# ---- Node ----------------------------------------------------------------------------------------

@test "Node: as many rows as jobs, and nothing left" {
    worker_of node
    charges_all
}

@test "Node: connects with words, with a URL, with libpq's environment" {
    worker_of node
    connects_in_three_ways
}

@test "Node: killed again and again, each job is charged once" {
    worker_of node
    survives_kills
}

@test "Node: a lease that is lost before the completion takes the effect back" {
    worker_of node
    drops_what_is_lost
}

@test "Node: a job that fails is tried again, then dead, and leaves no effect" {
    worker_of node
    fails_without_effect
}

@test "Node: a batch that takes longer than its lease" {
    worker_of node
    renews_its_lease
}

@test "Node: a connection that breaks" {
    worker_of node
    ends_without_a_connection
}

# ---- what is written about them ------------------------------------------------------------------

# shows LANGUAGE FILE: every block of the page in that language is a part of the file, word for word.
shows()
{
    local block='' inside='' line n=0
    while IFS= read -r line; do
        if [ -z "$inside" ]; then
            [ "$line" != '```'"$1" ] || inside=yes
        elif [ "$line" = '```' ]; then
            [[ $(<"$MR_ROOT/examples/transactional/$2") == *"$block"* ]] || { printf 'not in %s:\n%s' "$2" "$block"; return 1; }
            inside='' block='' n=$((n + 1))
        else
            block+=$line$'\n'
        fi
    done <"$MR_ROOT/docs/transactional.md"
    [ $n -gt 0 ]
}

@test "the page shows parts of the examples as they are" {
    shows python worker.py
    shows js worker.js
}

@test "the lock file of the example names no registry, and one version" {
    cd "$MR_ROOT/examples/transactional" || return
    jq -e '[.packages[] | select(.resolved)] | length == 0' package-lock.json
    jq -e '[.packages | to_entries[] | select(.key != "") | .value.integrity] | length > 5 and all(. != null)' package-lock.json
    jq -e '.dependencies.pg | test("^[0-9.]+$")' package.json
}
