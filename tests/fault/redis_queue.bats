#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# Jobs on Redis under consumers that are killed with SIGKILL again and again and stall beyond their leases, while Redis itself is killed
# and started again: no job is lost, none is completed twice, no completion is accepted under a void lease. And: a stream loses nothing but
# what was acknowledged; and what a failover to a replica leaves of jobs and leases.

# shellcheck disable=SC2154  # redis_dir is set by redis_new
bats_require_minimum_version 1.5.0
load ../lib/server
load ../lib/redis
load ../lib/killing

setup()
{
    consumer=$MR_BUILD/tests/fault/redis_consumer
    conform=$MR_BUILD/tests/conformance/conform
    cd "$BATS_TEST_TMPDIR" || return
    redis_new --appendfsync always
    MILLRACE_DSN=$(redis_address)
    export MILLRACE_DSN
    pids=()
}

teardown()
{
    kill_all "${pids[@]}"
    redis_stop
}

start_consumer()
{
    "$consumer" run q "log.$1" >>errors 2>&1 3>&- &
    pids[$1]=$!
}

# Nothing is left: neither jobs nor leases nor entries.
is_empty()
{
    [ "$("$MR_BIN" status q --json)" = '{"queues":[{"queue":"q","available":0,"running":0,"scheduled":0,"dead":0}]}' ]
}

figures()
{
    awk -v ids=ids '
        BEGIN { while ((getline id <ids) > 0) { total++; known[id] = 1 } }
        { for (i = 2; i <= NF; i++) { seen[$1, $i]++; count[$1]++; if (!($i in known)) strange++ } }
        END {
            for (id in known) {
                twice += seen["done", id] > 1
                done += seen["done", id] > 0
                never += !seen["try", id]
                # not known to be done: a completion was under way whose answer nobody has
                open += !seen["done", id]
                lost += !seen["done", id] && seen["try", id] == seen["void", id]
            }
            print total, done, twice + 0, never + 0, lost + 0, strange + 0, open + 0, count["void"] + 0
        }' log.*
}

@test "3,000 jobs under consumers and a Redis that are killed" {
    local round kills=0
    redis hset 'mr:queue:{q}:settings' retry_base_ms 20 retry_cap_ms 200 poison_limit 32000
    "$consumer" fill q 3000 >ids
    for round in 0 1 2 3; do start_consumer "$round"; done
    for round in $(seq 1 24); do
        sleep 0.1
        kill -KILL "${pids[round % 4]}" && kills=$((kills + 1))
        wait "${pids[round % 4]}" 2>/dev/null || true
        if [ "$round" -eq 12 ]; then
            redis_kill
            redis_start --appendfsync always
        fi
        start_consumer "$((round % 4))"
    done
    wait_until 60 is_empty
    # whoever stalls has jobs that others have done: it is refused, and ends
    kill -TERM "${pids[@]}"
    for round in 0 1 2 3; do
        wait "${pids[round]}" || [ $? -eq 143 ] # before it had begun
    done
    pids=()
    [ ! -s errors ] || { cat errors; false; }
    read -r total finished twice never lost strange open void <<<"$(figures)"
    echo "# $kills kills, $total jobs: $finished known to be done, $open with an answer nobody has; $void completions refused" >&3
    [ "$total" -eq 3000 ]
    [ "$twice" -eq 0 ]
    [ "$never" -eq 0 ]
    [ "$lost" -eq 0 ]
    [ "$strange" -eq 0 ]
    [ $((finished + open)) -eq 3000 ]
    # nothing is left behind
    [ "$(redis --scan --pattern 'mr:queue:{q}:job:*' | wc -l)" -eq 0 ]
    [ "$(redis --scan --pattern 'mr:queue:{q}:lease:*' | wc -l)" -eq 0 ]
    [ "$(redis zcard 'mr:queue:{q}:leases')" -eq 0 ]
    [ "$(redis xlen 'mr:queue:{q}:lane:50')" -eq 0 ]
}

# Makes calls of tests/conformance on one connection.
calls()
{
    printf '%s\n' "$@" | "$conform" >said
}

@test "a stream is as long as what is available or running" {
    calls 'enqueue_many s k 0 1 2 3 4 5 6' 'claim s 2' 'claim s 2' 'complete L1 J1' 'fail L2 J3 error retry 1h' 'release L2 J4'
    # J2 is running, J5, J6 and J4 again are available; J1 and J3 were acknowledged
    [ "$(redis xlen 'mr:queue:{s}:lane:50')" -eq 4 ]
    [ "$(redis xpending 'mr:queue:{s}:lane:50' workers | head -n 1)" -eq 1 ]
    [ "$(redis zcard 'mr:queue:{s}:later')" -eq 1 ]
    local held entry
    held=$(redis --raw xpending 'mr:queue:{s}:lane:50' workers - + 10 | head -n 1)
    entry=$(redis --raw xrange 'mr:queue:{s}:lane:50' "$held" "$held" | tail -n 1)
    [ "$(redis hget "mr:queue:{s}:job:$entry" args)" = 2 ]
    # its consumer is gone for good: it comes back
    redis zadd 'mr:queue:{s}:leases' 1 "$(redis --raw zrange 'mr:queue:{s}:leases' 0 0)"
    calls 'claim s 10'
    grep -q ' s k 2, attempt 2 of 3' said
    [ "$(grep -c ' s k ' said)" -eq 4 ]
    [ "$(redis xlen 'mr:queue:{s}:lane:50')" -eq 4 ]
}

# As if all leases of a queue had ended.
end_leases()
{
    local lease
    for lease in $(redis --raw zrange "mr:queue:{$1}:leases" 0 -1); do
        redis zadd "mr:queue:{$1}:leases" 1 "$lease"
    done
}

@test "Redis fails over to a replica that was behind: leases that it does not know are void, and everything goes on" {
    redis_stop
    redis_new_tcp
    redis_new_replica
    MILLRACE_DSN=$(redis_address)
    # The replica has the first four jobs and the first lease. It misses the second lease, a completion and a fifth job; of them only the leases say so:
    # the job whose completion is lost is still held by the first lease, and the next job has the id of the fifth.
    calls 'enqueue_many q k 0 1 2 3 4' 'claim q 2 lease 1h' "shell 'bash $redis_dir/cut'" \
        'claim q 1 lease 1h' 'complete L1 J1' 'enqueue k 5 queue q' "shell 'bash $redis_dir/fail_over'" \
        'complete L2' 'heartbeat L2' 'fail L2 J3 error' 'release L2' 'claim q 1 lease 1h' 'complete L2' 'complete L3' 'complete L1 J2' \
        'enqueue k 6 queue q' 'claim q 10' 'complete L4' 'depth q'
    redis_failed_over
    diff - <(sed -n 's/^    //p' said) <<'SAID'
4 done: J1 J2 J3 J4
J1 q k 1, attempt 1 of 3, priority 50
J2 q k 2, attempt 1 of 3, priority 50
lease L1
J3 q k 3, attempt 1 of 3, priority 50
lease L2
1 completed
J5
MR_ELEASE (conflict, MR001): lease 'L2' is lost
MR_ELEASE (conflict, MR001): lease 'L2' is lost
MR_ELEASE (conflict, MR001): lease 'L2' is lost
MR_ELEASE (conflict, MR001): lease 'L2' is lost
J3 q k 3, attempt 1 of 3, priority 50
lease L3
MR_ELEASE (conflict, MR001): lease 'L2' is lost
1 completed
1 completed
J5
J4 q k 4, attempt 1 of 3, priority 50
J5 q k 6, attempt 1 of 3, priority 50
lease L4
2 completed
0 available
SAID
    # the job whose completion was lost comes back when its lease is over
    end_leases q
    calls 'claim q 10' 'complete L1'
    grep -q 'q k 1, attempt 2 of' said || { cat said; false; }
    drained q
}

@test "a job whose worker is lost again and again is a dead letter, while others finish theirs" {
    local n
    redis hset 'mr:queue:{p}:settings' retry_base_ms 1 retry_jitter 0 retry_cap_ms nonsense
    calls 'enqueue k 1 queue p'
    for n in 1 2 3 4; do
        calls 'await p 1' 'enqueue k 2 queue p priority 10' 'claim p 1' 'complete L2'
        grep -q "p k 1, attempt $n of 3" said || { cat said; false; }
        grep -q '1 completed' said
        end_leases p
    done
    calls 'claim p 1' 'dead p'
    grep -Fq 'J1 p k 1 poison: its worker was lost 4 times in a row, attempt 4 of 3' said || { cat said; false; }
    grep -q nothing said
}

@test "in a stall no job is blamed" {
    local n
    redis hset 'mr:queue:{i}:settings' retry_base_ms 1 retry_jitter 0
    calls 'enqueue k 1 queue i'
    for n in 1 2 3 4 5 6; do
        calls 'await i 1'
        grep -q "i k 1, attempt $n of $((n + 2))" said || { cat said; false; }
        end_leases i
    done
}

@test "a job comes back by the backoff of its queue" {
    local now due
    now=$(redis --raw time | head -n 1)
    calls 'enqueue k 1 queue b' 'claim b 1' 'fail L1 J1 error'
    due=$(redis --raw zrange 'mr:queue:{b}:later' 0 0 withscores | tail -n 1)
    [ "$due" -ge $(((now + 2) * 1000)) ]
    [ "$due" -le $((($(redis --raw time | head -n 1) + 4) * 1000)) ]
    redis hset 'mr:queue:{b}:settings' retry_base_ms 60000 retry_cap_ms 60000
    calls 'enqueue k 1 queue b' 'claim b 1' 'fail L1 J1 error'
    due=$(redis --raw zrange 'mr:queue:{b}:later' -1 -1 withscores | tail -n 1)
    [ "$due" -ge $(((now + 60) * 1000)) ]
}

@test "dead letters are bounded by number and by age" {
    local n lines=()
    redis hset 'mr:queue:{d}:settings' dead_max 3
    for n in 1 2 3 4 5; do
        lines+=("enqueue k $n queue d max_attempts 1" 'claim d 1' "fail L$n J$n error")
    done
    calls "${lines[@]}" 'dead d'
    grep -q '3 dead letters' said
    [ "$(redis --scan --pattern 'mr:queue:{d}:job:*' | wc -l)" -eq 3 ]
    redis hset 'mr:queue:{d}:settings' dead_retention_ms 1
    sleep 0.01
    calls 'enqueue k 6 queue d max_attempts 1' 'claim d 1' 'fail L1 J1 error' 'dead d'
    grep -q '1 dead letters' said
}

@test "names of workers that are gone are forgotten" {
    calls 'enqueue_many w k 0 1 2 3' 'claim w 1 worker first' 'complete L1'
    [ "$(redis xinfo consumers 'mr:queue:{w}:lane:50' workers | grep -c first)" -eq 1 ]
    redis hset 'mr:queue:{w}' tidied_ms 0
    calls 'claim w 1 worker second'
    # it was seen a moment ago
    [ "$(redis xinfo consumers 'mr:queue:{w}:lane:50' workers | grep -c -e first -e second)" -eq 2 ]
    redis hset 'mr:queue:{w}:settings' consumer_idle_ms 1
    redis hset 'mr:queue:{w}' tidied_ms 0
    sleep 0.01
    calls 'claim w 1 worker third'
    # the second has a job
    [ "$(redis xinfo consumers 'mr:queue:{w}:lane:50' workers | grep -c first)" -eq 0 ]
    [ "$(redis xinfo consumers 'mr:queue:{w}:lane:50' workers | grep -c second)" -eq 1 ]
}

# Everything that the keys of a queue hold.
contents()
{
    local key
    for key in $(redis --scan --pattern "mr:queue:{$1}*" | LC_ALL=C sort); do
        echo "$key $(redis --raw dump "$key" | head -c -1 | md5sum)"
    done
}

@test "where a fraction has a comma, jobs come back" {
    localedef -i de_DE -f UTF-8 ./de_DE.UTF-8 2>/dev/null || [ -d de_DE.UTF-8 ] || skip 'the locale de_DE cannot be made: apt install locales'
    [ "$(LOCPATH=$PWD LC_ALL=de_DE.UTF-8 locale decimal_point)" = , ]
    # glibc keeps what it made of LOCPATH, which a sanitizer takes for a leak
    export LOCPATH=$PWD LC_ALL=de_DE.UTF-8 ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
    redis hset 'mr:queue:{c}:settings' retry_base_ms 3000000 # none is due meanwhile
    calls 'enqueue k 1 queue c' 'claim c 1' 'fail L1 J1 error'
    grep -q 'comes back' said || { cat said; false; }
    [ "$(redis zcard 'mr:queue:{c}:later')" -eq 1 ]
    # a second loss comes back by backoff
    calls 'enqueue k 2 queue c' 'claim c 1 lease 1ms'
    redis hset "mr:queue:{c}:job:$(redis --raw xrange 'mr:queue:{c}:lane:50' - + | tail -n 1)" lost 1
    end_leases c
    calls 'claim c 1'
    grep -q nothing said || { cat said; false; }
    [ "$(redis zcard 'mr:queue:{c}:later')" -eq 2 ]
}

@test "a script that fails has changed nothing" {
    local key before call
    # jobs in each place: one is running, one is late, one is due, one is dead
    calls 'enqueue_many e k 0 1 2' 'claim e 1 lease 1h' 'enqueue k 3 queue e max_attempts 1 priority 10' 'claim e 1' 'fail L2 J3 error' \
        'enqueue k 4 queue e delay 1ms'
    local lease id letter
    lease=$(redis --raw zrange 'mr:queue:{e}:leases' 0 0).e
    id=$(redis --raw hkeys "mr:queue:{e}:lease:${lease%.e}" | grep '^[0-9]')
    letter=$(redis --raw zrange 'mr:queue:{e}:dead' 0 0)
    for key in later dead leases lanes settings; do
        if redis exists "mr:queue:{e}:$key" | grep -q 1; then
            redis rename "mr:queue:{e}:$key" kept
        fi
        redis set "mr:queue:{e}:$key" foreign
        before=$(contents e)
        for call in "fail $lease $id error" "fail $lease $id error no_retry 1" "release $lease" "complete $lease" 'claim e 5' "replay $letter" \
            'replay_all e' 'enqueue k 5 queue e' 'enqueue k 5 queue e delay 1h'; do
            calls "$call"
            grep -q 'MR_EFOREIGN (config): .*WRONGTYPE' said || { echo "$key: $call"; cat said; false; }
            [ "$(contents e)" = "$before" ] || { echo "$key: $call has changed something"; false; }
        done
        redis del "mr:queue:{e}:$key"
        redis renamenx kept "mr:queue:{e}:$key" || true
    done
    # the same for lanes, which the due one, the dead one and a new one would go to
    redis rename 'mr:queue:{e}:lane:50' kept
    redis set 'mr:queue:{e}:lane:50' foreign
    redis set 'mr:queue:{e}:lane:60' foreign
    before=$(contents e)
    for call in "fail $lease $id error" "release $lease" "complete $lease" 'claim e 5' 'enqueue k 5 queue e' 'enqueue k 6 queue e priority 60'; do
        calls "$call"
        grep -q 'MR_EFOREIGN (config): .*WRONGTYPE' said || { echo "$call"; cat said; false; }
        [ "$(contents e)" = "$before" ] || { echo "$call has changed something"; false; }
    done
    redis del 'mr:queue:{e}:lane:60'
    redis rename kept 'mr:queue:{e}:lane:50'
    calls "complete $lease" 'replay_all e' 'await e 1' 'complete L1' 'drain e 10'
    wait_until 20 drained e
}

drained()
{
    calls "drain $1 10"
    [ "$("$MR_BIN" status "$1" --json)" = "{\"queues\":[{\"queue\":\"$1\",\"available\":0,\"running\":0,\"scheduled\":0,\"dead\":0}]}" ]
}

@test "settings with fractions lose no job" {
    redis hset 'mr:queue:{f}:settings' max_attempts 2.5 lease_ms 20000.5 poison_limit 1.5 retry_base_ms 1.5 retry_cap_ms 2.5 retry_jitter 0.5 dead_max 10.5
    calls 'enqueue k 1 queue f' 'claim f 1'
    grep -q 'f k 1, attempt 1 of 2' said || { cat said; false; }
    end_leases f
    calls 'await f 1'
    grep -q 'f k 1, attempt 2 of 3' said || { cat said; false; }
    end_leases f
    calls 'await f 1' 'fail L1 J1 error' 'await f 1' 'fail L2 J1 error' 'replay_all f'
    grep -q 'dead' said || { cat said; false; }
    drained f
}

@test "a job whose fields are no numbers is not lost" {
    local id
    calls 'enqueue k 1 queue n' 'claim n 1'
    id=$(redis --raw xrange 'mr:queue:{n}:lane:50' - + | tail -n 1)
    redis hset "mr:queue:{n}:job:$id" attempt 1.5 max_attempts 5.5 lost x
    redis hset 'mr:queue:{n}' leases x finished_us x tidied_ms x
    end_leases n
    calls 'claim n 1'
    grep -q 'n k 1, attempt 2 of 6' said || { cat said; false; }
    redis hset "mr:queue:{n}:job:$id" attempt 2.5 max_attempts x
    calls "fail $(redis --raw zrange 'mr:queue:{n}:leases' 0 0).n $id error retry 1ms"
    grep -q 'dead' said || { cat said; false; }
    redis hset "mr:queue:{n}:job:$id" max_attempts 7.5 priority none
    calls 'replay_all n' 'claim n 1' 'complete L1'
    grep -q 'n k 1, attempt 1 of 7, priority 50' said || { cat said; false; }
    grep -q '1 completed' said || { cat said; false; }
}

@test "a claim brings 16 MB at most, or one job" {
    local part with
    redis config set appendonly no # the disk is no part of this
    for part in state blob; do
        calls "enqueue_many large.$part k 0 1 2 3 4 5 6"
        # the third is larger than a batch; as jobs of an older version, they were not weighed
        redis eval "for i = 1, 6 do
            local key = KEYS[1] .. ':job:' .. redis.call('hget', KEYS[1], 'no') .. string.format('%012.0f', i)
            redis.call('hset', key, '$part', string.rep('1', i == 3 and 20000000 or 6000000))
            if '$part' ~= 'state' then redis.call('hdel', key, 'bytes') end
            end" 1 "mr:queue:{large.$part}"
        for with in 2 1 2 1 0; do
            calls "claim large.$part 10 lease 1h"
            [ "$(grep -c ' k ' said)" -eq "$with" ] || { cut -c 1-200 said; false; }
        done
    done
    # nobody wants the states
    calls 'enqueue_many left k 0 1 2 3 4 5 6'
    redis eval "for i = 1, 6 do
        redis.call('hset', KEYS[1] .. ':job:' .. redis.call('hget', KEYS[1], 'no') .. string.format('%012.0f', i), 'state', string.rep('1', 6000000))
        end" 1 'mr:queue:{left}'
    calls 'claim left 10 without_state 1'
    [ "$(grep -c ' k ' said)" -eq 6 ]
}

@test "a claim that fails leaves the jobs where they were" {
    calls 'enqueue_many o k 0 1 2 3'
    local id
    id=$(redis --raw xrange 'mr:queue:{o}:lane:50' - + | tail -n 1)
    redis rename "mr:queue:{o}:job:$id" kept
    redis set "mr:queue:{o}:job:$id" foreign
    calls 'claim o 10'
    grep -q 'MR_EFOREIGN' said || { cat said; false; }
    [ "$(redis xpending 'mr:queue:{o}:lane:50' workers | head -n 1)" -eq 0 ]
    redis rename kept "mr:queue:{o}:job:$id"
    calls 'claim o 10'
    [ "$(grep -c ' k ' said)" -eq 3 ]
}

@test "a lease is rescued as a whole" {
    local large small
    calls 'enqueue_times r k 1500' 'claim r 1500 lease 1h'
    large=$(redis --raw zrange 'mr:queue:{r}:leases' 0 0)
    calls 'enqueue_many r k 0 1 2' 'claim r 2 lease 2h'
    small=$(redis --raw zrange 'mr:queue:{r}:leases' 1 1)
    redis zadd 'mr:queue:{r}:leases' 1 "$large" 2 "$small"
    calls 'claim r 1 lease 1h' "heartbeat $large.r" "complete $large.r"
    [ "$(grep -c MR_ELEASE said)" -eq 2 ] || { cat said; false; }
    # the other one is for the next claim, and as good as before
    [ "$("$MR_BIN" status r --json)" = '{"queues":[{"queue":"r","available":1499,"running":3,"scheduled":0,"dead":0}]}' ]
    calls "heartbeat $small.r 1h" 'claim r 1' 'complete L1'
    grep -q extended said || { cat said; false; }
    redis zadd 'mr:queue:{r}:leases' 2 "$small"
    calls 'claim r 1 lease 1h' "complete $small.r"
    grep -q MR_ELEASE said || { cat said; false; }
    [ "$("$MR_BIN" status r --json)" = '{"queues":[{"queue":"r","available":1499,"running":2,"scheduled":0,"dead":0}]}' ]
}
