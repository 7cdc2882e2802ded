#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# HTTP on several shards, each on a server of its own: jobs in and out, looking at all and at one, changes, and one of them down meanwhile.

# shellcheck disable=SC2030,SC2031,SC2154 # bats runs a test in a subshell; code, body, servers and addresses are set elsewhere
bats_require_minimum_version 1.5.0
load ../lib/server
load ../lib/shards
load ../lib/daemon
load ../lib/api
load ../lib/shards_api

setup_file() { three_shards; }
teardown_file() { three_shards_end; }

setup()
{
    three_shards_again
    queue=q$BATS_TEST_NUMBER
    cd "$BATS_TEST_TMPDIR" || return
    api_up
    wait_until 30 shards_are '["active","active","active"]'
}

teardown()
{
    end_daemons
}

put_jobs()
{
    local i
    for i in 0 1 2; do
        on "$i" "select millrace.enqueue('k', queue => '$queue') from generate_series(1, $1)" >/dev/null
    done
}

@test "jobs go where the library has them, and requests about one go to its shard" {
    post /api/v1/jobs "{\"kind\": \"k\", \"queue\": \"$queue\", \"tenant\": \"acme\"}"
    says 201
    id=$(jq .id <<<"$body")
    [ "$(shard_of "$id")" -eq "$(shard_of "$("$MR_BIN" enqueue k --queue "$queue" --tenant acme)")" ]
    [ "$(on "$(shard_of "$id")" "select count(*) from millrace.list_jobs('{\"queue\": \"$queue\"}') l, jsonb_array_elements(l -> 'jobs')")" -eq 2 ]
    for ((i = 0; i < 6; i++)); do
        post /api/v1/jobs "{\"kind\": \"k\", \"queue\": \"$queue\"}"
        shard_of "$(jq .id <<<"$body")"
    done | sort | uniq -c | awk '{print $1, $2}' >turns
    [ "$(paste -sd, turns)" = '2 0,2 1,2 2' ]
    api GET "/api/v1/jobs/$id"
    says 200 .tenant '"acme"'
    api DELETE "/api/v1/jobs/$id"
    says 200
    api GET "/api/v1/jobs/$id/outcome?wait_ms=5000"
    says 200 .status '"cancelled"'
    api GET /api/v1/jobs/9000000000000000
    says 404
    api GET /api/v1/jobs/x
    says 400
}

@test "a job with a key goes to one shard, an array too, a stream where it is told to" {
    post /api/v1/jobs "{\"kind\": \"k\", \"queue\": \"$queue\", \"unique_key\": \"u\"}"
    first=$(jq .id <<<"$body")
    post /api/v1/jobs "{\"kind\": \"k\", \"queue\": \"$queue\", \"unique_key\": \"u\"}"
    [ "$(jq .id <<<"$body")" = "$first" ]
    other=$((((first >> 48) + 1) % 3))
    post "/api/v1/jobs?shard=$other" "{\"kind\": \"k\", \"queue\": \"$queue\", \"unique_key\": \"u\"}"
    says 400
    [[ $body == *"belongs to shard $((first >> 48)), not to shard $other"* ]]
    post "/api/v1/jobs?shard=$other" "{\"kind\": \"k\", \"queue\": \"$queue\", \"tenant\": \"acme\"}"
    says 201
    [ "$(shard_of "$(jq .id <<<"$body")")" -eq "$other" ]
    post /api/v1/jobs "{\"kind\": \"k\", \"queue\": \"$queue\", \"unique\\u005fkey\": \"u\"}"
    says 400
    [[ $body == *'written with escapes'* ]]
    a=$(tenant_of 0) b=$(tenant_of 2)
    post /api/v1/jobs "[{\"kind\": \"k\", \"tenant\": \"$a\"}, {\"kind\": \"k\"}, {\"kind\": \"k\", \"tenant\": \"$a\"}]"
    says 201 '[.ids[] / 281474976710656 | floor]' '[0,0,0]'
    post /api/v1/jobs "[{\"kind\": \"k\", \"tenant\": \"$a\"}, {\"kind\": \"k\", \"tenant\": \"$b\"}]"
    says 400
    [[ $body == *'belong to different shards'* ]]
    api POST /api/v1/jobs -H 'Content-Type: application/json' -H 'Idempotency-Key: once' -d '{"kind": "k"}'
    says 201
    first=$(jq -c .ids <<<"$body")
    api POST /api/v1/jobs -H 'Content-Type: application/json' -H 'Idempotency-Key: once' -d '{"kind": "k"}'
    says 201 .ids "$first"
    api POST '/api/v1/jobs?shard=1' -H 'Content-Type: application/x-ndjson' --data-binary "{\"kind\": \"k\", \"queue\": \"$queue.stream\"}"
    says 201 .enqueued 1
    api GET "/api/v1/jobs?queue=$queue.stream"
    says 200 '[.jobs[].shard]' '[1]'
    api POST '/api/v1/jobs?shard=7' -H 'Content-Type: application/x-ndjson' --data-binary '{"kind": "k"}'
    says 404
}

@test "claims take from all shards, and their leases name them" {
    put_jobs 2
    for ((i = 0; i < 6; i++)); do
        post "/api/v1/queues/$queue/claim" '{"worker": "w"}'
        says 200 '.jobs | length' 1
        lease=$(jq -r .lease <<<"$body")
        id=$(jq '.jobs[0].id' <<<"$body")
        [[ $lease == "s$((id >> 48)):"* ]]
        post "/api/v1/leases/$lease/complete" '{}'
        says 200
    done
    post "/api/v1/queues/$queue/claim" '{"wait_ms": 100}'
    says 200 .jobs '[]'
    post "/api/v1/leases/${lease#*:}/complete" '{}'
    says 409 .error.code '"lease_lost"'
    post /api/v1/leases/s9:x/complete '{}'
    says 409 .error.code '"lease_lost"'
}

@test "a claim that waits is woken by whatever shard, and one that left takes nothing" {
    curl -s -m 1 -H 'Authorization: Bearer admin-token' -H 'Content-Type: application/json' -d '{"wait_ms": 30000}' \
        "$api/api/v1/queues/$queue/claim" || true # it leaves
    for i in 2 1 0; do
        curl -s -H 'Authorization: Bearer admin-token' -H 'Content-Type: application/json' -d '{"wait_ms": 30000}' \
            "$api/api/v1/queues/$queue/claim" >claimed &
        on "$i" "select millrace.enqueue('k', queue => '$queue')" >/dev/null
        wait $!
        [ "$(jq '[.jobs[].id / 281474976710656 | floor]' -c claimed)" = "[$i]" ]
        [ "$(jq '.jobs[0].attempt' claimed)" -eq 1 ]
    done
}

@test "what is looked at is that of all shards, or of the one that is chosen" {
    put_jobs 3
    on 1 "select millrace.enqueue('k', queue => '$queue')" >/dev/null
    available()
    {
        api GET "$1"
        [ "$(jq "[.queues[] | select(.queue == \"$queue\") | .available]" -c <<<"$body")" = "[$2]" ]
    }
    wait_until 20 available /api/v1/overview 10
    says 200 '[.shards[] | [.shard, .status]]' '[[0,"active"],[1,"active"],[2,"active"]]'
    wait_until 20 available /api/v1/queues 10
    wait_until 20 available '/api/v1/overview?shard=1' 4
    api GET "/api/v1/queues/$queue"
    says 200 .stats.available 10
    api GET '/api/v1/overview?shard=9'
    says 404
    api GET '/api/v1/overview?shard=x'
    says 400
    api GET "/api/v1/jobs?queue=$queue&limit=2"
    says 200 '[([.jobs[].shard] | sort), .complete]' '[[0,0,1,1,2,2],false]'
    ids=$(jq '.jobs[].id' <<<"$body")
    while next=$(jq -r '.next // empty' <<<"$body") && [ -n "$next" ]; do
        api GET "/api/v1/jobs?queue=$queue&limit=2&after=$next"
        says 200
        ids+=$'\n'$(jq '.jobs[].id' <<<"$body")
    done
    [ "$(grep -c . <<<"$ids")" -eq 10 ]
    [ "$(sort -u <<<"$ids" | grep -c .)" -eq 10 ]
    api GET "/api/v1/jobs?queue=$queue&after=nonsense"
    says 400
    api GET "/api/v1/jobs?queue=$queue&shard=1"
    says 200 '[.jobs | length, .[0].shard]' '[4,null]'
    api GET /api/v1/system
    says 200 '[keys, [.shards[] | [.shard, .status, .result.connections.max, (.result.disk | type)]]]' \
        '[["shards"],[[0,"active",40,"object"],[1,"active",40,"object"],[2,"active",40,"object"]]]'
    api GET /api/v1/doctor
    says 200 '[.shards[] | .result.checks | length > 10]' '[true,true,true]'
    for path in system doctor history; do
        api GET "/api/v1/$path?shard=2"
        says 200
    done
    for path in workers schedules batches dead dead/groups; do
        api GET "/api/v1/$path"
        says 200 '.shards | length' 3
    done
    api GET /metrics
    says 200
    for i in 0 1 2; do
        grep -q "^millrace_database_up{shard=\"$i\"} 1$" <<<"$body"
        grep -q "^millrace_queue_depth{shard=\"$i\",queue=\"$queue\"} [34]$" <<<"$body"
    done
    curl -s -m 3 -H 'Authorization: Bearer admin-token' "$api/api/v1/events" >events || true
    [ "$(sed -n 's/^data: //p' events | head -1 | jq -c "[.shards[].shard], [.queues[] | select(.queue == \"$queue\") | .available]" | paste -sd' ')" = '[0,1,2] [10]' ]
}

@test "history is that of all shards together, and of those that can be asked" {
    put_jobs 2
    on 1 "select millrace.enqueue('k', queue => '$queue.one')" >/dev/null
    last_is()
    {
        api GET "$1"
        [ "$(jq -c '.points[-1].available' <<<"$body")" = "$2" ]
    }
    wait_until 60 last_is "/api/v1/history?queue=$queue&minutes=1" 6
    says 200 '[(.points | length), .step_seconds, [.shards[].status]]' '[6,10,["active","active","active"]]'
    [ "$(jq '[.points[] | keys[]] | index("shard")' <<<"$body")" = null ]
    wait_until 60 last_is "/api/v1/history?queue=$queue&minutes=1&shard=1" 2
    wait_until 60 last_is "/api/v1/history?queue=$queue.one&minutes=1" 1 # the others do not have it
    api GET /api/v1/history
    says 200 '[.queue, (.points | length)]' '[null,180]'
    api GET /api/v1/history?queue=nowhere
    says 404
    api GET /api/v1/history?minutes=9999
    says 400
    server crash 1 >/dev/null
    wait_until 30 shards_are '["active","down","active"]'
    wait_until 60 last_is "/api/v1/history?queue=$queue&minutes=1" 4
    says 200 '[.shards[1].status, .shards[1].error]' '["down","shard 1 cannot be reached"]'
    api GET "/api/v1/history?queue=$queue.one"
    says 503 .error.message '"shard 1 cannot be reached"'
    server restart 1 >/dev/null
    wait_until 60 shards_are '["active","active","active"]'
}

@test "a batch goes to one shard, and its id leads to it" {
    local ids=() id i
    for i in 1 2 3 4 5 6; do
        post /api/v1/batches '{}'
        says 201
        ids+=("$(jq .id <<<"$body")")
    done
    [ "$(for id in "${ids[@]}"; do shard_of "$id"; done | sort | uniq -c | awk '{print $1, $2}' | paste -sd,)" = '2 0,2 1,2 2' ] # in turn
    post /api/v1/batches "{\"label\": \"monthly $queue\", \"on_end\": {\"kind\": \"done\", \"queue\": \"$queue.end\"}}"
    says 201
    id=$(jq .id <<<"$body")
    post /api/v1/batches "{\"label\": \"monthly $queue\"}"
    [ "$(shard_of "$(jq .id <<<"$body")")" -eq "$(shard_of "$id")" ]
    post "/api/v1/batches/$id/jobs" "[{\"kind\": \"k\", \"queue\": \"$queue\"}, {\"kind\": \"k\", \"queue\": \"$queue\", \"tenant\": \"t\"}]"
    says 201 '[.ids[] / 281474976710656 | floor]' "[$(shard_of "$id"),$(shard_of "$id")]"
    post "/api/v1/batches/$id/seal" ''
    says 200
    post "/api/v1/queues/$queue/claim" '{"max_jobs": 2, "wait_ms": 5000}'
    says 200 '.jobs | length' 2
    post "/api/v1/leases/$(jq -r .lease <<<"$body")/complete" '{}'
    says 200
    completed()
    {
        api GET "/api/v1/batches/$id"
        [ "$(jq -r .status <<<"$body")" = completed ]
    }
    wait_until 30 completed
    says 200 .completed 2
    api GET "/api/v1/batches?label=monthly%20$queue"
    says 200 '[(.batches | length), (.batches[] | .shard)] | unique' "$(jq -c -n "[2, $(shard_of "$id")] | unique")"
    api GET "/api/v1/batches/$id?shard=$(shard_of "$id")"
    says 200 .completed 2
    api GET "/api/v1/batches/$id?shard=$((($(shard_of "$id") + 1) % 3))"
    says 404
    api GET /api/v1/batches/9100000000000000
    says 404 .error.message '"batch 9100000000000000 does not exist"'
    api GET /api/v1/batches/x
    says 400
    post '/api/v1/batches?shard=2' '{}'
    says 201 '.id / 281474976710656 | floor' 2
    server crash 1 >/dev/null
    wait_until 30 shards_are '["active","down","active"]'
    for i in 1 2 3 4; do
        post /api/v1/batches "{\"label\": \"$queue $i\"}"
        says 201
        [ "$(shard_of "$(jq .id <<<"$body")")" -ne 1 ]
    done
    for id in "${ids[@]}"; do
        [ "$(shard_of "$id")" -ne 1 ] || break
    done
    api GET "/api/v1/batches/$id"
    says 503 .error.message '"shard 1 cannot be reached"'
    api GET /api/v1/batches
    says 200 '[.shards[].status]' '["active","down","active"]'
    server restart 1 >/dev/null
    wait_until 60 shards_are '["active","active","active"]'
    api GET "/api/v1/batches/$id"
    says 200 .status '"open"'
}

@test "changes are made on all shards, or on the one that is chosen" {
    put_jobs 1
    api PATCH "/api/v1/queues/$queue" -H 'Content-Type: application/json' -d '{"paused": true, "settings": {"max_attempts": 1}}'
    says 200 .queue "\"$queue\""
    [ "$(sum_on "select count(*) from millrace.queues where queue = '$queue' and paused")" -eq 3 ]
    api PATCH "/api/v1/queues/$queue?shard=1" -H 'Content-Type: application/json' -d '{"paused": false}'
    says 200
    [ "$(sum_on "select count(*) from millrace.queues where queue = '$queue' and paused")" -eq 2 ]
    api PATCH "/api/v1/queues/$queue" -H 'Content-Type: application/json' -d '{"paused": false}'
    for i in 0 1 2; do
        post "/api/v1/queues/$queue/claim" '{}'
        lease=$(jq -r .lease <<<"$body") id=$(jq '.jobs[0].id' <<<"$body")
        post "/api/v1/leases/$lease/fail" "{\"id\": $id, \"error\": \"no luck\", \"retry\": false}"
        says 200
    done
    api GET "/api/v1/dead?queue=$queue"
    says 200 '[.jobs[].shard] | sort' '[0,1,2]'
    id=$(jq '.jobs[0].id' <<<"$body") other=$(jq '.jobs[1].id' <<<"$body")
    api GET "/api/v1/dead/groups?queue=$queue"
    says 200 '[.groups[].jobs] | add' 3
    post /api/v1/dead/replay "{\"ids\": [$id, $other]}"
    says 200 .replayed 2
    post /api/v1/dead/replay "{\"queue\": \"$queue\"}"
    says 200 .replayed 1
    post "/api/v1/queues/$queue/purge" ''
    says 200 .purged 3
    api PUT /api/v1/schedules/often -H 'Content-Type: application/json' -d '{"cron": "0 2 * * *", "kind": "k"}'
    says 200
    [ "$(on 0 'select count(*) from millrace.schedules')/$(on 1 'select count(*) from millrace.schedules')" = 1/0 ]
    api GET /api/v1/schedules
    says 200 '[.schedules[] | [.shard, .name]]' '[[0,"often"]]'
    api DELETE /api/v1/schedules/often
    says 200
    api DELETE "/api/v1/queues/$queue?shard=2"
    says 200
    api GET "/api/v1/queues/$queue"
    says 200 # two have it
    api DELETE "/api/v1/queues/$queue"
    says 200
    api GET "/api/v1/queues/$queue"
    says 404
}

@test "with a shard down the others go on, and everything says which it is" {
    put_jobs 1
    tenant=$(tenant_of 1)
    id=$(on 1 "select millrace.enqueue('k', queue => '$queue')")
    server crash 1 >/dev/null
    wait_until 30 shards_are '["active","down","active"]'
    says 200 '[.status, .shards[1].error]' '["ready","shard 1 cannot be reached"]'
    api GET /api/v1/overview
    says 200 '[.shards[].status]' '["active","down","active"]'
    [ "$(jq "[.queues[] | select(.queue == \"$queue\") | .available]" -c <<<"$body")" = '[2]' ]
    api GET "/api/v1/jobs?queue=$queue"
    says 200 '[([.jobs[].shard] | sort), .shards[1].error]' '[[0,2],"shard 1 cannot be reached"]'
    for path in system doctor; do
        api GET "/api/v1/$path"
        says 200 '[.shards[] | [.status, .error, .result != null]]' \
            '[["active",null,true],["down","shard 1 cannot be reached",false],["active",null,true]]'
    done
    api GET '/api/v1/overview?shard=1'
    says 503 .error.message '"shard 1 cannot be reached"'
    api GET "/api/v1/jobs/$id"
    says 503 .error.message '"shard 1 cannot be reached"'
    api GET /metrics
    grep -q '^millrace_database_up{shard="1"} 0$' <<<"$body"
    grep -q '^millrace_database_up{shard="2"} 1$' <<<"$body"
    post /api/v1/jobs "{\"kind\": \"k\", \"queue\": \"$queue\", \"tenant\": \"$tenant\"}"
    says 201
    [ "$(shard_of "$(jq .id <<<"$body")")" -ne 1 ]
    post /api/v1/jobs "{\"kind\": \"k\", \"queue\": \"$queue\", \"tenant\": \"$tenant\", \"unique_key\": \"u\"}"
    says 503
    [[ $body == *"the job's key belongs to shard 1: shard 1 cannot be reached"* ]]
    api POST /api/v1/jobs -H 'Content-Type: application/json' -H "Idempotency-Key: k" -d "{\"kind\": \"k\", \"tenant\": \"$tenant\"}"
    says 503
    for i in 1 2 3; do
        post "/api/v1/queues/$queue/claim" '{"wait_ms": 5000}'
        says 200 '.jobs | length' 1
    done
    post "/api/v1/queues/$queue/claim" '{"wait_ms": 100}'
    says 200 .jobs '[]'
    api PATCH "/api/v1/queues/$queue" -H 'Content-Type: application/json' -d '{"paused": true}'
    says 503 '[.error.message, [.shards[] | .result != null]]' '["shard 1 cannot be reached",[true,false,true]]'
    post /api/v1/dead/replay "{\"queue\": \"$queue\"}"
    says 503
    post /api/v1/dead/replay "{\"ids\": [1, $id]}"
    says 503 '[.error.message, .replayed]' '["shard 1 cannot be reached",0]'
    server restart 1 >/dev/null
    wait_until 60 shards_are '["active","active","active"]'
    api GET "/api/v1/jobs/$id"
    says 200 .status '"available"'
    api PATCH "/api/v1/queues/$queue" -H 'Content-Type: application/json' -d '{"paused": false}'
    says 200
    post "/api/v1/queues/$queue/claim" '{"wait_ms": 5000}'
    says 200 '[.jobs[].id / 281474976710656 | floor]' '[1]'
}

@test "while a shard joins, a key that is held stays where it is, and others move" {
    local ids=() moved=0 i id
    on 2 "select millrace.shard_change('draining')" >/dev/null
    wait_until 30 shards_are '["active","active","draining"]'
    for ((i = 0; i < 12; i++)); do
        post /api/v1/jobs "{\"kind\": \"k\", \"queue\": \"$queue\", \"unique_key\": \"m$i\"}"
        says 201
        ids+=("$(jq .id <<<"$body")")
        [ "$(shard_of "${ids[i]}")" -ne 2 ]
    done
    on 2 "select millrace.shard_change('joining')" >/dev/null
    wait_until 30 shards_are '["active","active","joining"]'
    for ((i = 0; i < 12; i++)); do
        post /api/v1/jobs "{\"kind\": \"k\", \"queue\": \"$queue\", \"unique_key\": \"m$i\"}"
        says 201 .id "${ids[i]}"
    done
    post /api/v1/jobs "[{\"kind\": \"k\", \"queue\": \"$queue\", \"tenant\": \"$(tenant_of 2)\", \"unique_key\": \"a\"}]"
    says 503
    [[ $body == *'a shard joins or drains'* ]]
    post "/api/v1/queues/$queue/purge" ''
    says 200 .purged 12
    for ((i = 0; i < 12; i++)); do
        post /api/v1/jobs "{\"kind\": \"k\", \"queue\": \"$queue\", \"unique_key\": \"m$i\"}"
        says 201
        id=$(jq .id <<<"$body")
        moved=$((moved + (id >> 48 == 2)))
    done
    [ "$moved" -gt 0 ]
    on 2 "select millrace.shard_change('active')" >/dev/null
    wait_until 30 shards_are '["active","active","active"]'
}

@test "a full shard is passed over" {
    tenant=$(tenant_of 0)
    on 0 "select millrace.set_queue('$queue', '{\"depth_limit\": 1}')" >/dev/null
    for i in 1 2 3; do
        post /api/v1/jobs "{\"kind\": \"k\", \"queue\": \"$queue\", \"tenant\": \"$tenant\"}"
        says 201
        shard_of "$(jq .id <<<"$body")"
    done | paste -sd' ' >went
    [[ $(<went) =~ ^0\ ([12])\ [12]$ ]]
    post /api/v1/jobs "{\"kind\": \"k\", \"queue\": \"$queue\", \"tenant\": \"$tenant\", \"unique_key\": \"u\"}"
    says 429
}

@test "a database that is no shard of the set is not used, and the log says why" {
    end_daemons
    psql -X -q -d "${addresses[0]}" -c "create database alone$BATS_TEST_NUMBER" >/dev/null
    addresses+=("${addresses[0]/dbname=postgres/dbname=alone$BATS_TEST_NUMBER}")
    MILLRACE_DSN=${addresses[3]} "$MR_BIN" migrate >/dev/null
    use_shards 0 3
    api_up
    wait_until 30 logged api 'the database is not a shard'
    wait_until 30 shards_are '["active","down"]'
    [[ $body == *'the database is not a shard'* ]]
}
