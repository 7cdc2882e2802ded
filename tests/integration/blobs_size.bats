#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# Payload parts above a size, which clients write to the blob store: a real S3 server, the library, workers, HTTP.
bats_require_minimum_version 1.5.0
load ../lib/server
load ../lib/daemon
load ../lib/s3
load ../lib/blobs
load ../lib/api
bucket= # of set_up_blobs
body=   # of lib/api

setup_file()
{
    need_s3
    start_s3
    start_s3_proxy
    export s3_dir s3_port s3_pid s3_proxy_base DRIVER=$MR_BUILD/tests/integration/offload/offload_driver
}

teardown_file()
{
    stop_s3
}

setup()
{
    set_up_blobs
    s3_fault
    sql "select millrace.set_queue('q', '{\"offload\": 1000, \"parts\": 1, \"offload_dead\": false, \"offload_delay\": null}')"
}

teardown()
{
    end_daemons
    drop_db
}

# Leaves what one job is in $body.
# Whoever claims it finds that its payload is gone.
missing_is_dead()
{
    post /api/v1/queues/q/claim '{}'
    sql_is "select string_agg(job_ref || ' ' || cause, ' ') from millrace.dead" 'missing damaged'
}

claimed_one()
{
    post /api/v1/queues/q/claim '{}' && says 200 '.jobs | length' 1
}

# A claim may bring fewer than there are while other transactions run.
two_dead()
{
    sql "select millrace.fail(c.lease, c.id, 'broken', retry => false) from millrace.claim('q', 'w', 1) c" >/dev/null
    sql_is "select count(*) from millrace.dead" 2
}

# How many rows of the log name an object, and how many hold bytes.
stored()
{
    sql "select count(*) filter (where millrace.part_coding(payload_state) = 'object') || ' objects, ' || count(*) filter (where octet_length(payload_state) > 1000) || ' inline' from millrace.job"
}

@test "enqueue, one and many: objects, a ledger, and the same bytes for whoever claims" {
    for how in one many jobs; do
        "$DRIVER" put "$how" 5 3000
    done
    [ "$(stored)" = '15 objects, 0 inline' ]
    objects 15
    [ "$(sql "select count(*) from millrace.blob_object o join millrace.job j using (job_id) where o.seg = j.seg and o.object_bytes = 3000")" = 15 ]
    [ "$("$DRIVER" take complete 100)" = '15 jobs, 15 whole' ]
    "$DRIVER" put one 1 1000
    [ "$(stored)" = '15 objects, 0 inline' ]
    [ "$("$DRIVER" take complete 100)" = '1 jobs, 1 whole' ]
}

@test "what is compressed below the size stays in its row; above it, it is decoded from the object" {
    sql "select millrace.set_queue('q', '{\"compress\": 500}')"
    printf '{"kind": "k", "queue": "q", "args": {"n": 1}, "state": "%s"}\n' "$(head -c 6000 /dev/zero | base64 -w0)" >"$BATS_TEST_TMPDIR/jobs"
    printf '{"kind": "k", "queue": "q", "args": {"n": 2}, "state": "%s"}\n' "$(head -c 6000 /dev/urandom | base64 -w0)" >>"$BATS_TEST_TMPDIR/jobs"
    printf '{"kind": "k", "queue": "q", "args": {"n": 3}, "state": "%s"}\n' "$(head -c 5000 /dev/urandom | base64 -w0)" >>"$BATS_TEST_TMPDIR/jobs"
    "$MR_BIN" enqueue --file "$BATS_TEST_TMPDIR/jobs"
    [ "$(sql "select string_agg(millrace.part_coding(payload_state) || ' ' || millrace.part_size(payload_state), ', ' order by payload_args ->> 'n') from millrace.job")" = 'zstd 6000, object 6000, object 5000' ]
    objects 2
    sql "select millrace.set_queue('q', '{\"compress\": null}')"
    api_up
    post /api/v1/queues/q/claim '{"max_jobs": 10}'
    says 200 '.jobs | length' 3
    [ "$(jq -r '.jobs[].state' <<<"$body" | sort)" = "$(jq -r .state "$BATS_TEST_TMPDIR/jobs" | sort)" ]
}

@test "a new state by fail and requeue is an object of its own; a part that is kept is the same one" {
    "$DRIVER" put one 2 3000
    [ "$("$DRIVER" take keep 2)" = '2 jobs, 2 whole' ]
    objects 2
    [ "$("$DRIVER" take requeue 2)" = '2 jobs, 2 whole' ]
    objects 4
    [ "$("$DRIVER" take fail 2)" = '2 jobs, 2 whole' ]
    objects 6
    [ "$(sql "select count(*) || ' ' || count(distinct job_id) from millrace.blob_object")" = '6 2' ]
    sql "select count(millrace.run_now(job_id)) from millrace.delayed" >/dev/null
    [ "$("$DRIVER" take complete 2)" = '2 jobs, 2 whole' ]
}

@test "workers: read before the handler runs, written before the outcome is" {
    "$DRIVER" put many 40 3000
    run "$DRIVER" work
    [ "$status" = 0 ]
    [ "$output" = '80 ran, 80 whole' ]
    objects 80
    [ "$(sql "select millrace.depth('q')")" = 0 ]
    [ "$(sql "select count(*) from millrace.dead")" = 0 ]
}

@test "HTTP: enqueue in both forms, claim, requeue with a state" {
    api_up
    state=$(head -c 3000 /dev/urandom | base64 -w0)
    post /api/v1/jobs "{\"kind\": \"k\", \"queue\": \"q\", \"state\": \"$state\"}"
    says 201
    post /api/v1/jobs "[{\"kind\": \"k\", \"queue\": \"q\", \"blob\": \"$state\"}, {\"kind\": \"k\", \"queue\": \"q\"}]"
    says 201 '.ids | length' 2
    objects 2
    for part in state blob none; do
        wait_until 20 claimed_one
        [ "$part" = none ] || [ "$(jq -r ".jobs[0].$part" <<<"$body")" = "$state" ]
    done
    lease=$(jq -r .lease <<<"$body")
    id=$(jq -r '.jobs[0].id' <<<"$body")
    post "/api/v1/leases/$lease/requeue" "{\"id\": $id, \"state\": \"$state\"}"
    says 200
    objects 3
    wait_until 20 claimed_one
    [ "$(jq -r '.jobs[0].state' <<<"$body")" = "$state" ]
    post "/api/v1/leases/$(jq -r .lease <<<"$body")/finish" "{\"outcomes\": [{\"id\": $id, \"outcome\": \"requeued\", \"blob\": \"$state\"}]}"
    says 200
    objects 4
}

# A store that is down: HTTP answers all the same, and other requests do not wait for it.
@test "HTTP: a store that is down, an object that is missing" {
    api_up
    state=$(head -c 3000 /dev/urandom | base64 -w0)
    post /api/v1/jobs "{\"kind\": \"k\", \"queue\": \"q\", \"ref\": \"there\", \"state\": \"$state\"}"
    post /api/v1/jobs "{\"kind\": \"k\", \"queue\": \"q\", \"ref\": \"missing\", \"state\": \"$state\"}"
    objects 2
    s3_native DELETE "/$bucket/here/$(sql "select millrace.part_reference(payload_state) ->> 'key' from millrace.job where job_ref = 'missing'")"
    s3_fault '{"status": 503}'
    post /api/v1/jobs "{\"kind\": \"k\", \"queue\": \"q\", \"ref\": \"inline\", \"state\": \"$state\"}"
    says 201
    post /api/v1/jobs "[{\"kind\": \"k\", \"queue\": \"other\", \"state\": \"$state\"}]"
    says 201
    [ "$(sql "select octet_length(payload_state) from millrace.job where job_ref = 'inline'")" = 3000 ]
    wait_until 60 claimed_one
    [ "$(jq -r '.jobs[0].ref' <<<"$body")" = inline ]
    [ "$(jq -r '.jobs[0].state' <<<"$body")" = "$state" ]
    [ "$(sql "select count(*) || ' ' || max(attempt) from millrace.delayed")" = '2 1' ]
    s3_fault
    sql "select count(millrace.run_now(job_id)) from millrace.delayed" >/dev/null
    wait_until 120 claimed_one
    [ "$(jq -r '.jobs[0].ref + " " + .jobs[0].state' <<<"$body")" = "there $state" ]
    wait_until 60 missing_is_dead
}

@test "an object that is missing or damaged buries its own job and no other, cause damaged" {
    "$DRIVER" put one 6 3000
    key() { sql "select millrace.part_reference(payload_state) ->> 'key' from millrace.job where payload_args ->> 'n' = '$1'"; }
    s3_native DELETE "/$bucket/here/$(key 0)"
    s3_native PUT "/$bucket/here/$(key 1)" --data-binary 'something else' >/dev/null
    [ "$("$DRIVER" take complete 3)" = '1 jobs, 1 whole' ]
    s3_native DELETE "/$bucket/here/$(key 3)"
    [ "$("$DRIVER" work)" = '4 ran, 4 whole' ]
    [ "$(sql "select string_agg(payload_args ->> 'n' || ' ' || cause, ', ' order by payload_args ->> 'n') from millrace.dead")" = '0 damaged, 1 damaged, 3 damaged' ]
    grep -qE '^state cannot be decoded: object .*/new-[0-9a-f]{32}: missing: ' <<<"$(sql "select failure from millrace.dead where payload_args ->> 'n' = '3'")"
}

@test "a store that is down: enqueue writes into the row, claimed jobs wait with their attempt, others run" {
    "$DRIVER" put one 2 3000
    s3_fault '{"status": 503}'
    "$DRIVER" put one 2 2000
    [ "$(stored)" = '2 objects, 2 inline' ]
    [ "$("$DRIVER" take complete 10)" = '2 jobs, 2 whole' ]
    [ "$(sql "select count(*) || ' ' || max(attempt) || ' ' || bool_and(due_at > now() + interval '1 second') from millrace.delayed where lane >> 12 = (select queue_id from millrace.queue where queue_name = 'q')")" = '2 1 true' ]
    s3_fault
    sql "select count(millrace.run_now(job_id)) from millrace.delayed" >/dev/null
    [ "$("$DRIVER" work)" = '4 ran, 4 whole' ]
    [ "$(sql "select count(*) from millrace.dead")" = 0 ]
}

@test "without a store: parts are written into the row, and a reference says what to set" {
    "$DRIVER" put one 1 3000
    unset MILLRACE_BLOBS
    "$DRIVER" put one 1 2000
    [ "$(stored)" = '1 objects, 1 inline' ]
    [ "$("$DRIVER" take complete 10)" = '1 jobs, 1 whole' ]
    sql "select count(millrace.run_now(job_id)) from millrace.delayed" >/dev/null
    run "$DRIVER" take complete 10
    [ "$status" = 1 ]
    grep -q 'none is configured' <<<"$output"
    grep -q 'hint: Set MILLRACE_BLOBS' <<<"$output"
    [ "$(sql "select max(attempt) from millrace.delayed")" = 1 ]
    OFFLOAD_BLOBS=s4://nowhere run "$DRIVER" take complete 10
    [ "$status" = 1 ]
    grep -q 'not the address of a blob store' <<<"$output"
    sql "select count(millrace.run_now(job_id)) from millrace.delayed" >/dev/null
    [ "$(OFFLOAD_BLOBS=$(s3_address "$bucket/here") "$DRIVER" take complete 10)" = '1 jobs, 1 whole' ]
}

@test "the sweep knows objects of living jobs, and removes one whose row was never written" {
    "$DRIVER" put one 3 3000
    home=$(sql "select millrace.blob_home()")
    s3_native PUT "/$bucket/here/$home/20200101/new-orphan" --data-binary orphan >/dev/null
    objects 4
    carry_and_sweep sweeper 1ms
    wait_until 60 logged sweeper 'blobs.orphans'
    wait_until 60 objects 3
    [ "$("$DRIVER" take complete 10)" = '3 jobs, 3 whole' ]
}

@test "purge_dead, purge and drop_queue remove the objects of jobs that wait or are dead" {
    carry
    "$DRIVER" put one 4 3000
    wait_until 20 two_dead
    [ "$(sql "select millrace.purge_dead('q')")" = 2 ]
    wait_until 60 objects 2
    sql "select millrace.requeue(c.lease, c.id, '{\"delay\": \"1 hour\"}') from millrace.claim('q', 'w', 1) c" >/dev/null
    [ "$(sql "select millrace.purge('q')")" = 2 ]
    wait_until 60 objects 1
    sql "select millrace.drop_queue('q')"
}
