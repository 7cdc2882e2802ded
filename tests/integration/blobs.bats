#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# Payloads in a blob store: a real S3 server, a real daemon.
bats_require_minimum_version 1.5.0
load ../lib/server
load ../lib/daemon
load ../lib/s3
load ../lib/blobs
bucket= # of set_up_blobs

setup_file()
{
    need_s3
    start_s3
    export s3_dir s3_port s3_pid s3_proxy_base
}

teardown_file()
{
    stop_s3
}

setup() { set_up_blobs; }

teardown()
{
    end_daemons
    drop_db
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

@test "a job that becomes due by itself is fetched ahead of time" {
    carry
    put_heavy 1
    wait_until 60 away 1
    sql "select millrace.change_job(job_id, '{\"delay\": \"7 seconds\"}') from millrace.delayed"
    away 1
    wait_until 60 claimed_all 1
    [ "$(whole)" = 1 ]
}

@test "an object that is missing or damaged sends its own job to the dead letters, and no other" {
    carry
    put_heavy 4
    wait_until 60 away 4
    signal carrier TERM
    ended carrier
    missing=$(sql "select object_key from millrace.blob_object o join millrace.delayed d using (job_id) where d.job_ref = 'ref1' and object_key like '%-state-%'")
    damaged=$(sql "select object_key from millrace.blob_object o join millrace.delayed d using (job_id) where d.job_ref = 'ref2' and object_key like '%-blob-%'")
    s3_native DELETE "/$bucket/here/$missing"
    s3_native PUT "/$bucket/here/$damaged" --data-binary 'something else' >/dev/null
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

@test "the store of the file, with its keys, and another one after a reload" {
    s3_bucket second
    printf 'blobs = "%s"\nblobs_access_key = "millrace:test"\nblobs_secret_key = "%s"\n' "$(s3_address "$bucket/file")" "\${SECRET}" >"$BATS_TEST_TMPDIR/blobs.conf"
    secret=$AWS_SECRET_ACCESS_KEY
    MILLRACE_BLOBS=s3://nowhere AWS_ACCESS_KEY_ID=wrong AWS_SECRET_ACCESS_KEY=wrong SECRET=$secret daemon carrier serve -c "$BATS_TEST_TMPDIR/blobs.conf" --roles maintain
    put_heavy 1
    wait_until 60 away 1
    objects 2
    sed -i "s#$bucket/file#second#" "$BATS_TEST_TMPDIR/blobs.conf"
    signal carrier HUP
    wait_until 60 logged carrier 'blobs.start: payloads are carried to s3://second'
    put_heavy 2 2
    wait_until 60 away 2
    [ "$(s3_count second)" = 2 ]
    run ! grep -F "$secret" "$BATS_TEST_TMPDIR/carrier.log"
}
