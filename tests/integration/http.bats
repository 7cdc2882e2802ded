#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# The http handler against a real server: what a status, an answer and each kind of trouble make
# of a job, what is sent, and which addresses are called.

bats_require_minimum_version 1.5.0
load ../lib/server
load ../lib/workers

setup_file()
{
    fresh_db
    # what failed stays away for the rest of the test
    sql "select millrace.set_retry('hook', base => '10 minutes', jitter => 0)"
    export HOOKS=$MR_SCRATCH/hooks
    python3 "$MR_ROOT/tests/lib/hook_server.py" "$HOOKS" >"$HOOKS.out" 2>&1 3>&- &
    export HOOKS_PID=$!
    wait_until 20 test -s "$HOOKS.port"
    export HOOKS_URL
    HOOKS_URL=http://127.0.0.1:$(cat "$HOOKS.port")
}

teardown_file()
{
    kill "$HOOKS_PID" || true
    drop_db
}

setup()
{
    q=hooks$BATS_TEST_NUMBER
}

teardown()
{
    stop_workers || true
}

# A job of this test's queue: enqueue [ARGS-JSON [OPTION => VALUE...]]
enqueue()
{
    sql "select millrace.enqueue('hook', '${1:-{\}}', queue => '$q'${2:+, $2})"
}

work()
{
    local path=$1
    shift
    "$MR_BIN" work "$q" --http "$HOOKS_URL$path" --until-empty --breaker-failures 0 "$@"
}

# What became of a job: status, attempt, error.
fate()
{
    sql "select status, attempt, coalesce(error, '') from millrace.jobs where id = $1"
}

# due ID MINUTES MINUTES: when it is tried again
due()
{
    [ "$(sql "select run_at - now() between '$2 min' and '$3 min' from millrace.jobs where id = $1")" = t ]
}

# A field (a.b) of the requests that came for a path: request PATH FIELD
request()
{
    python3 - "$1" "$2" "$HOOKS.log" <<'PYTHON'
import json, sys
path, field, log = sys.argv[1:]
for line in open(log):
    request = json.loads(line)
    if request["path"] == path:
        value = request
        for key in field.split("."):
            value = json.loads(value)[key] if isinstance(value, str) else value[key]
        print(value if isinstance(value, str) else json.dumps(value))
PYTHON
}

@test "2xx completes, and the request says everything about the job" {
    id=$(enqueue '{"note_id": 7, "name": "Zoë"}' "ref => 'r-7', tenant => 'acme',
        meta => '{\"traceparent\": \"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\"}'")
    work '/status/204?token=abc'
    [[ $(fate "$id") == completed\|1\|* ]]
    path='/status/204?token=abc'
    [ "$(request "$path" headers.content-type)" = application/json ]
    [ "$(request "$path" headers.millrace-job-id)" = "$id" ]
    [ "$(request "$path" headers.idempotency-key)" = "$id" ]
    [ "$(request "$path" headers.millrace-queue)" = "$q" ]
    [ "$(request "$path" headers.millrace-kind)" = hook ]
    [ "$(request "$path" headers.millrace-attempt)" = 1 ]
    [ "$(request "$path" headers.traceparent)" = 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01 ]
    [[ $(request "$path" headers.user-agent) == millrace/* ]]
    [ "$(request "$path" body.args.name)" = Zoë ]
    [ "$(request "$path" body.id)" = "$id" ]
    [ "$(request "$path" body.ref)" = r-7 ]
}

@test "a kind cannot write headers of its own" {
    sql "select millrace.enqueue(E'a\r\nInjected: yes\r\n\u00e4 100%', queue => '$q')"
    work /status/201
    [ "$(request /status/201 headers.millrace-kind)" = a%0D%0AInjected:%20yes%0D%0A%C3%A4%20100%25 ]
    run ! request /status/201 headers.injected
}

@test "a body that is an answer is the answer; any other body is ignored" {
    a=$(enqueue '{"answer": {"outcome": "completed", "result": {"charged": 5}}}')
    b=$(enqueue '{"answer": {"result": [1, 2]}}')
    c=$(enqueue '{"answer": {"error": "card declined", "retry": false}}')
    d=$(enqueue '{"answer": {"outcome": "snoozed", "delay": 3600}}')
    e=$(enqueue '{"answer": {"outcome": "failed", "error": "busy", "retry_in": "2 hours"}}')
    f=$(enqueue '{"answer": {"ok": true, "message": "thanks"}}')
    g=$(enqueue '{"answer": "just text"}')
    h=$(enqueue '{"answer": {"outcome": "sideways"}}')
    work /answer/200/json
    [ "$(sql "select millrace.job($a) #>> '{result,charged}'")" = 5 ]
    [ "$(sql "select millrace.job($b) #>> '{result,1}'")" = 2 ]
    [[ $(fate "$c") == 'dead|1|card declined' ]]
    [[ $(fate "$d") == scheduled\|* ]]
    due "$d" 58 61
    [[ $(fate "$e") == scheduled\|*busy ]]
    due "$e" 118 121
    [[ $(fate "$f") == completed\|* ]]
    [ "$(sql "select coalesce(millrace.job($f) ->> 'result', 'none')")" = none ]
    [[ $(fate "$g") == completed\|* ]]
    [[ $(fate "$h") == scheduled\|*'answer that cannot be used: unknown outcome "sideways"'* ]]
}

@test "an answer in another type of content is not one" {
    id=$(enqueue '{"answer": {"outcome": "failed", "error": "not for us"}}')
    work /answer/200/xml
    [[ $(fate "$id") == completed\|* ]]
}

@test "5xx, 408, 425 and 429 are tried again" {
    for status in 500 502 503 408 425 429; do
        id=$(enqueue)
        work /status/$status
        [[ $(fate "$id") == "scheduled|"*"|http://127.0.0.1:"*" answered $status: status $status second line" ]]
    done
}

@test "Retry-After in seconds or as a date says when" {
    id=$(enqueue)
    work /after/429/7200
    due "$id" 118 121
    id=$(enqueue)
    work /later/503/7200
    due "$id" 118 121
    # what makes no sense, or is far away, is not believed
    id=$(enqueue)
    work /after/503/soon
    due "$id" 5 45
    id=$(enqueue)
    work /after/503/99999999
    due "$id" 1430 1441
}

@test "other 4xx fail for good" {
    for status in 400 401 404 410 422; do
        id=$(enqueue)
        work /status/$status
        [[ $(fate "$id") == "dead|1|"*" answered $status: status $status second line" ]]
    done
}

@test "a redirect is not followed, and the error says where it leads" {
    id=$(enqueue)
    work /moved
    [[ $(fate "$id") == "dead|1|"*"answered 302, a redirect to $HOOKS_URL/status/204: redirects are not followed, configure the final URL" ]]
}

@test "a body that never ends is cut, and one that drips times out" {
    a=$(enqueue)
    work /endless
    [[ $(fate "$a") == "scheduled|"*"the answer of "*" is longer than 8388608 bytes and was cut" ]]
    b=$(enqueue '{}' "timeout => '300 ms'")
    work /drip
    [[ $(fate "$b") == "scheduled|"*"timed out after 300 ms: "* ]]
}

@test "the job's timeout counts before the worker's" {
    a=$(enqueue '{}' "timeout => '200 ms'")
    b=$(enqueue)
    work /slow/1 --timeout 20s
    [[ $(fate "$a") == "scheduled|"*"timed out after 200 ms: "* ]]
    [[ $(fate "$b") == completed\|* ]]
    c=$(enqueue)
    work /slow/1 --timeout 100ms
    [[ $(fate "$c") == "scheduled|"*"timed out after 100 ms: "* ]]
}

@test "a server that is not there, a name that is none, a connection that ends: tried again" {
    id=$(enqueue)
    "$MR_BIN" work "$q" --http http://127.0.0.1:1/x --until-empty
    [[ $(fate "$id") == "scheduled|"*"cannot call http://127.0.0.1:1: "*"onnect to 127.0.0.1"* ]]
    id=$(enqueue)
    "$MR_BIN" work "$q" --http http://nowhere.invalid/secret --until-empty
    [[ $(fate "$id") == "scheduled|"*"cannot call http://nowhere.invalid:80: "*"resolve"* ]]
    [[ $(fate "$id") != *secret* ]]
    id=$(enqueue)
    work /gone
    [[ $(fate "$id") == "scheduled|"*"cannot call http://127.0.0.1:"* ]]
    # no TLS there
    id=$(enqueue)
    "$MR_BIN" work "$q" --http "https${HOOKS_URL#http}/" --until-empty
    [[ $(fate "$id") == "scheduled|"*"cannot call https://127.0.0.1:"*SSL* ]]
}

@test "an error's text is clean whatever the server sent" {
    id=$(enqueue)
    work /bytes/500
    [[ $(fate "$id") == "scheduled|"*"answered 500: caf?    closed" ]]
}

@test "the secret signs time and body" {
    a=$(enqueue '{"amount": 5}')
    work /signed/s3cret --secret s3cret
    [[ $(fate "$a") == completed\|* ]]
    b=$(enqueue)
    work /signed/s3cret --secret another
    [[ $(fate "$b") == "dead|"*"answered 401" ]]
}

@test "many at once, over few connections" {
    sql "select count(*) from millrace.enqueue_many('hook', array_fill('{}'::jsonb, array[200]), '$q')"
    work /status/202 --concurrency 8 --batch 50
    [ "$(request /status/202 headers.millrace-job-id | sort -u | wc -l)" -eq 200 ]
    [ "$(request /status/202 connection | sort -u | wc -l)" -le 8 ]
    [ "$(sql "select millrace.depth('$q')")" -eq 0 ]
}

@test "when the grace period is over a request is cut and its job goes back, the attempt not counted" {
    id=$(enqueue)
    start_worker "$q" --http "$HOOKS_URL/slow/60" --grace 300ms
    wait_until 20 grep -q '"/slow/60"' "$HOOKS.log"
    stop_workers
    [[ $(fate "$id") == 'available|1|' ]]
    [ "$(worker_sum released)" -eq 1 ]
}

@test "an address that is not public is not called, unless the operator says so" {
    port=${HOOKS_URL##*:}
    name=$(getent hosts "$(hostname)" | awk '{ print $2 }') || true
    [ -n "$name" ] || skip 'this machine does not know its own name: put it into /etc/hosts'
    # the name leads to an address of this machine: nothing is sent there
    id=$(enqueue)
    "$MR_BIN" work "$q" --http "http://$name:$port/status/206" --until-empty
    [[ $(fate "$id") == "scheduled|"*"cannot call http://$name:$port: the address "*"; set private_networks to call such addresses" ]]
    run request /status/206 path
    [ -z "$output" ]
    # localhost is written by somebody who means it
    id=$(enqueue)
    "$MR_BIN" work "$q" --http "http://localhost:$port/status/207" --until-empty
    [[ $(fate "$id") == completed\|* ]]
}

@test "what is not a URL for http is refused at once" {
    for url in ftp://example.org/ example.org/hook file:///etc/passwd http:// 'http://a b/' gopher://x; do
        run "$MR_BIN" work "$q" --http "$url" --until-empty
        [ "$status" -eq 1 ] || [ "$status" -eq 2 ]
        [[ $output == *'cannot use the URL of the http handler'* ]]
        [[ $output == *'https://example.org/hook'* ]]
    done
}
