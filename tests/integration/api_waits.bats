#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# Requests that wait: what wakes them, and what they cost while nothing does. What is asked of the server is counted in its log.

# shellcheck disable=SC2034,SC2154 # variables go to and come from lib/api

bats_require_minimum_version 1.5.0
load ../lib/server
load ../lib/daemon
load ../lib/api

setup_file()
{
    private_server own -o log_statement=all
    "$MR_BIN" migrate
}

teardown_file()
{
    remove_private_server
}

setup()
{
    q=q$BATS_TEST_NUMBER
    sql "select millrace.set_queue('$q', '{}')" >/dev/null
}

teardown()
{
    [ -z "${waiting:-}" ] || kill "$waiting" 2>/dev/null || true
    end_daemons
}

# How often the server was asked for something since the last `mark`.
mark()
{
    marked=$(wc -l <"$MR_SERVER/log")
}

asked()
{
    tail -n "+$((marked + 1))" "$MR_SERVER/log" | grep -c "$1" || true
}

asked_at_least()
{
    [ "$(asked "$1")" -ge "$2" ]
}

# Lets $1 clients wait for jobs of the queue; returns when all do, and a wake-up would come.
wait_for_jobs()
{
    mark
    python3 "$MR_ROOT/tests/integration/api/waits.py" "${api##*:}" "$q" "$1" "${2:-60000}" >"$BATS_TEST_TMPDIR/answers" 3>&- &
    waiting=$!
    wait_until 20 asked_at_least 'execute .*claim_json' "$1"
    # those whom nobody wakes look all the time
    [ -n "${alone:-}" ] || { wait_until 20 asked_at_least 'execute mr_wait_channel' 2 && wait_until 20 settled; }
}

# Whether nobody asks for jobs for a while: between two looks, of which there is one a second.
settled()
{
    local before
    before=$(asked 'execute .*claim_json')
    sleep 0.2
    [ "$(asked 'execute .*claim_json')" -eq "$before" ]
}

# When the server was last asked for something, in ms of the day.
last_asked()
{
    tail -n "+$((marked + 1))" "$MR_SERVER/log" | sed -nE 's/^[^ ]+ ([0-9]+):([0-9]+):([0-9]+)\.([0-9]+) .*'"$1"'.*/\1 \2 \3 \4/p' |
        awk 'END { print (($1 * 60 + $2) * 60 + $3) * 1000 + $4 }'
}

answered()
{
    [ "$(wc -l <"$BATS_TEST_TMPDIR/answers")" -ge "$1" ]
}

@test "a job wakes one who waits: two claims, however many there are" {
    api_up
    wait_for_jobs 50
    mark
    local began=$SECONDS
    sql "select millrace.enqueue('k', queue => '$q')" >/dev/null
    wait_until 10 answered 1
    # those who wait look once a second: when they have, whoever else was woken has asked, too
    wait_until 20 asked_at_least 'execute .*claim_json' $(($(asked 'execute .*claim_json') + 2))
    [ "$(asked 'execute .*claim_json')" -le $((5 + SECONDS - began)) ]
    [ "$(wc -l <"$BATS_TEST_TMPDIR/answers")" -eq 1 ]
    # as many jobs as wait: each gets one
    enqueue 49 "$q"
    wait_until 20 answered 50
    [ "$(awk '$1 == 200 { print $3 }' "$BATS_TEST_TMPDIR/answers" | sort -u | wc -l)" -eq 50 ]
}

# since MS PATTERN: how long after that the server was last asked for something.
since()
{
    echo $((($(last_asked "$2") - $1 + 86400000) % 86400000))
}

# Where the job came late, the next look is no later than a wake-up: that round says nothing.
@test "it is woken, not found by looking: most jobs arrive at once" {
    local n=0 looked times=$BATS_TEST_TMPDIR/times
    api_up
    : >"$times"
    while [ "$(wc -l <"$times")" -lt 5 ]; do
        [ $((++n)) -le 40 ]
        wait_for_jobs 1
        # just after a look, of which the next one comes a second later
        mark
        wait_until 10 asked_at_least 'execute .*claim_json' 1
        looked=$(last_asked 'execute .*claim_json')
        sql "select millrace.enqueue('k', queue => '$q')" >/dev/null
        wait_until 10 answered 1
        wait "$waiting"
        [ "$(since "$looked" 'statement: .*enqueue')" -ge 400 ] || since "$looked" 'execute .*claim_json' >>"$times"
    done
    show "five of $n rounds: $(sort -n "$times" | xargs) ms"
    [ "$(sort -n "$times" | sed -n 3p)" -lt 900 ]
}

@test "those who wait in vain look once a second, together" {
    api_up
    local began took
    wait_for_jobs 50
    mark
    began=${EPOCHREALTIME/./}
    sleep 3 # what is asked in a time is the point
    took=$((${EPOCHREALTIME/./} - began))
    wait_until 10 asked_at_least 'execute .*claim_json' 1 # a wake-up may get lost
    [ "$(asked 'execute .*claim_json')" -le $((5 + took / 1000000)) ]
    [ "$(asked 'execute mr_wait_channel')" -le 4 ]
}

@test "a wait ends when its time is over, with no job" {
    api_up
    wait_for_jobs 3 1500
    wait_until 20 answered 3
    [ "$(awk '$1 == 200 && $2 >= 1.4 && $2 < 10 && NF == 2' "$BATS_TEST_TMPDIR/answers" | wc -l)" -eq 3 ]
}

@test "behind a pooler nobody listens, and jobs are found by looking" {
    api_more='pooler = true'
    api_up
    alone=1 wait_for_jobs 2
    enqueue 2 "$q"
    wait_until 10 answered 2
    [ "$(asked 'listen ')" -eq 0 ]
}

@test "the connection that listens is lost: it is made again, and wakes again" {
    api_up
    wait_for_jobs 2
    mark
    sql "select pg_terminate_backend(pid) from pg_stat_activity where query ilike '%wait_channel%' and pid <> pg_backend_pid()" >/dev/null
    wait_until 20 asked_at_least 'listen "millrace_' 1
    wait_until 20 asked_at_least 'execute mr_wait_channel' 2
    enqueue 2 "$q"
    wait_until 10 answered 2
    [ "$(grep -c '^200' "$BATS_TEST_TMPDIR/answers")" -eq 2 ]
    api GET /metrics
    grep -qE '^millrace_reconnects_total [1-9]' <<<"$body"
}

@test "a queue that is dropped and made again while somebody waits for it" {
    api_up
    wait_for_jobs 1
    sql "select millrace.drop_queue('$q')" >/dev/null
    sql "select millrace.set_queue('$q', '{}')" >/dev/null
    mark
    # the new one has another channel, which the next registration names
    wait_until 20 asked_at_least 'listen "millrace_' 1
    enqueue 1 "$q"
    wait_until 10 answered 1
    grep -q '^200' "$BATS_TEST_TMPDIR/answers"
}

@test "a paused queue wakes when it goes on; one with a limit is looked at" {
    api_up
    enqueue 1 "$q"
    sql "select millrace.pause('$q')" >/dev/null
    wait_for_jobs 1
    sql "select millrace.resume('$q')" >/dev/null
    wait_until 10 answered 1
    wait "$waiting"
    sql "select millrace.set_queue('$q', '{\"concurrency\": 2}')" >/dev/null # the first one still runs
    enqueue 2 "$q"
    lease=$(sql "select lease from millrace.claim('$q')")
    alone=1 wait_for_jobs 1
    # when it looks the second time, it got nothing the first time
    mark
    wait_until 10 asked_at_least 'execute .*claim_json' 2
    run ! answered 1
    sql "select millrace.complete('$lease')" >/dev/null
    wait_until 10 answered 1
    grep -q '^200 [0-9.]* [0-9]' "$BATS_TEST_TMPDIR/answers"
}

@test "single jobs that come while one is under way share a transaction" {
    api_up
    mkfifo "$BATS_TEST_TMPDIR/in"
    psql -X -q <"$BATS_TEST_TMPDIR/in" 3>&- &
    local holder=$! n
    exec 7>"$BATS_TEST_TMPDIR/in"
    echo 'begin; lock table millrace.job in exclusive mode; select;' >&7
    wait_until 10 asked_locks
    mark
    for n in $(seq 40); do
        curl -s -o /dev/null -w '%{http_code}\n' -H 'Authorization: Bearer admin-token' -H 'Content-Type: application/json' \
            -d "{\"kind\": \"k\", \"queue\": \"$q\"}" "$api/api/v1/jobs" 3>&- 7>&- &
    done >"$BATS_TEST_TMPDIR/codes"
    # the first has gone, the others have come: then the table is let go
    wait_until 20 asked_at_least 'execute mr_api_enqueue_jobs' 1
    wait_until 20 connections_are 40
    echo 'commit;' >&7
    exec 7>&-
    wait "$holder"
    wait_until 20 coded 40
    [ "$(grep -c 201 "$BATS_TEST_TMPDIR/codes")" -eq 40 ]
    [ "$(asked 'execute mr_api_enqueue_jobs')" -le 4 ]
}

asked_locks()
{
    [ "$(sql "select count(*) from pg_locks where relation = 'millrace.job'::regclass and mode = 'ExclusiveLock' and granted")" -ge 1 ]
}

connections_are()
{
    api GET /metrics
    awk -v n="$1" '$1 == "millrace_http_connections" { exit !($2 > n) }' <<<"$body"
}

coded()
{
    [ "$(wc -l <"$BATS_TEST_TMPDIR/codes")" -ge "$1" ]
}
