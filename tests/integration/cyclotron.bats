#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# examples/cyclotron: its parts one by one. What they do together is tests/fault/cyclotron.bats, the page in SQL is tests/sql/cyclotron.sql.

bats_require_minimum_version 1.5.0
load ../lib/server
load ../lib/example

setup_file() { fresh_db; }
teardown_file() { drop_db; }

@test "numbers that are none are refused, and variants that are not there" {
    local settings
    for settings in INVOCATIONS=many INVOCATIONS=0 INVOCATIONS=1500 INVOCATIONS=-1000 VARIANT=none 'VARIANT=plain;ls'; do
        run env "$settings" "$MR_ROOT/examples/cyclotron/run"
        [ "$status" -eq 2 ] || { echo "$settings: $status $output"; return 1; }
    done
    for settings in DEAD=0 DEAD=many DEAD=30000 WINDOW=0 WINDOW=x; do
        run env "$settings" "$MR_ROOT/examples/cyclotron/incident"
        [ "$status" -eq 2 ] || { echo "$settings: $status $output"; return 1; }
    done
}

@test "both leave nothing behind when they fail" {
    mkdir -m 711 "$MR_SCRATCH/left"
    ln -s /bin/false "$BATS_TEST_TMPDIR/millrace"
    local script
    for script in run incident; do
        TMPDIR=$MR_SCRATCH/left MR_BUILD=$BATS_TEST_TMPDIR run "$MR_ROOT/examples/cyclotron/$script" 3>&-
        [ "$status" -eq 1 ]
        wait_until 20 nothing_left
    done
}

@test "the service says what it wants, and knows a step by its key" {
    local service url key=00000000-0000-4000-8000-000000000003
    service=$(dirname "$MR_BIN")/examples/cyclotron/service
    run -2 "$service"
    [ "$output" = 'usage: service INVOCATIONS' ]
    run -2 "$service" many
    run -2 "$service" 0
    "$service" 10 >"$BATS_TEST_TMPDIR/service" 3>&- &
    local pid=$!
    wait_until 30 grep -q listens "$BATS_TEST_TMPDIR/service"
    url=http://127.0.0.1:$(sed 's/.* //' "$BATS_TEST_TMPDIR/service")
    post() { curl -s --noproxy '*' -o /dev/null -w '%{http_code}' -d body ${2:+-H "Idempotency-Key: $2"} "$url$1"; }
    [ "$(post /ok)" = 400 ]
    [ "$(post /ok $key)" = 400 ]
    [ "$(post /ok $key/3)" = 400 ]
    [ "$(post /ok 00000000-0000-4000-8000-00000000000a/1)" = 400 ]
    [ "$(post /nowhere $key/1)" = 404 ]
    [ "$(post /ok $key/1) $(post /ok $key/1) $(post /ok $key/2)" = '200 200 200' ]
    key=00000000-0000-4000-8000-000000000004/1
    [ "$(post /flaky $key) $(post /flaky $key) $(post /flaky $key)" = '500 500 200' ]
    key=00000000-0000-4000-8000-000000000005/1
    [ "$(post /limited $key) $(post /limited $key) $(post /gone $key) $(post /broken $key)" = '429 200 404 500' ]
    [ "$(curl -s --noproxy '*' "$url/stats" | jq -c '[.requests, .effects, .repeated, .failed]')" = '[10,4,1,5]' ]
    kill $pid
    wait $pid
}

# What the handler does where there is nothing to call.
@test "an invocation that is no function dies at once, one whose service is away is tried again" {
    local dir
    dir=$(dirname "$MR_BIN")/examples/cyclotron
    sql "select millrace.enqueue('invocation', '{}', queue => 'none', state => '{\"step\": 1}'),
                millrace.enqueue('invocation', '{\"url\": \"/ok\"}', queue => 'none', state => 'no JSON'),
                millrace.enqueue('invocation', '{\"url\": \"/ok\", \"headers\": {\"a\": 1}}', queue => 'none', state => '{\"step\": 1, \"tries\": 4}', max_attempts => 1)"
    CYCLOTRON_SERVICE=http://127.0.0.1:1 "$MR_BIN" work none --plugin "$dir/invoke.so" --until-empty --breaker-failures 0 2>/dev/null
    run -0 sql "select string_agg(error, '; ' order by id) from millrace.dead_letters where queue = 'none'"
    [ "$output" = 'no function: url or step is missing; no function: url or step is missing; the service gave no answer' ]
    [ "$(sql "select millrace.job(max(id)) #>> '{state,value,tries}' from millrace.dead_letters where queue = 'none'")" = 5 ]
}
