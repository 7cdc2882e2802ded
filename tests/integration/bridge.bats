#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# `millrace serve --roles bridge`: a stream of a real Redis into jobs and functions, each entry once; odd entries, poison, trouble with
# Redis, reload, metrics.

bats_require_minimum_version 1.5.0
load ../lib/server
load ../lib/daemon
load ../lib/redis

setup_file()
{
    fresh_db
    sql "create table effect (id text, data jsonb)"
    sql "create function ingest(entries jsonb[]) returns void language plpgsql as \$\$
         begin
           if exists (select from unnest(entries) e where e -> 'data' ->> 'n' = 'poison') then
             raise exception 'poison in a batch of %', cardinality(entries);
           end if;
           insert into effect select e ->> 'id', e -> 'data' from unnest(entries) e;
         end \$\$"
}

teardown_file()
{
    drop_db
}

setup()
{
    cd "$BATS_TEST_TMPDIR" || return
    stream=s$BATS_TEST_NUMBER
    sql 'truncate effect'
    group=millrace
    redis_new
}

teardown()
{
    end_daemons
    redis_stop
}

# A file with one bridge, whose further keys are "$@".
config()
{
    printf 'bridge b%s { redis = "%s" stream = "%s" %s }\n' "$BATS_TEST_NUMBER" "$(redis_address)" "$stream" "$*" >conf
}

bridge()
{
    daemon "${1:-bridge}" serve -c conf --roles bridge
    wait_until 20 logged "${1:-bridge}" serve.ready
}

effects_are()
{
    [ "$(sql 'select count(*) from effect')" -eq "$1" ]
}

# Everything read, nothing pending.
settled()
{
    [ "$(redis xpending "$stream" "$group" | head -1)" = 0 ]
}

stop()
{
    signal "$1" TERM
    ended "$1"
    [ "$status" -eq 0 ]
}

@test "entries become jobs, in order, acknowledged after the commit" {
    config 'queue = "mail" kind = "send"'
    redis_fill "$stream" 1 1200
    bridge
    wait_until 20 jobs_are mail available 1200
    wait_until 10 settled
    [ "$(sql "select count(*) from millrace.jobs where queue = 'mail' and kind = 'send' and ref ~ '^[0-9]+-[0-9]+$' and (args ->> 'n')::int between 1 and 1200")" -eq 1200 ]
    [ "$(sql "select bool_and(n = o) from (select (args ->> 'n')::int as n, row_number() over (order by id) as o from millrace.jobs where queue = 'mail') x")" = t ]
    redis xadd "$stream" '*' n late kind k
    wait_until 10 jobs_are mail available 1201
    stop bridge
    logged bridge 'bridge.ended: ended .*applied=1201 repeated=0 dead=0'
    settled
}

@test "a function gets the batches; a second bridge shares the stream" {
    config 'sql = "ingest" group = "writer" batch = 50'
    group=writer
    redis_fill "$stream" 1 2000
    bridge one
    sed -i 's/{/{ consumer = "two"/' conf
    bridge two
    wait_until 20 effects_are 2000
    wait_until 10 settled
    stop one
    stop two
    [ "$(sql "select count(distinct data ->> 'n') from effect")" -eq 2000 ]
    [ "$(redis xinfo consumers "$stream" writer | grep -c ^name)" -eq 2 ]
}

@test "odd entries: bytes that are no text, names that repeat, empty ones, large ones" {
    config 'queue = "odd" json = ""'
    run "$MR_BIN" serve -c conf --check
    [ "$status" -eq 1 ]
    [[ $output == *'"json" is empty'* ]]
    config 'queue = "odd"'
    printf 'XADD %s 1-1 bin "\\xff\\x00\\xfe" text "gr\\xc3\\xbc\\xc3\\x9fe\\n\\"\\\\"\n' "$stream" | redis
    printf 'XADD %s 1-2 a 1 b 2 a 3 a "\\x00"\n' "$stream" | redis
    printf 'XADD %s 1-3 "" ""\n' "$stream" | redis
    printf 'XADD %s 1-4 "\\xff" x "nu\\x00l" y\n' "$stream" | redis
    printf 'XADD %s 1-5 cut "\\xed\\xa0\\x80" over "\\xc0\\xaf" end "\\xe2\\x82"\n' "$stream" | redis
    head -c 700000 /dev/zero | tr '\0' x | redis -x xadd "$stream" 1-6 big
    bridge
    wait_until 20 jobs_are odd available 6
    run sql "select args from millrace.jobs where queue = 'odd' and ref <> '1-6' order by ref"
    [ "${lines[0]}" = '{"bin": {"base64": "/wD+"}, "text": "grüße\n\"\\"}' ]
    [ "${lines[1]}" = '{"a": ["1", "3", {"base64": "AA=="}], "b": "2"}' ]
    [ "${lines[2]}" = '{"": ""}' ]
    [ "${lines[3]}" = '{"base64:/w==": "x", "base64:bnUAbA==": "y"}' ]
    [ "${lines[4]}" = '{"cut": {"base64": "7aCA"}, "end": {"base64": "4oI="}, "over": {"base64": "wK8="}}' ]
    [ "$(sql "select length(args ->> 'big') from millrace.jobs where queue = 'odd' and ref = '1-6'")" -eq 700000 ]
}

@test "poison goes to the dead letters with its id, its batch does not wait" {
    config 'sql = "ingest" queue = "sink"'
    redis_fill "$stream" 1 400
    redis xadd "$stream" '*' n poison
    redis_fill "$stream" 401 700
    redis xadd "$stream" '*' n poison more yes
    redis_fill "$stream" 701 800
    bridge
    wait_until 30 effects_are 800
    wait_until 10 settled
    [ "$(sql "select count(*) from millrace.dead_letters where queue = 'sink' and error like 'poison in a batch of 1 %' and ref = meta ->> 'entry' and meta ->> 'stream' = '$stream'")" -eq 2 ]
    [ "$(sql "select args from millrace.dead_letters where queue = 'sink' and args ? 'more'")" = '{"n": "poison", "more": "yes"}' ]
    [ "$(count_logged bridge 'bridge.dead: .*SQLSTATE P0001.* entry=')" -eq 2 ]
    # and can be brought back as jobs
    [ "$(sql "select millrace.replay_all('sink')")" -eq 2 ]
    jobs_are sink available 2
}

@test "an entry without the JSON that is expected, or too large for a job, is poison" {
    config 'queue = "parsed" json = "data"'
    redis xadd "$stream" '*' data '{"a": [1, 2]}' >/dev/null
    redis xadd "$stream" '*' data '{"a": ' >/dev/null
    redis xadd "$stream" '*' other '{}' >/dev/null
    printf 'XADD %s * data "\\xff"\n' "$stream" | redis >/dev/null
    redis xadd "$stream" '*' data '{"z": "\u0000"}' >/dev/null
    { printf '{"big": "'; head -c 1500000 /dev/urandom | base64 -w 0; printf '"}'; } | redis -x xadd "$stream" '*' data >/dev/null
    redis xadd "$stream" '*' data '[]' >/dev/null
    bridge
    wait_until 30 jobs_are parsed available 2
    wait_until 10 settled
    [ "$(sql "select string_agg(args::text, ' ' order by id) from millrace.jobs where queue = 'parsed' and status = 'available'")" = '{"a": [1, 2]} []' ]
    run sql "select regexp_replace(error, '[0-9]+-[0-9]+', 'ID') from millrace.dead_letters where queue = 'parsed' order by ref"
    [[ ${lines[0]} == *'(SQLSTATE 22P02)' ]]
    [[ ${lines[1]} == "entry ID has no text in the field 'data' (SQLSTATE 22023)" ]]
    [[ ${lines[2]} == "entry ID has no text in the field 'data' (SQLSTATE 22023)" ]]
    [[ ${lines[3]} == *'(SQLSTATE 22P05)' ]]
    [[ ${lines[4]} == *'limit is 1048576'* ]]
}

@test "an entry of more than 64 MiB becomes a dead letter that says how large it was, its neighbours do not wait" {
    config 'queue = "huge" json = "data"'
    redis config set appendonly no # the disk is no part of this
    redis xadd "$stream" 1-1 data 1
    head -c 67200000 /dev/zero | tr '\0' x | redis -x xadd "$stream" 1-2 data
    redis xadd "$stream" 1-3 data 3
    bridge
    wait_until 60 jobs_are huge available 2
    wait_until 20 settled
    [ "$(sql "select string_agg(args::text, ',' order by ref) from millrace.jobs where queue = 'huge' and status = 'available'")" = 1,3 ]
    # the bytes of its field's name count
    [ "$(sql "select ref, args, error from millrace.dead_letters where queue = 'huge'")" = '1-2|{"bytes": 67200004}|the entry is larger than 64 MiB' ]
}

@test "entries of a consumer that died are taken over; one that was deleted meanwhile is let go" {
    config 'sql = "ingest" reclaim = "1s"'
    redis xgroup create "$stream" millrace 0 mkstream
    redis_fill "$stream" 1 100
    redis xreadgroup group millrace ghost count 100 streams "$stream" '>' >/dev/null
    redis xdel "$stream" "$(redis xrange "$stream" - + count 1 | head -1)"
    bridge
    wait_until 20 effects_are 99
    wait_until 10 settled
    logged bridge 'bridge.reclaimed'
}

@test "its own pending entries come first after a crash, and those whose acknowledgement was lost have no second effect" {
    config 'sql = "ingest" consumer = "me"'
    redis xgroup create "$stream" millrace 0 mkstream
    redis_fill "$stream" 1 300
    redis xreadgroup group millrace me count 300 streams "$stream" '>' >/dev/null
    # half of them were applied before the crash
    ids=$(redis xrange "$stream" - + count 150 | grep -E '^[0-9]+-[0-9]+$' | paste -sd,)
    [ "$(sql "select cardinality(millrace.bridge_admit('b$BATS_TEST_NUMBER', '$stream', 'millrace', '{$ids}', true))")" -eq 150 ]
    bridge
    wait_until 20 settled
    effects_are 150
    stop bridge
    logged bridge 'bridge.ended: ended .*applied=150 repeated=150'
    # the group set back by hand: Redis gives everything again
    redis xgroup setid "$stream" millrace 0
    redis_fill "$stream" 301 310
    bridge again
    wait_until 20 effects_are 160
    wait_until 20 settled
    stop again
    logged again 'bridge.ended: ended .*applied=10 repeated=300'
    # unless that is what is wanted
    sql "select millrace.bridge_forget('b$BATS_TEST_NUMBER')"
    redis xgroup setid "$stream" millrace 0
    bridge third
    wait_until 20 effects_are 470
    stop third
}

@test "the group is made again after FLUSHALL, and it says so" {
    config 'sql = "ingest"'
    redis xadd "$stream" 5-1 n 1
    bridge
    wait_until 10 effects_are 1
    redis flushall
    wait_until 10 logged bridge 'bridge.group: the consumer group was gone'
    logged bridge 'bridge.restarted'
    # ids from before, of entries that are new
    redis xadd "$stream" 5-1 n 2
    wait_until 10 effects_are 2
    redis xgroup destroy "$stream" millrace
    redis xadd "$stream" 5-2 n 3
    wait_until 10 effects_are 3
    wait_until 10 settled
    [ "$(sql "select string_agg(data ->> 'n', ',' order by data ->> 'n') from effect")" = 1,2,3 ]
}

@test "Redis goes and comes back, is out of memory, is a replica, refuses the login" {
    config 'sql = "ingest"'
    redis_fill "$stream" 1 100
    bridge
    wait_until 10 effects_are 100
    redis_kill
    wait_until 10 logged bridge 'bridge.unreachable'
    redis_start
    redis_fill "$stream" 101 200
    wait_until 20 effects_are 200
    wait_until 10 logged bridge 'bridge.recovered'
    # a replica refuses what writes
    redis replicaof 127.0.0.1 1
    wait_until 15 logged bridge 'bridge.(held|disconnected): .*(READONLY|not the one)'
    redis replicaof no one
    redis_fill "$stream" 201 300
    wait_until 20 effects_are 300
    # no memory: the stream is not there and cannot be made
    redis config set maxmemory 1
    redis flushall
    wait_until 15 logged bridge 'bridge.held: Redis refuses: OOM'
    redis config set maxmemory 0
    redis_fill "$stream" 301 400
    wait_until 20 effects_are 400
    redis_kill
    REDISCLI_AUTH=geheim redis_start --requirepass geheim
    wait_until 15 logged bridge 'bridge.unreachable: .*NOAUTH'
    REDISCLI_AUTH=geheim redis config set requirepass ''
    redis_fill "$stream" 401 500
    wait_until 25 effects_are 500
    wait_until 10 settled
    [ "$(sql "select count(distinct data ->> 'n') from effect")" -eq 500 ]
}

@test "a key that is no stream, and a function that is missing, are waited for" {
    redis set "$stream" text
    config 'sql = "not_yet"'
    bridge
    wait_until 10 logged bridge 'bridge.held: Redis refuses: WRONGTYPE'
    redis del "$stream"
    redis_fill "$stream" 1 50
    wait_until 20 logged bridge 'bridge.held: entries cannot be applied: there is no function not_yet'
    [ "$(sql "select count(*) from millrace.dead_letters where queue = 'b$BATS_TEST_NUMBER'")" -eq 0 ]
    sql "create function not_yet(jsonb[]) returns void language sql as 'select ingest(\$1)'"
    wait_until 20 effects_are 50
    wait_until 10 settled
}

@test "a full queue holds the bridge back, and nothing is lost" {
    sql "select millrace.set_queue('narrow', '{\"depth_limit\": 100}')"
    config 'queue = "narrow" batch = 50'
    redis_fill "$stream" 1 300
    bridge
    wait_until 20 logged bridge "bridge.held: entries cannot be applied: queue 'narrow' is full"
    [ "$(sql "select millrace.depth('narrow')")" -lt 300 ]
    sql "select millrace.set_queue('narrow', '{\"depth_limit\": null}')"
    wait_until 20 jobs_are narrow available 300
    wait_until 10 settled
}

@test "metrics: lag, pending, outcomes; readyz says what is wrong" {
    token=a-token-of-this-test-alone-and-long-enough
    hash=$(printf '%s' "$token" | "$MR_BIN" token --hash)
    config 'sql = "ingest" queue = "sink"'
    printf 'http { listen = "127.0.0.1:0" token ops { role = "reader" hash = "%s" } }\n' "$hash" >>conf
    redis_fill "$stream" 1 10
    redis xadd "$stream" '*' n poison
    daemon bridge serve -c conf --roles bridge,http
    wait_until 20 logged bridge serve.ready
    port=$(sed -n 's/.*http.listening.*port=\([0-9]*\).*/\1/p' "$BATS_TEST_TMPDIR/bridge.log")
    metric() { curl -sf -H "Authorization: Bearer $token" "http://127.0.0.1:$port/metrics" | sed -n "s/^$1 //p"; }
    wait_until 10 effects_are 10
    wait_until 15 settled
    [ "$(metric 'millrace_bridge_connected{bridge="b'"$BATS_TEST_NUMBER"'"}')" = 1 ]
    [ "$(metric 'millrace_bridge_entries_total{bridge="b'"$BATS_TEST_NUMBER"'",outcome="applied"}')" = 10 ]
    [ "$(metric 'millrace_bridge_entries_total{bridge="b'"$BATS_TEST_NUMBER"'",outcome="dead"}')" = 1 ]
    lag_is() { [ "$(metric 'millrace_bridge_stream_length{bridge="b'"$BATS_TEST_NUMBER"'"}')" = 11 ] && [ "$(metric 'millrace_bridge_lag{bridge="b'"$BATS_TEST_NUMBER"'"}')" = 0 ] && [ "$(metric 'millrace_bridge_pending{bridge="b'"$BATS_TEST_NUMBER"'"}')" = 0 ]; }
    wait_until 15 lag_is
    curl -s -H "Authorization: Bearer $token" "http://127.0.0.1:$port/metrics" | promtool check metrics
    redis_stop
    not_ready() { curl -s "http://127.0.0.1:$port/readyz" | grep -q "bridge b$BATS_TEST_NUMBER: "; }
    wait_until 10 not_ready
    [ "$(metric 'millrace_bridge_connected{bridge="b'"$BATS_TEST_NUMBER"'"}')" = 0 ]
}

@test "metrics: what a bridge that is held has not read is its lag, and it grows" {
    token=a-token-of-this-test-alone-and-long-enough
    config 'sql = "never_made" batch = 10'
    printf 'http { listen = "127.0.0.1:0" token ops { role = "reader" hash = "%s" } }\n' "$(printf '%s' "$token" | "$MR_BIN" token --hash)" >>conf
    redis_fill "$stream" 1 50
    daemon bridge serve -c conf --roles bridge,http
    wait_until 20 logged bridge 'bridge.held: entries cannot be applied: there is no function never_made'
    port=$(sed -n 's/.*http.listening.*port=\([0-9]*\).*/\1/p' "$BATS_TEST_TMPDIR/bridge.log")
    behind_by() { curl -sf -H "Authorization: Bearer $token" "http://127.0.0.1:$port/metrics" | grep -x "millrace_bridge_lag{bridge=\"b$BATS_TEST_NUMBER\"} $1"; }
    wait_until 40 behind_by 40
    redis_fill "$stream" 51 100
    wait_until 40 behind_by 90
}

@test "a reload adds, changes and removes bridges" {
    config 'sql = "ingest"'
    bridge
    redis_fill "$stream" 1 10
    wait_until 10 effects_are 10
    printf 'bridge more { redis = "%s" stream = "%s2" sql = "ingest" }\n' "$(redis_address)" "$stream" >>conf
    redis_fill "${stream}2" 11 20
    signal bridge HUP
    wait_until 10 effects_are 20
    sed -i 1d conf
    signal bridge HUP
    wait_until 10 logged bridge "bridge.ended.*bridge=b$BATS_TEST_NUMBER"
    redis_fill "$stream" 21 30
    redis_fill "${stream}2" 31 40
    wait_until 10 effects_are 30
    printf 'bridge broken { redis = "http://x" stream = "s" sql = "f" }\n' >conf
    signal bridge HUP
    wait_until 10 logged bridge 'serve.reload_refused: .*not the address of a Redis server'
    redis_fill "${stream}2" 41 50
    wait_until 10 effects_are 40
    stop bridge
}
