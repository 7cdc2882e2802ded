#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# Payloads in a blob store when something dies: the store, the daemon.
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
    [ ! -e "$BATS_FILE_TMPDIR/s3_pid" ] || s3_pid=$(cat "$BATS_FILE_TMPDIR/s3_pid")
    stop_s3
}

setup() { set_up_blobs; }

teardown()
{
    end_daemons
    drop_db
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

@test "orphans are removed, and nothing else" {
    home=$(sql "select millrace.blob_home()")
    s3_native PUT "/$bucket/here/$home/20260101/1-state-abc" --data-binary orphan >/dev/null
    s3_native PUT "/$bucket/here/another/20260101/1-state-abc" --data-binary 'of another database' >/dev/null
    s3_native PUT "/$bucket/elsewhere" --data-binary 'of somebody else' >/dev/null
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

# The last one: who has its tokens is another server afterwards.
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
    printf '%s\n' "$s3_pid" >"$BATS_FILE_TMPDIR/s3_pid"
    wait_until 120 logged carrier 'blobs.up: the blob store answers again'
    wait_until 120 claimed_all 6
    [ "$(whole)" = 5 ]
    [ "$(sql "select count(*) from millrace.dead")" = 0 ]
    wait_until 90 away 1
}
