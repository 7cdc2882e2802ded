#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# Payload parts that are objects of a blob store, in a queue that is delivered by way of Redis: a relay reads them, and writes those of outcomes. Real S3, real Redis.
bats_require_minimum_version 1.5.0
load ../lib/server
load ../lib/daemon
load ../lib/redis
load ../lib/s3
load ../lib/blobs
load ../lib/relay
bucket= # of set_up_blobs

setup_file()
{
    need_s3
    start_s3
    start_s3_proxy
    export s3_dir s3_port s3_pid s3_proxy_base
}

teardown_file()
{
    stop_s3
}

setup()
{
    cd "$BATS_TEST_TMPDIR" || return
    set_up_blobs
    s3_fault
    sql "select millrace.set_queue('hog', '{\"transport\": \"redis\", \"offload\": 1000}')"
    redis_new
    write_programs
}

# put.py FROM TO SIZE KIND prints jobs whose state depends on their number. take.py is a handler: it writes down its job's number, attempt, and whether the state is the one
# that it should be; a job of the kind again has its state replaced and runs once more, one of the kind fail fails at first with another state. The new state of the kind
# signed begins like a coded part.
write_programs()
{
    cat >part.py <<'SCRIPT'
import base64, hashlib

def part(name, n, size):
    noise = b"".join(hashlib.sha256(f"{name}{n}.{i}".encode()).digest() for i in range(size // 32 + 1))[:size]
    return (b"\x89MRP\r\n\x1a\n" if name == "signed" else b"") + noise

def coded(name, n, size):
    return base64.b64encode(part(name, n, size)).decode()
SCRIPT
    cat >put.py <<'SCRIPT'
import json, sys
from part import coded
first, last, size, kind = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
for n in range(first, last + 1):
    print(json.dumps({"queue": "hog", "kind": kind, "args": {"n": n, "size": size}, "ref": f"r{n}", "state": coded("s", n, size)}))
SCRIPT
    cat >take.py <<'SCRIPT'
import base64, json, os, sys, time
from part import part, coded
for line in sys.stdin:
    job = json.loads(line)
    n, size, kind, answer = job["args"]["n"], job["args"]["size"], job["kind"], {}
    state = base64.b64decode(job.get("state", ""))
    first = state == part("s", n, size)
    if first and kind in ("again", "signed"):
        answer = {"outcome": "requeued", "state": coded(kind, n, 5000)}
    elif first and kind == "fail":
        answer = {"error": "not yet", "retry_in": 1, "state": coded(kind, n, 5000)}
    with open("ran", "a") as ran:
        ran.write("%d %d %s\n" % (n, job["attempt"], "whole" if first or state == part(kind, n, 5000) else "BROKEN"))
    while os.path.exists("wait"):
        time.sleep(0.05)
    print(json.dumps(dict(answer, id=job["id"])), flush=True)
SCRIPT
}

teardown()
{
    touch stop
    rm -f wait
    end_daemons
    redis_stop
    drop_db
}

# $1 to $2 of the kind $3 (plain), with a state of $4 (3000) bytes.
put()
{
    python3 put.py "$1" "$2" "${4:-3000}" "${3:-plain}" >put.jsonl
    "$MR_BIN" enqueue --file put.jsonl >/dev/null
}

stored()
{
    sql "select count(*) filter (where millrace.is_object(payload_state)) || ' objects, ' || count(*) filter (where octet_length(payload_state) > 1000) || ' inline' from millrace.job"
}

# How many runs there were, and each with the payload that its job has.
runs_are()
{
    [ -f ran ] && [ "$(wc -l <ran)" -eq "$1" ] && ! grep -q BROKEN ran
}

key_of_job()
{
    sql "select millrace.part_reference(payload_state) ->> 'key' from millrace.job where job_ref = '$1' limit 1"
}

@test "objects are read by the relay and whole in the worker, who knows no store; new states become objects; they go with their jobs" {
    sql "select millrace.set_queue('hog', '{\"retention\": \"2 seconds\"}'), millrace.set_queue('q', '{\"retention\": \"2 seconds\"}'), millrace.set_queue('default', '{\"retention\": \"2 seconds\"}')" >/dev/null
    put 1 20
    put 21 30 again
    put 31 40 fail
    [ "$(stored)" = '40 objects, 0 inline' ]
    start_relay fleet
    ( unset MILLRACE_BLOBS MILLRACE_DSN AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY; start_worker w 'exec = "python3 take.py"' 'concurrency = 4 breaker { failures = 0 }'; pid_of w >pid )
    wait_until 60 runs_are 60 || { show_log fleet; cat w.log ran >&2; return 1; }
    kill "$(<pid)"
    # those that outlived their first segment, as the jobs waited for a retry, are looked at by the hour: here all the time
    wait_until 60 nothing_kept || { sql 'select * from millrace.blob_object' >&2; return 1; }
    wait_until 60 objects 0
    [ "$(sql "select count(*) from millrace.dead")" = 0 ]
}

nothing_kept()
{
    sql "update millrace.blob_object set look_at = now() where look_at > now()"
    sql_is "select count(*) from millrace.blob_object" 0
}

@test "an object that is missing or damaged makes its job alone a dead letter, with its reason" {
    put 1 12
    s3_native DELETE "/$bucket/here/$(key_of_job r3)"
    s3_native PUT "/$bucket/here/$(key_of_job r7)" --data-binary 'something else' >/dev/null
    start_relay fleet
    start_worker w 'exec = "python3 take.py"'
    wait_until 60 jobs_are hog completed 10 || { show_log fleet; return 1; }
    wait_until 30 dead_are 2
    [ "$(sql "select string_agg(job_ref || ' ' || cause || ' ' || attempt, ', ' order by job_ref) from millrace.dead")" = 'r3 damaged 1, r7 damaged 1' ]
    grep -qE '^state cannot be decoded: object .*/new-[0-9a-f]{32}: missing: ' <<<"$(sql "select failure from millrace.dead where job_ref = 'r3'")"
    runs_are 10
    [ "$(count_logged fleet relay.unreadable)" -eq 2 ]
}

@test "a store that is down: jobs with objects wait and no attempt is counted, others go on; new states are written into the row" {
    put 1 6
    put 7 8 again
    s3_fault '{"status": 503}'
    start_relay fleet
    start_worker w 'exec = "python3 take.py"'
    wait_until 60 logged fleet 'relay.store_down'
    put 11 16
    put 17 18 again
    wait_until 60 runs_are 10 || { show_log fleet; return 1; }
    wait_until 30 jobs_are hog completed 8
    [ "$(awk '$2 != 1' ran)" = '' ]
    wait_until 30 sql_is "select count(*) || ' ' || max(attempt) from millrace.delayed" '8 1'
    [ "$(sql "select count(*) from millrace.job where octet_length(payload_state) = 5000")" = 2 ]
    s3_fault
    sql "select count(millrace.run_now(job_id)) from millrace.delayed" >/dev/null
    wait_until 120 jobs_are hog completed 16 || { show_log fleet; return 1; }
    runs_are 20
    [ "$(awk '$2 != 1' ran)" = '' ]
    dead_are 0
}

@test "a relay without a store leaves such jobs to wait, and says what to set" {
    put 1 3
    ( unset MILLRACE_BLOBS; put 4 6; start_relay blind; pid_of blind >pid )
    start_worker w 'exec = "python3 take.py"'
    wait_until 60 jobs_are hog completed 3
    wait_until 60 logged blind 'relay.store_down.*none is configured'
    wait_until 30 sql_is "select count(*) || ' ' || max(attempt) from millrace.delayed" '3 1'
    kill "$(<pid)"
    sql "select count(millrace.run_now(job_id)) from millrace.delayed" >/dev/null
    start_relay fleet
    wait_until 60 jobs_are hog completed 6
    runs_are 6
}

# What begins like a coded part is wrapped once, by whoever writes it into the database.
@test "states of outcomes are what the handler gave: also such as begin like coded ones, and those that the next relay writes" {
    put 1 2 signed
    put 3 4 signed 500
    start_relay fleet 'lease = "60s"'
    touch wait
    start_worker w 'exec = "python3 take.py"' 'concurrency = 8'
    wait_until 30 runs_are 4
    signal fleet KILL
    ended fleet
    rm wait
    wait_until 30 outcomes_wait 4
    put 5 6 signed
    start_relay again 'lease = "60s"'
    wait_until 60 jobs_are hog completed 6 || { show_log again; cat ran >&2; sql 'select * from millrace.jobs' >&2; return 1; }
    runs_are 12
    [ "$(awk '$2 != 1' ran)" = '' ]
    dead_are 0
}

outcomes_wait()
{
    local keys
    keys=$(redis keys 'mr:delivery:*outcomes*')
    [ "$(redis xlen "$keys")" -eq "$1" ]
}
