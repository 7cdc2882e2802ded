#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# examples/cyclotron: its parts one by one. What they do together is tests/fault/cyclotron.bats, the page in SQL is tests/sql/cyclotron.sql.

bats_require_minimum_version 1.5.0
load ../lib/server
load ../lib/example

setup_file() { fresh_db; }
teardown_file() { drop_db; }

@test "numbers that are none are refused, and parts that are not there" {
    local settings
    for settings in INVOCATIONS=many INVOCATIONS=0 INVOCATIONS=1500 INVOCATIONS=-1000 PARTS=none 'PARTS=life none' 'PARTS=life;ls'; do
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

# Lines of the load, as the story makes them.
invocations()
{
    sql "select load.invocation(n, '/ok', 1, null, '{}') from generate_series($1, $2) n"
}

@test "the producer creates what is given to it, in chunks, and refuses what is no invocation" {
    local produce
    produce=$(dirname "$MR_BIN")/examples/cyclotron/produce
    psql -X -q -v ON_ERROR_STOP=1 -f "$MR_ROOT/examples/cyclotron/cyclotron.sql" -f "$MR_ROOT/examples/cyclotron/load.sql"
    run -2 "$produce" many
    [ "$output" = 'usage: produce [CHUNK] <INVOCATIONS' ]
    run -2 "$produce" 0
    run -2 "$produce" 10001
    run -2 "$produce" 1 2
    run -0 "$produce" </dev/null
    [ "$output" = 'created 0, in doubt 0 of which 0 were in' ]
    invocations 1 25 >"$BATS_TEST_TMPDIR/lines"
    run -0 "$produce" 10 <"$BATS_TEST_TMPDIR/lines"
    [ "$output" = 'created 25, in doubt 0 of which 0 were in' ]
    # the same as bulk_create_jobs makes of them
    invocations 26 26 >"$BATS_TEST_TMPDIR/line"
    "$produce" <"$BATS_TEST_TMPDIR/line"
    sql "select cyclotron.bulk_create_jobs(jsonb_build_array('$(cat "$BATS_TEST_TMPDIR/line")'::jsonb || '{\"ref\": \"00000000-0000-4000-8000-0000000000ff\"}'))"
    run -0 sql "select count(distinct (team_id, function_id, priority, vm_state, blob, parameters, metadata)::text), count(*), min(octet_length(vm_state)) > 2600, min(octet_length(blob))
                  from cyclotron.jobs where queue_name = 'hog' and ref in (load.ref(26), load.ref(255))"
    [ "$output" = '1|2|t|1600' ]
    run -1 "$produce" <<<'{"team_id": 1}'
    [ "${lines[0]}" = 'produce: no invocation: {"team_id": 1}' ]
    run -1 "$produce" <<<'hello'
    MILLRACE_DSN='host=/nowhere' run -1 "$produce" </dev/null
    [[ $output == 'produce: cannot connect'* ]]
    [ "$(sql "select string_agg(r, ' ' order by r) from cyclotron.known_refs(array[load.ref(1), load.ref(25), load.ref(27)]) r")" = "$(sql 'select load.ref(1)') $(sql 'select load.ref(25)')" ]
}

# Nobody knows how far it got: the server is killed under it, again and again.
@test "a producer whose server is killed creates every invocation once" {
    local produce
    produce=$(dirname "$MR_BIN")/examples/cyclotron/produce
    private_server killed
    "$MR_BIN" migrate >/dev/null
    psql -X -q -v ON_ERROR_STOP=1 -f "$MR_ROOT/examples/cyclotron/cyclotron.sql" -f "$MR_ROOT/examples/cyclotron/load.sql"
    invocations 0 2999 >"$BATS_TEST_TMPDIR/lines"
    "$produce" 10 <"$BATS_TEST_TMPDIR/lines" >"$BATS_TEST_TMPDIR/out" 2>&1 3>&- &
    local producer=$! n
    for n in 300 900 1500; do
        created() { [ "$(sql "select millrace.depth('hog')")" -ge "$n" ]; }
        wait_until 60 created
        "$MR_ROOT/tools/pgserver" crash "$MR_SERVER"
        "$MR_ROOT/tools/pgserver" restart "$MR_SERVER"
    done
    wait $producer || { cat "$BATS_TEST_TMPDIR/out"; return 1; }
    show "$(cat "$BATS_TEST_TMPDIR/out")"
    [[ $(cat "$BATS_TEST_TMPDIR/out") == 'created 3000, in doubt '* ]]
    [ "$(sql "select count(*), count(distinct ref) from millrace.jobs where queue = 'hog'")" = '3000|3000' ]
    "$MR_ROOT/tools/pgserver" remove "$MR_SERVER"
}

@test "without Swift the part payloads names it with the remedy, and goes on" {
    mkdir "$BATS_TEST_TMPDIR/python"
    echo 'raise ImportError' >"$BATS_TEST_TMPDIR/python/swift.py"
    PYTHONPATH=$BATS_TEST_TMPDIR/python run -1 "$MR_ROOT/tools/s3server" there
    [ "${lines[0]}" = 's3server: OpenStack Swift is not installed' ]
    PYTHONPATH=$BATS_TEST_TMPDIR/python INVOCATIONS=1000 PARTS=payloads proves cyclotron 4
    [[ $output == *'S3: skipped'*'OpenStack Swift is not installed'*'hint: run tools/deps test'* ]]
}

@test "s3server refuses what is no directory of its own, and words that it does not know" {
    run -2 "$MR_ROOT/tools/s3server"
    run -2 "$MR_ROOT/tools/s3server" dance "$BATS_TEST_TMPDIR"
    touch "$BATS_TEST_TMPDIR/something"
    "$MR_ROOT/tools/s3server" remove "$BATS_TEST_TMPDIR"
    [ -e "$BATS_TEST_TMPDIR/something" ]
    "$MR_ROOT/tools/s3server" there || skip 'OpenStack Swift is not installed: tools/deps test'
    run -1 "$MR_ROOT/tools/s3server" start "$BATS_TEST_TMPDIR"
    [[ $output == *'is not empty and holds no server'* ]]
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
