#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# Payload parts that are objects of a blob store, on several shards that share one bucket and prefix, and in databases that are copies of each other: names never
# collide, and nobody removes what another's jobs need. Real S3.
# shellcheck disable=SC2030,SC2031,SC2154 # bats runs a test in a subshell; databases and addresses are set elsewhere
bats_require_minimum_version 1.5.0
load ../lib/server
load ../lib/shards
load ../lib/daemon
load ../lib/s3
load ../lib/blobs
load ../lib/api
bucket=
body= # of lib/api

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
    cd "$BATS_TEST_TMPDIR" || return
    new_shards 2
    bucket=shards$BATS_TEST_NUMBER
    s3_bucket "$bucket"
    MILLRACE_BLOBS=$(s3_address "$bucket/here")
    export MILLRACE_BLOBS
    s3_fault
    for i in 0 1; do
        on "$i" "select millrace.set_queue('q', '{\"offload\": 1000, \"parts\": 1}')"
    done
}

teardown()
{
    end_daemons
    drop_databases
}

# A daemon that carries for the shards $2..., and looks for objects that nobody knows all the time, however young they are.
sweep_of()
{
    local name=$1 list='' i
    shift
    for i in "$@"; do
        list+="${list:+, }\"${addresses[i]}\""
    done
    printf 'dsn = {%s}\nmaintain = "200ms"\nblobs_sweep = "1s"\nblobs_orphans = "1ms"\n' "$list" >"$name.conf"
    daemon "$name" serve -c "$name.conf" --roles maintain
}

home_of()
{
    on "$1" "select millrace.blob_home()"
}

# An object among those of a shard that no row names.
orphan()
{
    s3_native PUT "/$bucket/here/$(home_of "$1")/20200101/new-orphan$1" --data-binary orphan >/dev/null
}

there()
{
    s3_native GET "/$bucket/here/$1" >/dev/null
}

gone_from_store()
{
    ! there "$1"
}

# Claims and completes $1 jobs, each whole. A claim is of one shard, and may bring fewer than there are while other transactions run.
takes()
{
    local left=$1 said deadline=$((SECONDS + 30))
    while [ "$left" -gt 0 ] && [ $SECONDS -lt $deadline ]; do
        said=$("$DRIVER" take complete "$left") || return
        [[ $said =~ ^([0-9]+)\ jobs,\ ([0-9]+)\ whole$ ]] && [ "${BASH_REMATCH[1]}" = "${BASH_REMATCH[2]}" ] || return
        left=$((left - BASH_REMATCH[1]))
    done
    [ "$left" -eq 0 ]
}

# Whether nothing waits on a shard: what did is dead.
bury_all()
{
    on "$1" "select millrace.fail(c.lease, c.id, 'broken', retry => false) from millrace.claim('q', 'w', 100) c" >/dev/null
    [ "$(on "$1" "select millrace.depth('q')")" = 0 ]
}

key_of_job()
{
    on "$1" "select millrace.part_reference(payload_state) ->> 'key' from millrace.job where millrace.is_object(payload_state) order by pos limit 1 offset ${2:-0}"
}

@test "two shards, one bucket: each has its own names, whoever takes the jobs has them whole" {
    for how in one jobs; do
        "$DRIVER" put "$how" 10 3000
    done
    objects 20
    [ "$(sum_on 'select count(*) from millrace.blob_object')" = 20 ]
    [ "$(home_of 0)" != "$(home_of 1)" ]
    for i in 0 1; do
        [ "$(on "$i" "select count(*) > 0 and bool_and(starts_with(object_key, millrace.blob_home() || '/')) from millrace.blob_object")" = t ]
    done
    takes 15
    run "$DRIVER" work
    [ "$output" = '10 ran, 10 whole' ]
    [ "$(sum_on 'select count(*) from millrace.dead')" = 0 ]
}

@test "the sweep of one shard leaves another's objects alone, of its own those that jobs name" {
    "$DRIVER" put one 10 3000
    orphan 0
    orphan 1
    objects 12
    sweep_of zero 0
    wait_until 60 logged zero 'blobs.orphans'
    wait_until 60 objects 11
    there "$(home_of 1)/20200101/new-orphan1"
    sweep_of both 1 0
    wait_until 60 objects 10
    sleep 3 # time for a few sweeps more: nothing says that one found nothing
    objects 10
    run "$DRIVER" work
    [ "$output" = '20 ran, 20 whole' ]
}

@test "what is purged on one shard goes, and nothing else; a completed job's object goes with its segment" {
    sweep_of both 0 1
    for i in 0 1; do
        on "$i" "select millrace.set_queue(q, '{\"retention\": \"2 seconds\"}') from unnest(array['q', 'default']) q" >/dev/null
    done
    "$DRIVER" put one 10 3000
    wait_until 20 bury_all 0
    [ "$(on 0 "select millrace.purge_dead('q')")" = 5 ]
    wait_until 60 objects 5
    takes 5
    wait_until 90 objects 0
}

@test "an object that is missing or damaged buries its own job, on its shard; a store that is down delays" {
    "$DRIVER" put one 10 3000
    s3_native DELETE "/$bucket/here/$(key_of_job 0)"
    s3_native PUT "/$bucket/here/$(key_of_job 1 1)" --data-binary 'something else' >/dev/null
    printf 'dsn = {"%s", "%s"}\nworker w { queue = "q" run = "true" concurrency = 4 poll = "200ms" }\n' "${addresses[@]}" >w.conf
    s3_fault '{"status": 503}'
    "$DRIVER" put one 4 2000 # the store is found to be down: in the rows
    daemon w serve -c w.conf --roles work
    wait_until 60 done_are 4
    [ "$(sum_on "select count(*) from millrace.delayed where attempt = 1")" -eq 10 ]
    [ "$(sum_on 'select count(*) from millrace.dead')" = 0 ]
    s3_fault
    for i in 0 1; do
        on "$i" "select count(millrace.run_now(job_id)) from millrace.delayed" >/dev/null
    done
    wait_until 120 done_are 12 || { show_log w; return 1; }
    for i in 0 1; do
        [ "$(on "$i" "select string_agg(cause || ' ' || attempt, ', ') from millrace.dead")" = 'damaged 1' ]
    done
}

done_are()
{
    [ "$(sum_on "select count(*) from millrace.jobs where status = 'completed'")" -eq "$1" ]
}

# The object is written before it is known that the shard does not take the job.
@test "HTTP: a job whose shard is full goes to the next with an object of that one's; claims read from both" {
    api_more=$'blobs_sweep = "1s"\nblobs_orphans = "5s"' api_up
    state=$(head -c 3000 /dev/urandom | base64 -w0)
    for ((i = 0; i < 4; i++)); do
        post /api/v1/jobs "{\"kind\": \"k\", \"queue\": \"q\", \"state\": \"$state\"}"
        says 201
    done
    on 0 "select millrace.set_queue('q', '{\"depth_limit\": 1}')"
    wait_until 20 sees_limit
    for ((i = 0; i < 4; i++)); do
        post /api/v1/jobs "{\"kind\": \"k\", \"queue\": \"q\", \"state\": \"$state\"}"
        says 201
        [ "$(($(jq .id <<<"$body") >> 48))" -eq 1 ]
    done
    [ "$(on 1 "select count(*) from millrace.blob_object")" -ge 6 ]
    for i in 0 1; do
        [ "$(on "$i" "select count(*) from millrace.job j where millrace.is_object(j.payload_state)
                         and not exists (select from millrace.blob_object o where o.job_id = j.job_id and millrace.names_object(j.payload_state, o.object_key))")" = 0 ]
    done
    [ "$(on 0 "select count(*) from millrace.blob_object")" = 2 ]
    wait_until 60 objects_as_named # those that were written for nothing are gone
    for ((i = 0; i < $(sum_on "select millrace.depth('q')"); )); do
        post /api/v1/queues/q/claim '{}'
        says 200
        [ "$(jq '.jobs | length' <<<"$body")" = 1 ] || continue
        [ "$(jq -r '.jobs[0].state' <<<"$body")" = "$state" ]
        post "/api/v1/leases/$(jq -r .lease <<<"$body")/complete" '{}'
    done
    [ "$(sum_on 'select count(*) from millrace.dead')" = 0 ]
}

# Every job of the shard goes elsewhere from here on.
sees_limit()
{
    ! on 0 "select millrace.enqueue('k', queue => 'q')"
}

objects_as_named()
{
    objects "$(sum_on 'select count(*) from millrace.blob_object')"
}

# Nothing tells a copy within one cluster that it is one.
@test "a copy of a database, made as a template: it reads the original's objects and removes none, and the original none of its" {
    use_shards 0
    "$DRIVER" put one 4 3000
    objects "$(sum_on 'select count(*) from millrace.blob_object')"
    local name=${databases[0]}_copy
    psql -X -q -d postgres -c "create database $name template ${databases[0]}"
    databases+=("$name")
    addresses+=("$(address_of "$name")")
    [ "$(home_of 2)" != "$(home_of 0)" ]
    export MILLRACE_DSN=${addresses[2]}
    takes 2
    "$DRIVER" put one 1 2000
    objects 5
    wait_until 20 bury_all 2
    [ "$(on 2 "select millrace.purge_dead('q')")" = 3 ]
    sweep_of copy 2
    wait_until 60 objects 4 # its own goes
    [ "$(on 2 "select count(*) from millrace.blob_doomed")" = 0 ]
    sweep_of original 0
    "$DRIVER" put one 1 2000
    sleep 3
    objects 5
    takes 1
    use_shards 0
    takes 4
}
