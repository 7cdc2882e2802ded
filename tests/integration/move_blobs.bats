#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# `millrace move` with jobs whose payload is in a blob store: between two servers, with a real S3. The two databases share a bucket and a prefix, or have one each.
# shellcheck disable=SC2154 # to and to_db come from lib/there
bats_require_minimum_version 1.5.0
load ../lib/server
load ../lib/there
load ../lib/daemon
load ../lib/s3
load ../lib/blobs
bucket= # of set_up_blobs

setup_file()
{
    need_s3
    there_up
    start_s3
    start_s3_proxy
    export s3_dir s3_port s3_pid s3_proxy_base DRIVER=$MR_BUILD/tests/integration/offload/offload_driver
}

teardown_file()
{
    stop_s3
    there_down
}

setup()
{
    cd "$BATS_TEST_TMPDIR" || return
    set_up_blobs
    there_db
    s3_fault
    sql "select millrace.set_queue('q', '{\"offload\": 1000, \"parts\": 1}')"
    there "select millrace.set_queue('q', '{\"parts\": 1}')"
    mover=
}

teardown()
{
    [ -z "$mover" ] || kill -KILL "$mover" 2>/dev/null || true
    end_daemons
    drop_db
}

move()
{
    run "$MR_BIN" move q --to "$to" "$@"
    printf '%s\n' "$output" >&2
}

# How parts stand in the rows there.
parts_there()
{
    there "select count(*) filter (where octet_length(payload_state) = 3000) || ' inline, ' || count(*) filter (where millrace.is_object(payload_state)) || ' objects' from millrace.job"
}

# A worker of the other database runs $1 jobs, each whole, and there are no others.
runs_there()
{
    [ "$(MILLRACE_DSN=$to "$DRIVER" work)" = "$1 ran, $1 whole" ]
}

here_is()
{
    [ "$(sql "select available + scheduled + retrying || ' left, ' || (select count(*) from millrace.moving) || ' moving' from millrace.stats('q')")" = "$1" ]
}

key_of_job()
{
    sql "select millrace.part_reference(payload_state) ->> 'key' from millrace.job where payload_args ->> 'n' = '$1'"
}

@test "objects are read on the way: bytes in the rows there, and the objects here are removed" {
    "$DRIVER" put one 20 3000
    objects 20
    move --batch 7
    [ "$status" -eq 0 ]
    has '20 payload parts from the blob store'
    here_is '0 left, 0 moving'
    [ "$(parts_there)" = '20 inline, 0 objects' ]
    [ "$(there 'select count(*) from millrace.blob_object')" = 0 ]
    carry
    wait_until 60 objects 0
    there "select millrace.set_queue('q', '{\"offload\": null}')"
    [ "$(unset MILLRACE_BLOBS; MILLRACE_DSN=$to "$DRIVER" take complete 100)" = '20 jobs, 20 whole' ]
}

@test "with --to-blobs they are objects there, as the queue wants it, in the same bucket or another" {
    there "select millrace.set_queue('q', '{\"offload\": 2000}')"
    "$DRIVER" put one 5 3000
    "$DRIVER" put one 1 1500
    move --to-blobs "$MILLRACE_BLOBS" --limit 3
    s3_bucket "$bucket-there"
    other=$(s3_address "$bucket-there/there")
    move --to-blobs "$other" --json
    [ "$status" -eq 0 ]
    [ "$(jq -c '[.jobs, .carried, .unreadable, .stored]' <<<"$output")" = '[3,3,0,0]' ]
    [ "$(there "select count(*) filter (where millrace.is_object(payload_state)) || ' ' || max(octet_length(payload_state)) from millrace.job")" = '5 1500' ]
    [ "$(there "select count(*) from millrace.blob_object o join millrace.job j using (job_id) where starts_with(o.object_key, millrace.blob_home() || '/') and millrace.names_object(j.payload_state, o.object_key)")" = 5 ]
    carry
    wait_until 60 objects 3 # those of the other database
    # a worker has one store: what the first call wrote to the other one is not there
    [ "$(MILLRACE_BLOBS=$other MILLRACE_DSN=$to "$DRIVER" take complete 6)" = '3 jobs, 3 whole' ]
    [ "$(there "select count(*) from millrace.dead where cause = 'damaged'")" = 3 ]
}

@test "without the store they stay, are counted, and it says what to do; with it the next call takes them" {
    "$DRIVER" put one 5 3000
    "$DRIVER" put one 4 500
    sql "select millrace.fail(c.lease, c.id, 'later', retry_in => '1 hour') from millrace.claim('q', 'w', 2) c" >/dev/null
    (unset MILLRACE_BLOBS; "$MR_BIN" move q --to "$to" >said || echo "$?" >>said)
    cat said >&2
    grep -q '^5 jobs stay because a part of them is in the blob store: run this again with MILLRACE_BLOBS or --blobs' said
    [ "$(tail -n 1 said)" = 1 ]
    here_is '5 left, 0 moving'
    [ "$(unset MILLRACE_BLOBS; "$MR_BIN" move q --to "$to" --json | jq .stored)" = 5 ]
    move --blobs "$MILLRACE_BLOBS"
    [ "$status" -eq 0 ]
    here_is '0 left, 0 moving'
    there "select count(millrace.run_now(job_id)) from millrace.delayed" >/dev/null
    runs_there 18 # each twice: the driver's worker gives a job another state first
    [ "$(there "select count(*) from millrace.dead")" = 0 ]
    [ "$(there "select millrace.depth('q')")" = 0 ]
}

# Retries, delayed jobs and dead letters that the daemon moved to the store.
@test "what is away comes along: delayed jobs with their times, dead letters with their errors" {
    sql "select millrace.set_queue('q', '{\"offload\": null}')"
    put_heavy 6
    sql "select millrace.enqueue('k', '{\"dead\": 1}', 'q', priority => 1, state => (select string_agg(sha256(convert_to('s' || i, 'UTF8')), '') from generate_series(1, 94) i))" >/dev/null
    sql "select millrace.fail(c.lease, c.id, 'broken', retry => false) from millrace.claim('q', 'w', 1) c" >/dev/null
    carry
    wait_until 60 away 6
    wait_until 60 sql_is "select count(*) from millrace.dead where millrace.is_away(payload_state)" 1
    times=$(sql "select string_agg(job_ref || date_trunc('second', away_due), ' ' order by job_ref) from millrace.delayed")
    (unset MILLRACE_BLOBS; "$MR_BIN" move q --to "$to" --dead >said || echo "$?" >>said)
    grep -q '^7 jobs stay' said
    move --dead
    [ "$status" -eq 0 ]
    has 'moved 7 jobs'
    [ "$(there "select string_agg(job_ref || date_trunc('second', due_at), ' ' order by job_ref) from millrace.delayed")" = "$times" ]
    [ "$(there "select count(*) from millrace.delayed where octet_length(payload_state) = 3008 and octet_length(payload_blob) = 1504")" = 6 ]
    [ "$(there "select failure || ' ' || octet_length(payload_state) from millrace.dead")" = 'broken 3008' ]
    wait_until 60 objects 0
}

@test "a mover that is killed again and again: each job arrives once and whole, at most orphans are left" {
    "$DRIVER" put one 120 3000
    there "select millrace.set_queue('q', '{\"offload\": 2000}')"
    local kills=0
    s3_fault '{"method": "GET", "delay": 0.05}'
    for _ in 1 2 3 4 5 6 7 8; do
        "$MR_BIN" move q --to "$to" --to-blobs "$MILLRACE_BLOBS" --batch 5 --quiet >/dev/null 2>&1 3>&- &
        mover=$!
        sleep 0.$((RANDOM % 5 + 1))
        ! kill -KILL "$mover" 2>/dev/null || kills=$((kills + 1))
        wait "$mover" 2>/dev/null || true
    done
    mover=
    s3_fault
    move --to-blobs "$MILLRACE_BLOBS"
    [ "$status" -eq 0 ]
    here_is '0 left, 0 moving'
    [ "$(there "select count(*) || ' ' || count(distinct payload_args ->> 'n') from millrace.job")" = '120 120' ]
    show "killed $kills times"
    printf 'blobs_sweep = "1s"\nblobs_orphans = "1ms"\ndsn = "%s"\n' "$to" >there.conf
    daemon there serve -c there.conf --roles maintain
    carry
    wait_until 60 objects 120
    end_daemons
    [ "$(MILLRACE_DSN=$to "$DRIVER" take complete 1000)" = '120 jobs, 120 whole' ]
}

# Delayed jobs: what was in the log once is named there for a while.
@test "a store that is down is waited for, then the batch waits; the objects of jobs on their way are kept" {
    for n in 1 2 3; do
        printf '{"kind": "k", "queue": "q", "args": {"n": %d}, "delay": "1 hour", "state": "%s"}\n' "$n" "$(head -c 3000 /dev/urandom | base64 -w0)"
    done >put.jsonl
    "$MR_BIN" enqueue --file put.jsonl
    objects 3
    s3_fault '{"status": 503}'
    move --wait 1s
    [ "$status" -eq 3 ]
    has 'the blob store of the database to move from: '
    here_is '0 left, 3 moving'
    sql "update millrace.blob_object set seg = null, look_at = now()"
    carry
    wait_until 20 sql_is "select count(*) || ' ' || bool_and(look_at > now()) from millrace.blob_object" '3 true' # looked at, and kept
    (unset MILLRACE_BLOBS; "$MR_BIN" move q --to "$to" 2>&1 || true) | grep -q 'has parts that are in the blob store'
    s3_fault
    move
    [ "$status" -eq 0 ]
    [ "$(there 'select count(*) from millrace.delayed where octet_length(payload_state) = 3000')" = 3 ]
    wait_until 60 objects 0
}

@test "another store than theirs stops the move before anything is lost; --give-back puts the jobs back" {
    "$DRIVER" put one 3 3000
    s3_bucket "$bucket-wrong"
    MILLRACE_BLOBS=$(s3_address "$bucket-wrong/x") run "$MR_BIN" move q --to "$to"
    [ "$status" -ne 0 ]
    has 'it has no object of this database'
    here_is '0 left, 3 moving'
    run "$MR_BIN" move q --give-back
    here_is '3 left, 0 moving'
    [ "$("$DRIVER" take complete 10)" = '3 jobs, 3 whole' ]
    MILLRACE_BLOBS=s4://x run "$MR_BIN" move q --to "$to"
    [ "$status" -ne 0 ]
    has 'not the address of a blob store'
}

@test "an object that is missing or damaged makes its job alone a dead letter there" {
    "$DRIVER" put one 6 3000
    s3_native DELETE "/$bucket/here/$(key_of_job 1)"
    s3_native PUT "/$bucket/here/$(key_of_job 2)" --data-binary 'something else' >/dev/null
    move
    [ "$status" -eq 0 ]
    has '2 parts are missing in the blob store or damaged: their jobs become dead letters there'
    [ "$(parts_there)" = '4 inline, 2 objects' ]
    runs_there 8
    [ "$(there "select string_agg(payload_args ->> 'n' || ' ' || cause, ', ' order by payload_args ->> 'n') from millrace.dead")" = '1 damaged, 2 damaged' ]
}
