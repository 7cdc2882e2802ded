# SPDX-License-Identifier: PostgreSQL
# shellcheck shell=bash
#
# Jobs with payloads in a blob store, after lib/server, lib/daemon and lib/s3:
#
#   bucket                 the bucket of this test, made by set_up_blobs
#   carry [NAME]           a daemon that carries
#   carry_and_sweep NAME AGE   one that looks for orphans all the time
#
# Jobs are delayed for hours and called back with run_now, so that no test waits for their time.

# A database and a bucket of the test's own; MILLRACE_BLOBS leads there. The queue q moves what it can.
set_up_blobs()
{
    fresh_db
    bucket=jobs$BATS_TEST_NUMBER
    s3_bucket "$bucket"
    MILLRACE_BLOBS=$(s3_address "$bucket/here")
    export MILLRACE_BLOBS
    sql "select millrace.set_queue('q', '{\"offload_delay\": \"10 seconds\", \"offload_dead\": true}')"
}

carry()
{
    daemon "${1:-carrier}" serve --roles maintain
}

# A daemon that looks for orphans all the time, and takes every object for one that nobody knows.
carry_and_sweep()
{
    printf 'blobs_sweep = "1s"\nblobs_orphans = "%s"\n' "$2" >"$BATS_TEST_TMPDIR/sweep.conf"
    daemon "$1" serve -c "$BATS_TEST_TMPDIR/sweep.conf" --roles maintain
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

run_all()
{
    sql "select count(*) from (select millrace.run_now(id) from millrace.jobs where queue = 'q' and status = 'scheduled') r" >/dev/null
}

sql_is()
{
    [ "$(sql "$1")" = "$2" ]
}

objects()
{
    [ "$(s3_count "$bucket")" = "$1" ]
}
