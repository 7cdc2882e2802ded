#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# The HTTP API: who may ask, and jobs in and out.

# shellcheck disable=SC2034,SC2154 # variables go to and come from lib/api

bats_require_minimum_version 1.5.0
load ../lib/server
load ../lib/daemon
load ../lib/api

setup()
{
    fresh_db
    api_up
}

teardown()
{
    end_daemons
    drop_db
}

@test "a daemon that is alive and ready says so to anybody" {
    run -0 curl -s "$api/healthz"
    [ "$output" = '{"status":"alive"}' ]
    run -0 curl -s "$api/readyz"
    [ "$output" = '{"status":"ready","reasons":[]}' ]
}

@test "everything else takes a token, and the role that the route has" {
    local as
    run -0 curl -s -o /dev/null -w '%{http_code}' "$api/api/v1/jobs/1"
    [ "$output" = 401 ]
    as=wrong api GET /api/v1/jobs/1
    says 401 .error.code '"unauthorized"'
    api GET /api/v1/jobs/1 -H 'Authorization: Basic YTpi'
    says 401
    as=reader post /api/v1/jobs '{"kind": "a"}'
    says 403 .error.code '"forbidden"'
    as=worker post /api/v1/jobs '{"kind": "a"}'
    says 403
    as=producer post /api/v1/jobs '{"kind": "a"}'
    says 201 '.ids | length' 1
    as=reader api GET "/api/v1/jobs/$(jq .id <<<"$body")"
    says 200 .kind '"a"'
    as=producer api DELETE /api/v1/jobs/1
    says 403
}

@test "jobs say that they came by HTTP, one, an array, a stream, with a key" {
    post /api/v1/jobs '{"kind": "one"}'
    says 201
    post /api/v1/jobs '[{"kind": "array"}, {"kind": "array"}]'
    says 201
    api POST /api/v1/jobs -H 'Content-Type: application/x-ndjson' --data-binary '{"kind": "stream"}'
    says 201
    api POST /api/v1/jobs -H 'Content-Type: application/json' -H 'Idempotency-Key: once' --data-binary '{"kind": "key"}'
    says 201
    sql "select millrace.enqueue('here')"
    [ "$(sql "select string_agg(distinct kind || ' ' || source, ', ' order by kind || ' ' || source) from millrace.jobs")" = \
        'array http, here sql, key http, one http, stream http' ]
    api GET '/api/v1/jobs?source=sql'
    says 200 '[.jobs[].kind]' '["here"]'
}

@test "a job goes in and its story comes out" {
    post /api/v1/jobs '{"kind": "mail", "args": {"n": 12345678901234567890, "t": "ä\u00e4"}, "queue": "post"}'
    says 201
    api GET "/api/v1/jobs/$(jq .id <<<"$body")"
    says 200 .queue '"post"'
    [ "$(sql "select args ->> 'n', args ->> 't' from millrace.jobs")" = '12345678901234567890|ää' ]
    api GET /api/v1/jobs/999999
    says 404 .error.code '"not_found"'
    api GET /api/v1/jobs/abc
    says 400 .error.code '"bad_request"'
}

# A python that has jsonschema: the system's, where another one comes first in the path.
python_with_jsonschema()
{
    local python
    for python in python3 /usr/bin/python3; do
        if "$python" -c 'import jsonschema' 2>/dev/null; then
            printf '%s\n' "$python"
            return
        fi
    done
    skip 'python3-jsonschema is not installed: tools/deps test'
}

@test "every route, well and badly, as /openapi.json describes it" {
    "$(python_with_jsonschema)" "$MR_ROOT/tests/integration/api/routes.py" "$api"
}

@test "millrace token: random, with a hash that is its own" {
    run -0 "$MR_BIN" token --role worker --json
    token=$(jq -r .token <<<"$output")
    hash=$(jq -r .hash <<<"$output")
    [ "$(jq -r .role <<<"$output")" = worker ]
    [[ $token =~ ^mr_[A-Za-z0-9_-]{43}$ ]]
    [ "$(printf '%s\n' "$token" | "$MR_BIN" token --hash)" = "$hash" ]
    [ "$hash" = "sha256:$(printf %s "$token" | sha256sum | cut -d ' ' -f 1)" ]
    run -0 "$MR_BIN" token
    [ "${lines[1]%%\"sha256*}" = 'token NAME { role = "admin"  hash = ' ]
    [[ $output != *"$token"* ]]
    run -2 "$MR_BIN" token --role king
    run -2 "$MR_BIN" token now
    run -2 "$MR_BIN" token --hash <<<'two words'
    run -2 "$MR_BIN" token --hash </dev/null
}
