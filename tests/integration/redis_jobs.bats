#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# Jobs on Redis: the program's commands, and a Redis that is full, restarted, forgets its scripts or holds keys of others.

# shellcheck disable=SC2154  # stderr_lines is set by run
bats_require_minimum_version 1.5.0
load ../lib/server
load ../lib/redis

setup()
{
    cd "$BATS_TEST_TMPDIR" || return
    unset DATABASE_URL
    conform=$MR_BUILD/tests/conformance/conform
}

teardown()
{
    redis_stop
}

on_redis()
{
    redis_new
    MILLRACE_DSN=$(redis_address)
    export MILLRACE_DSN
}

# Makes calls of tests/conformance on one connection.
calls()
{
    printf '%s\n' "$@" | "$conform" | sed -n 's/^    //p'
}

@test "enqueue: prints an id, takes the options that Redis has" {
    on_redis
    local id
    id=$("$MR_BIN" enqueue email '{"to": 1}' --queue mail --priority 10 --tenant t --ref r --max-attempts 5 --meta '{"m": 1}' --timeout 90s)
    [[ $id =~ ^[0-9]+$ ]]
    [ "$(calls 'claim mail 1')" = $'J1 mail email {"to":1}, attempt 1 of 5, priority 10, tenant t, ref r, meta {"m":1}, timeout 90000 ms\nlease L1' ]
    [[ $("$MR_BIN" enqueue k --json) =~ ^'{"ids":['[0-9]+'],"enqueued":1}'$ ]]
    "$MR_BIN" enqueue k --queue mail --delay 1h
    "$MR_BIN" enqueue k --queue mail --at '2100-01-31 08:00+01'
    [ "$("$MR_BIN" status mail --json)" = '{"queues":[{"queue":"mail","available":0,"running":1,"scheduled":2,"dead":0}]}' ]
}

@test "enqueue: what needs PostgreSQL is refused by its name" {
    on_redis
    local option
    echo '{"kind": "k"}' >lines
    for option in '--unique u:unique_key' '--key o:ordering_key' '--file lines:--file'; do
        # shellcheck disable=SC2086  # words
        run --separate-stderr -2 "$MR_BIN" enqueue k ${option%%:*}
        [[ ${stderr_lines[0]} == "millrace: ${option#*:} needs PostgreSQL; "*Redis ]]
        [[ $stderr == *docs/redis.md* ]]
    done
    run --separate-stderr -1 "$MR_BIN" enqueue k --at tomorrow
    [[ $stderr == *'2026-11-16 14:05:00+01'* ]]
    run --separate-stderr -1 "$MR_BIN" enqueue ''
    [ "${stderr_lines[0]}" = 'millrace: kind must not be empty' ]
    [ "$("$MR_BIN" status --json)" = '{"queues":[]}' ]
}

@test "status: queues in figures" {
    on_redis
    calls 'enqueue_many b k 0 1 2 3' 'claim b 1' 'enqueue k 1 queue a max_attempts 1' 'claim a 1' 'fail L2 J4 error' >/dev/null
    "$MR_BIN" status >table
    grep -Eq '^QUEUE +AVAILABLE +RUNNING +SCHEDULED +DEAD$' table
    grep -Eq '^a +0 +0 +0 +1$' table
    grep -Eq '^b +2 +1 +0 +0$' table
    [ "$("$MR_BIN" status b | wc -l)" -eq 2 ]
    run --separate-stderr -1 "$MR_BIN" status nowhere
    [ "${stderr_lines[0]}" = "millrace: queue 'nowhere' does not exist" ]
    run --separate-stderr -2 "$MR_BIN" status a --tenants
    [ "${stderr_lines[0]}" = 'millrace: --tenants needs PostgreSQL; the address is one of Redis' ]
}

@test "dead: list, replay, purge" {
    on_redis
    local n id lines=()
    for n in 1 2 3; do
        lines+=("enqueue kind$n '{\"n\": $n}' queue d max_attempts 1" 'claim d 1' "fail L$n J$n 'error $n'")
    done
    calls "${lines[@]}" >/dev/null
    "$MR_BIN" dead list >table
    grep -Eq '^ *ID +QUEUE +KIND +CAUSE +ATTEMPTS +DIED +ERROR$' table
    grep -Eq '^ *[0-9]+ +d +kind3 +failed +1 +20[0-9-]+ [0-9:]+.* +error 3$' table
    [ "$(wc -l <table)" -eq 4 ]
    [ "$("$MR_BIN" dead list d --kind kind2 | wc -l)" -eq 2 ]
    [ "$("$MR_BIN" dead list d --limit 1 --json | grep -o '"kind":"[^"]*"')" = '"kind":"kind3"' ]
    "$MR_BIN" dead list --json | python3 -c 'import json, sys; assert [l["args"]["n"] for l in json.load(sys.stdin)["dead_letters"]] == [3, 2, 1]'
    id=$(awk '/kind2/ { print $1 }' table)
    [ "$("$MR_BIN" dead replay "$id")" = "replayed: job $id" ]
    run --separate-stderr -1 "$MR_BIN" dead replay "$id"
    [ "${stderr_lines[0]}" = "millrace: there is no dead letter $id" ]
    [ "$("$MR_BIN" dead replay --queue d --kind kind1 --json)" = '{"replayed":1}' ]
    [ "$("$MR_BIN" dead purge d --older-than 1h --yes)" = 'removed: 0 dead letters' ]
    run --separate-stderr -2 "$MR_BIN" dead purge d </dev/null
    [[ ${stderr_lines[0]} == *'cannot ask without a terminal' ]]
    [ "$("$MR_BIN" dead purge d --yes --json)" = '{"purged":1}' ]
    [ "$("$MR_BIN" status d --json)" = '{"queues":[{"queue":"d","available":2,"running":0,"scheduled":0,"dead":0}]}' ]
    run --separate-stderr -1 "$MR_BIN" dead list nowhere
    [ "${stderr_lines[0]}" = "millrace: queue 'nowhere' does not exist" ]
    run --separate-stderr -2 "$MR_BIN" dead show 1
    [ "${stderr_lines[0]}" = 'millrace: `millrace dead show` needs PostgreSQL; the address is one of Redis' ]
    run --separate-stderr -2 "$MR_BIN" dead list --error-like 'a%'
    [[ ${stderr_lines[0]} == 'millrace: --error-like needs PostgreSQL; '* ]]
    run --separate-stderr -2 "$MR_BIN" dead replay --queue d --error-like 'a%'
    [[ ${stderr_lines[0]} == 'millrace: --error-like needs PostgreSQL; '* ]]
}

@test "more dead letters than one script takes: all are replayed, or purged, or passed over" {
    on_redis
    # a dead letter as the scripts leave it, 2,500 times
    calls 'enqueue k 1 queue d' 'claim d 1' 'complete L1' >/dev/null
    redis eval "for i = 1, 2500 do
        local id = string.format('1%012.0f', 100 + i)
        redis.call('hset', KEYS[1] .. ':job:' .. id, 'kind', i % 2 == 0 and 'even' or 'odd', 'priority', 50, 'attempt', 3, 'max_attempts', 3, 'created_us', 1)
        redis.call('zadd', KEYS[1] .. ':dead', i, id)
        end" 1 'mr:queue:{d}'
    [ "$(calls 'replay_all d even 1100')" = '1100 replayed' ]
    [ "$(calls 'replay_all d even')" = '150 replayed' ]
    [ "$(calls 'depth d')" = '1250 available' ]
    [ "$(calls 'purge_dead d')" = '1250 removed' ]
    [ "$(calls 'drain d 1000')" = '1250 completed' ]
    [ "$(redis --scan --pattern 'mr:queue:{d}:job:*' | wc -l)" -eq 0 ]
}

# A dead letter as the scripts leave it, many times: QUEUE KIND FROM TO BYTES, with args of so many bytes.
letters()
{
    redis eval "for i = tonumber(ARGV[2]), tonumber(ARGV[3]) do
        local id = string.format('1%012.0f', 100 + i)
        redis.call('hset', KEYS[1] .. ':job:' .. id, 'kind', ARGV[1], 'priority', 50, 'attempt', 3, 'max_attempts', 3, 'created_us', 1, 'died_us', 1,
                   'cause', 'failed', 'failure', 'x', 'lost', 0, 'args', '\"' .. string.rep('x', ARGV[4] - 2) .. '\"')
        redis.call('zadd', KEYS[1] .. ':dead', i, id)
        end" 1 "mr:queue:{$1}" "$2" "$3" "$4" "$5"
}

# How often the command $1 ran.
ran()
{
    redis info commandstats | sed -n "s/^cmdstat_$1:calls=\([0-9]*\),.*/\1/p"
}

@test "dead: letters of another kind are not read, nor more than was asked for, nor more than 16 MB" {
    on_redis
    calls 'enqueue k 1 queue l' 'claim l 1' 'complete L1' >/dev/null
    letters l wanted 1 3 100
    letters l other 4 500 100
    redis config resetstat
    [ "$(calls 'dead l wanted' | tail -n 1)" = '3 dead letters' ]
    [ "$(ran hmget)" -eq 3 ]
    redis config resetstat
    [ "$(calls 'dead l @null 2' | tail -n 1)" = '2 dead letters, perhaps more' ]
    [ "$(ran hmget)" -eq 2 ]
    letters l large 501 504 6000000
    redis config resetstat
    [ "$(calls 'dead l large' | tail -n 1)" = '2 dead letters, perhaps more' ]
    [ "$(ran hmget)" -eq 2 ]
    letters l huge 505 506 17000000
    [ "$(calls 'dead l huge' | tail -n 1)" = '1 dead letters, perhaps more' ]
}

@test "Redis is full: nothing goes in, what is there is worked off" {
    on_redis
    calls 'enqueue_many f k 0 1 2 3 4' 'enqueue k 5 queue f max_attempts 1' 'enqueue k 6 queue f delay 1ms' >/dev/null
    redis config set maxmemory 1
    run calls 'enqueue k 7 queue f' 'enqueue k 8 queue new' 'claim f 3' 'heartbeat L1 1h' 'fail L1 J1 error retry 1ms' 'release L1 J2' 'complete L1' \
        'await f 1' 'fail L2 J4 error no_retry 1' 'dead f' 'replay J4' 'drain f 10'
    printf '%s\n' "${lines[@]}"
    [[ ${lines[0]} == 'MR_EFULLDISK (transient): '*OOM* ]]
    [[ ${lines[1]} == 'MR_EFULLDISK (transient): '*OOM* ]]
    [ "${lines[6]}" = extended ]
    [ "${lines[7]}" = 'comes back' ]
    [ "${lines[8]}" = '1 released' ]
    [ "${lines[9]}" = '1 completed' ]
    [ "${lines[12]}" = dead ]
    [ "${lines[15]}" = replayed ]
    # one that was put off may need another look
    wait_until 20 drained
}

drained()
{
    calls 'drain f 10' >/dev/null
    [ "$("$MR_BIN" status f --json)" = '{"queues":[{"queue":"f","available":0,"running":0,"scheduled":0,"dead":0}]}' ]
}

@test "scripts that Redis has forgotten are sent again, with what they share" {
    on_redis
    [ "$(calls 'enqueue k 1 queue s' 'claim s 1' 'release L1' "shell 'redis-cli -s $redis_dir/socket script flush >/dev/null'" 'claim s 1' 'complete L2' | tail -n 1)" = '1 completed' ]
}

@test "a restart of Redis loses no job and no lease" {
    on_redis
    calls 'enqueue_many r k 0 1 2 3' 'claim r 1' 'enqueue k 4 queue r delay 1h' 'enqueue k 5 queue r max_attempts 1' >/dev/null
    redis_stop
    redis_start
    [ "$("$MR_BIN" status r --json)" = '{"queues":[{"queue":"r","available":3,"running":1,"scheduled":1,"dead":0}]}' ]
    [ "$(calls 'drain r 10')" = '3 completed' ]
    # the lease of the first goes on
    [ "$("$MR_BIN" status r --json)" = '{"queues":[{"queue":"r","available":0,"running":1,"scheduled":1,"dead":0}]}' ]
}

@test "all keys of a queue are in one slot, whatever it is called" {
    redis_new_tcp --cluster-enabled yes
    export MILLRACE_DSN=redis://127.0.0.1:$redis_port
    redis cluster addslotsrange 0 16383
    wait_until 20 cluster_is_up
    local name key slot slots
    for name in plain 'a{b}c' '}{' '{}' '%7B'; do
        calls "enqueue k 1 queue '$name'" "claim '$name' 1" "fail L1 J1 error" "enqueue k 1 queue '$name' max_attempts 1" "claim '$name' 1" \
            "fail L2 J2 error" "enqueue_many '$name' k 0 1 2" "claim '$name' 1" >/dev/null
    done
    [ "$(redis --scan --pattern 'mr:queue:*' | wc -l)" -ge 40 ]
    slots=$(redis --scan --pattern 'mr:queue:*' | while read -r key; do
        slot=$(redis cluster keyslot "$key")
        echo "${key%%\}*} $slot"
    done | sort -u)
    echo "$slots"
    # one line for each queue
    [ "$(wc -l <<<"$slots")" -eq 5 ]
}

cluster_is_up()
{
    redis cluster info | grep -q '^cluster_state:ok'
}

@test "keys of another program" {
    on_redis
    redis set 'mr:queue:{x}' 1
    redis rpush 'mr:queue:{y}:lanes' 1
    run calls 'enqueue k 1 queue x' 'claim y 1' 'depth y'
    [[ ${lines[0]} == 'MR_EFOREIGN (config): Redis at '*WRONGTYPE* ]]
    [[ ${lines[1]} == 'MR_EFOREIGN (config): Redis at '*WRONGTYPE* ]]
    [[ ${lines[2]} == 'MR_EFOREIGN (config): Redis at '*WRONGTYPE* ]]
}

@test "a queue without a name has no keys, which would be in as many slots" {
    on_redis
    redis set 'mr:queue:{}:lanes' foreign
    [ "$(calls "claim '' 1" "depth ''")" = $'nothing\n0 available' ]
}
