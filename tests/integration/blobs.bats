#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# Payloads in a blob store: a real S3 server, a real daemon. Jobs are delayed for hours and called back with run_now, so that no test waits for their time.
bats_require_minimum_version 1.5.0
load ../lib/server
load ../lib/daemon
load ../lib/s3

setup()
{
    need_s3
    fresh_db
    start_s3
    s3_bucket jobs
    MILLRACE_BLOBS=$(s3_address jobs/here)
    export MILLRACE_BLOBS
    sql "select millrace.set_queue('q', '{\"offload_delay\": \"10 seconds\", \"offload_dead\": true}')"
}

teardown()
{
    end_daemons
    stop_s3
    drop_db
}

carry()
{
    daemon "${1:-carrier}" serve --roles maintain
}

# n jobs with a state of 3000 bytes and a blob of 1500, both noise and different for each.
put_heavy()
{
    sql "select count(millrace.enqueue('k', jsonb_build_object('n', n), 'q', delay => '2 hours', ref => 'ref' || n,
           state => (select string_agg(sha256(convert_to('s' || n || '.' || i, 'UTF8')), '') from generate_series(1, 94) i),
           blob => (select string_agg(sha256(convert_to('b' || n || '.' || i, 'UTF8')), '') from generate_series(1, 47) i)))
         from generate_series(${2:-1}, $1) n"
}

# How many of the jobs that were claimed have what put_heavy gave them.
whole()
{
    sql "select count(*) from claimed c
          where state = (select string_agg(sha256(convert_to('s' || (args ->> 'n') || '.' || i, 'UTF8')), '') from generate_series(1, 94) i)
            and blob = (select string_agg(sha256(convert_to('b' || (args ->> 'n') || '.' || i, 'UTF8')), '') from generate_series(1, 47) i)"
}

claim_into_table()
{
    sql "create table if not exists claimed (id bigint, args jsonb, state bytea, blob bytea)" 2>/dev/null
    sql "insert into claimed select id, args, state, blob from millrace.claim('q', 'w', 10000)"
}

claimed_all()
{
    claim_into_table
    [ "$(sql "select count(*) from claimed")" -ge "$1" ]
}

away()
{
    [ "$(sql "select count(*) from millrace.delayed where away_due is not null")" = "$1" ]
}

objects()
{
    [ "$(s3_count jobs)" = "$1" ]
}

run_all()
{
    sql "select count(*) from (select millrace.run_now(id) from millrace.jobs where queue = 'q' and status = 'scheduled') r" >/dev/null
}

@test "the payload of a delayed job goes out, comes back byte for byte, and its objects are removed" {
    carry
    [ "$(put_heavy 20)" = 20 ]
    wait_until 60 away 20
    objects 40
    [ "$(sql "select max(octet_length(payload_state) + octet_length(payload_blob)) < 700 from millrace.delayed")" = t ]
    [ "$(sql "select count(*) from millrace.list_jobs('{\"queue\": \"q\", \"status\": \"scheduled\"}')")" = 1 ]
    grep -qF -- 'scheduled' <<<"$(sql "select millrace.job(min(job_id)) from millrace.delayed")"
    run_all
    wait_until 60 claimed_all 20
    [ "$(whole)" = 20 ]
    wait_until 60 objects 0
    wait_until 60 sql_is "select millrace.metrics() -> 'removed_total' ->> 'objects'" 40
    signal carrier TERM
    ended carrier
    [ "$status" = 0 ]
}

sql_is()
{
    [ "$(sql "$1")" = "$2" ]
}

@test "a job that becomes due by itself is fetched ahead of time" {
    carry
    put_heavy 1
    wait_until 60 away 1
    sql "select millrace.change_job(job_id, '{\"delay\": \"7 seconds\"}') from millrace.delayed"
    away 1
    wait_until 60 claimed_all 1
    [ "$(whole)" = 1 ]
}

@test "a store that is down delays the jobs it has, loses nothing and blocks no other job" {
    carry
    put_heavy 5
    wait_until 60 away 5
    kill_s3
    run_all
    sql "select millrace.enqueue('other', queue => 'q')"
    wait_until 60 claimed_all 1
    [ "$(sql "select count(*) from claimed where state is null")" = 1 ]
    wait_until 90 logged carrier 'blobs.down: the blob store does not serve'
    put_heavy 6 6
    [ "$(sql "select count(*) from millrace.delayed where away_due is null and job_ref = 'ref6'")" = 1 ]
    start_s3_again
    wait_until 120 logged carrier 'blobs.up: the blob store answers again'
    wait_until 120 claimed_all 6
    [ "$(whole)" = 5 ]
    [ "$(sql "select count(*) from millrace.dead")" = 0 ]
    wait_until 90 away 1
}

@test "an object that is missing or damaged sends its own job to the dead letters, and no other" {
    carry
    put_heavy 4
    wait_until 60 away 4
    signal carrier TERM
    ended carrier
    missing=$(sql "select object_key from millrace.blob_object o join millrace.delayed d using (job_id) where d.job_ref = 'ref1' and object_key like '%-state-%'")
    damaged=$(sql "select object_key from millrace.blob_object o join millrace.delayed d using (job_id) where d.job_ref = 'ref2' and object_key like '%-blob-%'")
    s3_native DELETE "/jobs/here/$missing"
    s3_native PUT "/jobs/here/$damaged" --data-binary 'something else' >/dev/null
    run_all
    carry
    wait_until 60 claimed_all 2
    wait_until 60 sql_is "select count(*) from millrace.dead" 2
    [ "$(whole)" = 2 ]
    grep -qE -- '^object .*-state-.* of state: missing: ' <<<"$(sql "select failure from millrace.dead where job_ref = 'ref1'")"
    grep -qF -- 'damaged' <<<"$(sql "select cause || ' ' || failure from millrace.dead where job_ref = 'ref2'")"
    logged carrier 'blobs.buried'
}

@test "dead letters: out, listed with their sizes, replayed, purged" {
    carry
    sql "select millrace.enqueue('k', queue => 'q', max_attempts => 1, ref => 'r' || n, state => decode(repeat('ab', 5000), 'hex')) from generate_series(1, 3) n" >/dev/null
    sql "select millrace.fail(c.lease, c.id, 'broken') from millrace.claim('q', 'w', 10) c" >/dev/null
    wait_until 60 objects 3
    wait_until 60 sql_is "select count(*) from millrace.dead where millrace.is_away(payload_state)" 3
    grep -qF -- '"r1"' <<<"$("$MR_BIN" dead list --json)"
    grep -qF -- '5000' <<<"$(sql "select millrace.job(min(job_id)) -> 'state' from millrace.dead")"
    sql "select millrace.replay(min(job_id)) from millrace.dead"
    wait_until 60 claimed_all 1
    [ "$(sql "select count(*) from claimed where state = decode(repeat('ab', 5000), 'hex')")" = 1 ]
    [ "$(sql "select millrace.purge_dead('q')")" = 2 ]
    wait_until 60 objects 0
}

@test "purge and drop_queue remove objects" {
    carry
    put_heavy 3
    wait_until 60 away 3
    sql "select millrace.purge('q')"
    wait_until 60 objects 0
    put_heavy 3
    wait_until 60 away 3
    sql "select millrace.drop_queue('q')"
    wait_until 60 objects 0
}

@test "keys that are wrong: the payload stays where it is, and the log says why" {
    AWS_SECRET_ACCESS_KEY=wrong carry
    put_heavy 1
    wait_until 60 logged carrier 'blobs.down: .*hint='
    away 0
    objects 0
    run_all
    wait_until 60 claimed_all 1
    [ "$(whole)" = 1 ]
}

@test "an address that is none is refused at the start" {
    MILLRACE_BLOBS=s4://nowhere run "$MR_BIN" serve --roles maintain
    [ "$status" = 1 ]
    grep -qF "not the address of a blob store" <<<"$output"
}

@test "of two daemons one carries, and the other takes over" {
    carry one
    put_heavy 1
    wait_until 60 away 1
    carry two
    wait_until 60 logged two serve.ready
    signal one KILL
    ended one
    put_heavy 2 2
    wait_until 90 away 2
    signal two TERM
    ended two
    carry three
    put_heavy 3 3
    wait_until 20 away 3
    objects 6
}

# A daemon that looks for orphans all the time, and takes every object for one that nobody knows.
carry_and_sweep()
{
    printf 'blobs_sweep = "1s"\nblobs_orphans = "%s"\n' "$2" >"$BATS_TEST_TMPDIR/sweep.conf"
    daemon "$1" serve -c "$BATS_TEST_TMPDIR/sweep.conf" --roles maintain
}

@test "the store of the file, with its keys, and another one after a reload" {
    s3_bucket second
    printf 'blobs = "%s"\nblobs_access_key = "millrace:test"\nblobs_secret_key = "%s"\n' "$(s3_address jobs/file)" "\${SECRET}" >"$BATS_TEST_TMPDIR/blobs.conf"
    secret=$AWS_SECRET_ACCESS_KEY
    MILLRACE_BLOBS=s3://nowhere AWS_ACCESS_KEY_ID=wrong AWS_SECRET_ACCESS_KEY=wrong SECRET=$secret daemon carrier serve -c "$BATS_TEST_TMPDIR/blobs.conf" --roles maintain
    put_heavy 1
    wait_until 60 away 1
    objects 2
    sed -i 's#jobs/file#second#' "$BATS_TEST_TMPDIR/blobs.conf"
    signal carrier HUP
    wait_until 60 logged carrier 'blobs.start: payloads are carried to s3://second'
    put_heavy 2 2
    wait_until 60 away 2
    [ "$(s3_count second)" = 2 ]
    run ! grep -F "$secret" "$BATS_TEST_TMPDIR/carrier.log"
}

@test "orphans are removed, and nothing else" {
    home=$(sql "select blob_home from millrace.home")
    s3_native PUT "/jobs/here/$home/20260101/1-state-abc" --data-binary orphan >/dev/null
    s3_native PUT "/jobs/here/another/20260101/1-state-abc" --data-binary 'of another database' >/dev/null
    s3_native PUT "/jobs/elsewhere" --data-binary 'of somebody else' >/dev/null
    carry_and_sweep young 1h
    put_heavy 3
    wait_until 60 away 3
    objects 9
    signal young TERM
    ended young
    carry_and_sweep old 1s
    wait_until 60 logged old 'blobs.orphans: removed 1 objects'
    objects 8
    run_all
    wait_until 60 claimed_all 3
    [ "$(whole)" = 3 ]
    wait_until 60 objects 2
}

@test "kill -9 of the daemon in a loop: no payload is lost, and no object is left" {
    for round in 1 2 3 4 5 6; do
        daemon "killed$round" serve --roles maintain
        put_heavy $((round * 30)) $((round * 30 - 29)) >/dev/null
        wait_until 60 sql_is "select count(*) > 0 from millrace.blob_object" t
        [ $((round % 2)) = 0 ] || run_all
        sleep "0.$((RANDOM % 10))" # any moment will do
        signal "killed$round" KILL
        ended "killed$round" || true
        sql "select millrace.offload_turn(holder, true) from (select holder from millrace.lock_held order by lock_no desc limit 1) h" >/dev/null
    done
    carry_and_sweep last 2s
    run_all
    wait_until 120 claimed_all 180
    [ "$(whole)" = 180 ]
    [ "$(sql "select count(distinct id) from claimed")" = 180 ]
    wait_until 120 objects 0
    [ "$(sql "select count(*) from millrace.dead")" = 0 ]
}
