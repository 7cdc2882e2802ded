#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# Jobs by way of a Redis that is emptied, full, gone, another one, or has something else at the key: what is done about it, and that nothing is lost.

# shellcheck disable=SC2034,SC2154  # address is for lib/relay, redis_dir and redis_port are set by lib/redis
bats_require_minimum_version 1.5.0
load ../lib/server
load ../lib/daemon
load ../lib/redis
load ../lib/relay

@test "FLUSHALL in the middle: everything is sent again, nothing is lost" {
    redis_new
    write_handler 'sleep 0.05'
    enqueue 100 hog
    start_relay fleet 'in_flight = 50'
    start_worker w 'run = "./handler.sh"' 'concurrency = 4 batch = 10'
    wait_until 30 ran_are 20
    redis flushall >/dev/null
    wait_until 60 jobs_are hog completed 100 || { show_log fleet; show_log w; return 1; }
    logged fleet 'relay.forgotten'
    logged fleet 'relay.resent'
    ran_again 100 50
    dead_are 0
}

@test "a Redis that restarts empty, and one that restarts with its data" {
    redis_new
    write_handler 'sleep 0.05'
    enqueue 60 hog
    start_relay fleet 'in_flight = 30'
    start_worker w 'run = "./handler.sh"' 'concurrency = 2 batch = 5'
    wait_until 30 ran_are 10
    redis_kill
    rm -rf "$redis_dir/appendonlydir" "$redis_dir/appendonly.aof"
    redis_start
    wait_until 60 ran_are 30
    redis_kill
    redis_start
    wait_until 60 jobs_are hog completed 60 || { show_log fleet; show_log w; return 1; }
    ran_again 60 60 # 30, and 30 once more
    dead_are 0
}

@test "a group that is gone (NOGROUP) is made again" {
    redis_new
    enqueue 10 hog
    start_relay fleet
    wait_until 30 stream_has 10
    redis xgroup destroy "$(key jobs)" workers >/dev/null
    start_worker w 'run = "true"'
    wait_until 60 jobs_are hog completed 10
}

@test "a Redis without memory (OOM): the leases are kept, it is said, and it goes on" {
    redis_new
    start_relay fleet 'in_flight = 20 lease = "15s"'
    wait_until 30 logged fleet 'serve.ready'
    redis config set maxmemory 1 >/dev/null
    enqueue 30 hog
    wait_until 30 logged fleet "relay.held.*OOM"
    wait_until 30 jobs_are hog running 20
    stream_has 0
    start_worker w 'run = "true"'
    redis config set maxmemory 0 >/dev/null
    wait_until 60 jobs_are hog completed 30
    wait_until 30 logged fleet 'relay.recovered'
    [ "$(sql "select count(*) from millrace.jobs j, millrace.job(j.id) s where s ->> 'attempt' <> '1'")" -eq 0 ]
}

@test "Redis full while jobs run: outcomes wait and are written" {
    redis_new
    write_handler 'while [ ! -e go ]; do sleep 0.1; done'
    enqueue 3 hog
    start_relay fleet
    start_worker w 'run = "./handler.sh"' 'concurrency = 3'
    wait_until 30 ran_are 3
    redis config set maxmemory 1 >/dev/null
    touch go
    wait_until 30 logged w 'worker.refused.*OOM'
    redis config set maxmemory 0 >/dev/null
    wait_until 60 jobs_are hog completed 3
    [ "$(wc -l <ran)" -eq 3 ]
}

@test "a key of another type: said on both sides, and mended" {
    redis_new
    redis set "$(key jobs)" mine >/dev/null
    enqueue 3 hog
    start_relay fleet
    start_worker w 'run = "true"'
    wait_until 30 logged fleet 'relay.held.*WRONGTYPE'
    wait_until 30 logged w 'worker.gave_up.*WRONGTYPE'
    depth_is 3
    redis del "$(key jobs)" >/dev/null
    wait_until 60 jobs_are hog completed 3
}

@test "an entry that is no job is removed, and said" {
    redis_new
    start_relay fleet
    wait_until 30 logged fleet 'serve.ready'
    redis xadd "$(key jobs)" '*' hello world >/dev/null
    enqueue 3 hog
    start_worker w 'run = "true"'
    wait_until 60 jobs_are hog completed 3
    wait_until 30 stream_has 0
    logged w 'worker.refused.*entry that is no job'
}

@test "Redis not there at the start; later it is" {
    redis_new
    redis_stop
    enqueue 3 hog
    start_relay fleet
    start_worker w 'run = "true"'
    wait_until 30 logged fleet 'relay.unreachable'
    wait_until 30 logged w 'worker.unreachable'
    redis_start
    wait_until 60 jobs_are hog completed 3
}

@test "a wrong password is told, without the password" {
    redis_new --requirepass right
    address="unix://:wrong@$redis_dir/socket"
    start_relay fleet
    wait_until 30 logged fleet 'relay.unreachable.*WRONGPASS'
    run ! logged fleet ':wrong@'
}

@test "a replica takes the place of its primary in the middle" {
    redis_new_tcp
    redis_new_replica
    address="redis://127.0.0.1:$redis_port"
    write_handler 'sleep 0.05'
    enqueue 150 hog
    start_relay fleet 'in_flight = 50'
    start_worker w 'run = "./handler.sh"' 'concurrency = 4 batch = 10'
    wait_until 60 ran_are 20
    redis_cut
    wait_until 60 ran_are 60
    redis_fail_over
    wait_until 60 jobs_are hog completed 150 || { show_log fleet; show_log w; return 1; }
    # what was in flight when the replica was cut off is in its stream, what was when it took over is not, and is sent again
    ran_again 150 100
    dead_are 0
}
