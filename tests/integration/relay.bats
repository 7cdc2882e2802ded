#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# Jobs by way of Redis: a relay puts them into a stream, workers take them from there, and what becomes of them is what becomes of any job.

bats_require_minimum_version 1.5.0
load ../lib/server
load ../lib/daemon
load ../lib/redis
load ../lib/relay

@test "jobs go through Redis to a worker of the daemon's, and end as completed" {
    redis_new
    write_handler 'exit 0'
    enqueue 50 hog
    start_relay fleet
    start_worker w 'run = "./handler.sh"' 'concurrency = 4'
    wait_until 60 jobs_are hog completed 50 || { show_log fleet; show_log w; return 1; }
    [ "$(ran)" -eq 50 ]
    [ "$(wc -l <ran)" -eq 50 ]
    wait_until 30 idle
    [ "$(redis xpending "$(key jobs)" workers | head -1)" = 0 ]
    signal w TERM
    ended w
    [ "$status" -eq 0 ]
    signal fleet TERM
    ended fleet
    [ "$status" -eq 0 ]
    logged fleet 'relay.ended.*sent=50.*finished=50'
    # nothing of it is left but the stream itself
    [ "$(redis keys '*' | sort)" = "$(key jobs)" ]
}

@test "millrace work --via, until the stream is empty" {
    redis_new
    enqueue 20 hog
    start_relay fleet
    wait_until 30 stream_has 20
    run -0 "$MR_BIN" work hog --via "$(redis_address)" --run true --until-empty
    [[ $output =~ "completed 20, failed 0" ]]
    wait_until 30 jobs_are hog completed 20
}

@test "work --via a Redis that is not there says so, with status 3" {
    run -3 "$MR_BIN" work hog --via "unix://$BATS_TEST_TMPDIR/none" --run true
    [[ $output =~ "cannot connect to Redis" ]]
    run -1 "$MR_BIN" work hog --via "http://x" --run true
    [[ $output =~ "not the address of a Redis server" ]]
}

@test "a worker of the library's" {
    redis_new
    enqueue 30 hog
    enqueue 3 hog bad
    start_relay fleet
    wait_until 30 stream_has 33
    run -0 "$MR_BUILD/tests/integration/library/via" "$(redis_address)" hog
    [ "$output" = "completed 30, failed 3, lost 0" ]
    wait_until 30 jobs_are hog completed 30
    wait_until 30 dead_are 3
    run -1 "$MR_BUILD/tests/integration/library/via" http://x hog
    [[ $output =~ "not the address of a Redis server" ]]
}

@test "failures are tried again from PostgreSQL, then become dead letters" {
    redis_new
    sql "select millrace.set_retry('k', 2, '100 ms', 1, '100 ms', 0)" >/dev/null
    # shellcheck disable=SC2016  # for the handler
    write_handler '[ "$MILLRACE_ATTEMPT" = 2 ] && [ $((MILLRACE_JOB_ID % 2)) = 0 ] || { echo "not yet" >&2; exit 1; }'
    enqueue 10 hog
    start_relay fleet
    start_worker w 'run = "./handler.sh"' 'concurrency = 4 breaker { failures = 0 }'
    wait_until 60 jobs_are hog completed 5
    wait_until 60 dead_are 5
    [ "$(wc -l <ran)" -eq 20 ]
    [ "$(sql "select distinct error from millrace.dead_letters")" = "exited with status 1: not yet" ]
}

@test "a function in the database completes its jobs in its own transaction" {
    redis_new
    sql "create function take(job jsonb) returns void language sql as \$\$ insert into ran values ((job -> 'args' ->> 'n')::int, 1) \$\$"
    enqueue 40 hog
    start_relay fleet
    start_worker w 'sql = "take"' 'concurrency = 2'
    wait_until 60 jobs_are hog completed 40
    [ "$(sql 'select count(*), count(distinct n) from ran')" = "40|40" ]
    wait_until 30 idle
}

@test "all parts of a job arrive, and a result goes back" {
    redis_new
    sql "select millrace.enqueue('odd', '{\"a\": \"ü\"}', 'hog', priority => 7, tenant => 't', ref => 'r-1', meta => '{\"m\": 1}',
                                 state => '\\x00ff00'::bytea, blob => ''::bytea)" >/dev/null
    cat >echo.py <<'SCRIPT'
import json, sys
for line in sys.stdin:
    job = json.loads(line)
    keys = ["kind", "args", "meta", "state", "blob", "tenant", "ref", "priority", "attempt", "queue"]
    print(json.dumps({"id": job["id"], "outcome": "completed", "result": {k: job.get(k) for k in keys}}), flush=True)
SCRIPT
    start_relay fleet
    start_worker w 'exec = "python3 echo.py"'
    wait_until 60 jobs_are hog completed 1
    sql "select j -> 'result' from millrace.job((select min(id) from millrace.jobs)) j" >got
    python3 - <<'SCRIPT'
import json
got = json.load(open("got"))
want = {"kind": "odd", "args": {"a": "ü"}, "meta": {"m": 1}, "state": "AP8A", "blob": "", "tenant": "t", "ref": "r-1", "priority": 7,
        "attempt": 1, "queue": "hog"}
assert got == want, got
SCRIPT
}

@test "a job that runs for longer than its lease and the time to be silent is kept alive, and runs once" {
    redis_new
    write_handler 'sleep 12'
    enqueue 2 hog
    start_relay fleet 'lease = "6s" reclaim = "6s"'
    start_worker w 'run = "./handler.sh"' 'concurrency = 2'
    wait_until 60 jobs_are hog completed 2
    [ "$(wc -l <ran)" -eq 2 ]
    run ! logged fleet 'relay.reclaimed'
}

@test "what a killed worker had runs elsewhere, and counts as lost" {
    redis_new
    write_handler "while [ ! -e $BATS_TEST_TMPDIR/stop ]; do sleep 0.2; done"
    enqueue 2 hog
    start_relay fleet 'reclaim = "2s"'
    start_worker w 'run = "./handler.sh"' 'concurrency = 2'
    wait_until 60 ran_are 2
    signal w KILL
    ended w
    write_handler 'exit 0'
    start_worker w2 'run = "./handler.sh"' 'concurrency = 2'
    wait_until 60 jobs_are hog completed 2
    logged fleet 'relay.reclaimed.*jobs='
    [ "$(sql "select count(*) from millrace.jobs j, millrace.job(j.id) s where s ->> 'attempt' = '2'")" -eq 2 ]
}

@test "a job that kills its workers dies of it, as without Redis" {
    redis_new
    sql "select millrace.set_queue('hog', '{\"poison_limit\": 1}')" >/dev/null
    # shellcheck disable=SC2016  # for the handler
    write_handler 'case $MILLRACE_KIND in poison) kill -KILL $PPID ;; esac'
    sql "select millrace.enqueue('poison', queue => 'hog')" >/dev/null
    start_relay fleet 'reclaim = "4s"'
    for round in 1 2 3 4; do
        # others end meanwhile: it is not the fleet that is ill
        enqueue 5 hog
        start_worker "w$round" 'run = "./handler.sh"' 'concurrency = 1'
        wait_until 60 gone_or_dead "w$round"
        dead_are 1 && break
    done
    dead_are 1
    [[ $(sql "select error from millrace.dead_letters") =~ "lost 2 times in a row" ]]
    wait_until 60 jobs_are hog completed $((round * 5)) || start_last
}

# The worker may have died before it had the others.
start_last()
{
    start_worker last 'run = "./handler.sh"'
    wait_until 60 queue_is_done hog
}

gone_or_dead()
{
    gone "$1" || dead_are 1
}

@test "a cancelled job that waits in Redis is taken back" {
    redis_new
    enqueue 1 hog
    start_relay fleet 'lease = "3s"'
    wait_until 60 stream_has 1
    sql "select millrace.cancel(id) from millrace.jobs where queue = 'hog'" >/dev/null
    wait_until 60 jobs_are hog cancelled 1
    wait_until 60 stream_has 0
}

@test "a cancelled job that runs is told, by way of its worker's heartbeat" {
    redis_new
    write_handler "while [ ! -e $BATS_TEST_TMPDIR/stop ]; do sleep 0.2; done"
    enqueue 1 hog
    start_relay fleet 'lease = "6s" reclaim = "6s"'
    start_worker w 'run = "./handler.sh"' 'concurrency = 1'
    wait_until 60 ran_are 1
    sql "select millrace.cancel(id) from millrace.jobs where queue = 'hog'" >/dev/null
    wait_until 60 jobs_are hog cancelled 1
    wait_until 60 stream_has 0
    wait_until 30 logged w 'worker.cancelled'
}

@test "progress is reported through the relay" {
    redis_new
    cat >slow.py <<'SCRIPT'
import json, os, sys, time
for line in sys.stdin:
    job = json.loads(line)
    print(json.dumps({"id": job["id"], "progress": 40, "note": "half ü"}), flush=True)
    while not os.path.exists("stop"):
        time.sleep(0.2)
SCRIPT
    enqueue 1 hog
    start_relay fleet
    start_worker w 'exec = "python3 slow.py"'
    wait_until 60 progress_is '40|half ü'
}

progress_is()
{
    [ "$(sql "select s ->> 'progress', s ->> 'progress_note' from millrace.job((select min(id) from millrace.jobs)) s")" = "$1" ]
}

@test "no more jobs are held than in_flight says, nor bytes than max_bytes" {
    redis_new
    enqueue 100 hog
    start_relay fleet 'in_flight = 10 batch = 4'
    wait_until 30 stream_has 10
    wait_until 30 jobs_are hog running 10
    start_worker w 'run = "true"' 'concurrency = 1'
    wait_until 60 jobs_are hog completed 100
    signal fleet TERM
    ended fleet
    sql "select count(*) from millrace.enqueue_many('k', array_fill(jsonb_build_object('x', repeat('y', 10000)), array[50]), 'hog')" >/dev/null
    signal w TERM
    ended w
    start_relay small 'batch = 5 max_bytes = 30000'
    wait_until 30 stream_has 5
    wait_until 60 jobs_are hog running 5
    [ "$(sql "select millrace.depth('hog')")" -eq 45 ]
}

@test "the queue's transport starts and stops the relay; whoever claims by SQL may" {
    redis_new
    sql "select millrace.set_queue('hog', '{\"transport\": \"direct\"}')" >/dev/null
    enqueue 10 hog
    start_relay fleet
    wait_until 30 logged fleet 'relay.idle'
    [ "$(sql "select millrace.depth('hog')")" -eq 10 ]
    sql "select millrace.set_queue('hog', '{\"transport\": \"redis\"}')" >/dev/null
    wait_until 30 stream_has 10
    sql "select millrace.set_queue('hog', '{\"transport\": null}')" >/dev/null
    wait_until 30 stream_has 0
    wait_until 30 depth_is 10
    [ "$(sql "select count(*) from millrace.claim('hog', 'me', 100)")" -eq 10 ]
}

@test "a relay that is stopped gives back what no worker has, and waits for what runs" {
    redis_new
    write_handler 'sleep 3'
    enqueue 10 hog
    start_relay fleet
    wait_until 30 stream_has 10
    start_worker w 'run = "./handler.sh"' 'concurrency = 1 batch = 1'
    wait_until 30 ran_are 1
    signal fleet TERM
    ended fleet
    [ "$status" -eq 0 ]
    [ "$(sql "select millrace.depth('hog')")" -ge 8 ]
    [ "$(sql "select count(*) from millrace.jobs where queue = 'hog' and status = 'completed'")" -ge 1 ]
    jobs_are hog running 0
    # attempts of those that nobody has begun are not counted
    start_relay again
    wait_until 60 jobs_are hog completed 10
    [ "$(sort ran | uniq -d | wc -l)" -eq 0 ]
}

@test "what the workers of a killed relay say is written down by the next one: nothing runs twice" {
    redis_new
    write_handler 'sleep 4'
    enqueue 4 hog
    start_relay fleet 'lease = "60s"'
    start_worker w 'run = "./handler.sh"' 'concurrency = 4'
    wait_until 30 ran_are 4
    signal fleet KILL
    ended fleet
    start_relay again 'lease = "60s"'
    wait_until 60 jobs_are hog completed 4
    [ "$(wc -l <ran)" -eq 4 ]
    wait_until 30 relays_known 1
}

relays_known()
{
    [ "$(redis hlen "$(key relays)")" -eq "$1" ]
}

@test "entries of a relay that is gone are not begun" {
    redis_new
    write_handler 'exit 0'
    enqueue 5 hog
    start_relay fleet 'lease = "2s"'
    wait_until 30 stream_has 5
    signal fleet KILL
    ended fleet
    wait_until 60 nobody_lives
    start_worker w 'run = "./handler.sh"'
    wait_until 60 stream_has 0
    [ ! -e ran ]
    start_relay again
    wait_until 60 jobs_are hog completed 5
    [ "$(wc -l <ran)" -eq 5 ]
}

nobody_lives()
{
    [ -z "$(redis keys "$(key 'live:*' | sed 's/[{}]/\\&/g')")" ]
}

@test "two relays of one queue share its jobs, and each hears of its own" {
    redis_new
    enqueue 200 hog
    start_relay one 'batch = 20 in_flight = 20'
    start_relay two 'batch = 20 in_flight = 20'
    wait_until 30 stream_has 40
    start_worker w 'run = "true"' 'concurrency = 8'
    wait_until 60 jobs_are hog completed 200
    signal one TERM
    ended one
    signal two TERM
    ended two
    logged one 'finished=[1-9]'
    logged two 'finished=[1-9]'
    logged one 'late=0'
    logged two 'late=0'
}

@test "metrics: what it holds, what is with workers, what became of it; readyz says what is wrong" {
    redis_new
    write_handler "while [ ! -e $BATS_TEST_TMPDIR/stop ]; do sleep 0.2; done"
    token=a-token-of-this-test-alone-and-long-enough
    printf 'relay fleet { queue = "hog" redis = "%s" warn = 1 }\nhttp { listen = "127.0.0.1:0" token ops { role = "reader" hash = "%s" } }\n' \
        "$(redis_address)" "$(printf '%s' "$token" | "$MR_BIN" token --hash)" >fleet.conf
    enqueue 5 hog
    daemon fleet serve -c fleet.conf --roles relay,http
    wait_until 30 logged fleet serve.ready
    port=$(sed -n 's/.*http.listening.*port=\([0-9]*\).*/\1/p' "$BATS_TEST_TMPDIR/fleet.log")
    start_worker w 'run = "./handler.sh"' 'concurrency = 2 batch = 1'
    wait_until 30 ran_are 2
    wait_until 30 metric_is 'millrace_relay_in_flight{relay="fleet",queue="hog"} 5'
    wait_until 30 metric_is 'millrace_relay_pending{relay="fleet",queue="hog"} [2-4]'
    metric_is 'millrace_relay_stream_length{relay="fleet",queue="hog"} 5'
    metric_is 'millrace_relay_connected{relay="fleet",queue="hog"} 1'
    metric_is 'millrace_relay_entries_total{relay="fleet",queue="hog",what="sent"} 5'
    wait_until 30 logged fleet 'relay.pending'
    touch stop
    wait_until 60 metric_is 'millrace_relay_entries_total{relay="fleet",queue="hog",what="finished"} 5'
    curl -s -H "Authorization: Bearer $token" "http://127.0.0.1:$port/metrics" | promtool check metrics
    redis_stop
    wait_until 30 not_ready
}

metric_is()
{
    curl -sf -H "Authorization: Bearer $token" "http://127.0.0.1:$port/metrics" | grep -qx -- "$1"
}

not_ready()
{
    curl -s "http://127.0.0.1:$port/readyz" | grep -q 'relay fleet: '
}
