#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# Relays, workers and Redis are killed in turn while jobs go through a stream: what was enqueued is completed or dead, jobs that ran twice are at most those
# that were in flight, and what runs under a void lease has no effect.

bats_require_minimum_version 1.5.0
load ../lib/server
load ../lib/daemon
load ../lib/redis

IN_FLIGHT=40

setup()
{
    cd "$BATS_TEST_TMPDIR" || return
    fresh_db
    # what is killed here is not the jobs' fault
    sql "select millrace.set_queue('hog', '{\"transport\": \"redis\", \"poison_limit\": 100}')" >/dev/null
    redis_new
    daemon upkeep serve --roles maintain
}

teardown()
{
    touch stop
    end_daemons
    redis_stop
    drop_db
}

start_relay()
{
    printf 'relay fleet { queue = "hog" redis = "%s" in_flight = %d batch = 20 lease = "6s" reclaim = "4s" }\n' "$(redis_address)" "$IN_FLIGHT" >relay.conf
    daemon relay serve -c relay.conf --roles relay
}

# $1: its handler
start_worker()
{
    handler=$1
    printf 'worker w { queue = "hog" redis = "%s" %s concurrency = 4 batch = 10 breaker { failures = 0 } }\n' "$(redis_address)" "$handler" >worker.conf
    daemon worker serve -c worker.conf --roles work
}

completed()
{
    sql "select count(*) from millrace.jobs where queue = 'hog' and status = 'completed'"
}

more_than()
{
    [ "$(completed)" -gt "$1" ]
}

# Until some more have ended, or all have.
goes_on()
{
    local now
    now=$(completed)
    wait_until 60 more_than "$((now + 50 < $1 ? now + 50 : $1 - 1))"
}

again()
{
    kill -KILL "$(pid_of "$1")"
    wait "$(pid_of "$1")" 2>/dev/null || true
}

# One after the other, each when the last one has been got over. $1: the jobs.
kill_in_turn()
{
    kills=0
    for what in relay worker redis flush relay worker redis flush; do
        goes_on "$1"
        case $what in
        relay) again relay && start_relay ;;
        worker) again worker && start_worker "$handler" ;;
        redis) redis_kill && redis_start ;;
        flush) redis flushall >/dev/null ;;
        esac
        kills=$((kills + 1))
    done
}

@test "each effect once: a function in the database, and everything else is killed" {
    sql "create table effect (n int not null)"
    sql "create function take(job jsonb) returns void language sql as \$\$
           insert into effect select (job -> 'args' ->> 'n')::int from pg_sleep(0.01) \$\$"
    enqueue 1500 hog
    start_relay
    start_worker 'sql = "take"'
    kill_in_turn 1500
    wait_until 120 queue_is_done hog || { show_log relay; show_log worker; return 1; }
    [ "$(completed)" -eq 1500 ]
    [ "$(sql 'select count(*), count(distinct n) from effect')" = "1500|1500" ]
    [ "$(sql "select count(*) from millrace.dead_letters")" -eq 0 ]
}

@test "nothing is lost: a program, which may run a job again that was in flight" {
    cat >note.py <<'SCRIPT'
import json, sys, time
for line in sys.stdin:
    job = json.loads(line)
    with open("ran", "a") as ran:
        ran.write("%d\n" % job["args"]["n"])
    time.sleep(0.005)
    print(json.dumps({"id": job["id"], "outcome": "completed"}), flush=True)
SCRIPT
    enqueue 1500 hog
    start_relay
    start_worker 'exec = "python3 note.py"'
    kill_in_turn 1500
    wait_until 120 queue_is_done hog || { show_log relay; show_log worker; return 1; }
    [ "$(completed)" -eq 1500 ]
    [ "$(sql "select count(*) from millrace.dead_letters")" -eq 0 ]
    [ "$(sort -u ran | wc -l)" -eq 1500 ]
    twice=$(($(wc -l <ran) - 1500))
    echo "1500 jobs, $kills kills with $IN_FLIGHT in flight at most: $twice ran again" >&3
    [ "$twice" -le $((kills * IN_FLIGHT)) ]
}
