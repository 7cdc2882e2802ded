#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# Payloads in a blob store while the daemon, the store and PostgreSQL are killed in turn: ten minutes, or MR_SOAK_SECONDS. Every job is delivered with its
# payload, and no object is left.

load ../lib/server
load ../lib/daemon
load ../lib/s3

setup()
{
    need_s3
    private_server blobs
    "$MR_BIN" migrate >/dev/null
    start_s3
    s3_bucket jobs
    printf 'blobs = "%s"\nblobs_sweep = "5s"\nblobs_orphans = "10s"\n' "$(s3_address jobs/soak)" >"$BATS_TEST_TMPDIR/blobs.conf"
    sql "select millrace.set_queue('q', '{\"offload_delay\": \"10 seconds\", \"offload_dead\": true}')"
    sql "create table got (id bigint primary key, whole boolean)"
    sql "create function payload(p_part text, p_args jsonb) returns bytea language sql as \$\$
           select string_agg(sha256(convert_to(p_part || (p_args ->> 'n') || '.' || i, 'UTF8')), '') from generate_series(1, 60) i \$\$"
    # Each job once: a claim that is lost in a crash is a delivery more, not one less.
    sql "create function take_all() returns void language sql as \$\$
           with c as (select * from millrace.claim('q', 'w', 1000, '5 seconds')),
           done as (insert into got select c.id, c.state = payload('s', c.args) and c.blob = payload('b', c.args) from c on conflict (id) do nothing)
           select millrace.complete(l.lease) from (select distinct lease from c) l \$\$"
}

teardown()
{
    end_daemons
    stop_s3
    remove_private_server
}

carry()
{
    daemon carrier serve -c "$BATS_TEST_TMPDIR/blobs.conf" --roles maintain
}

put()
{
    sql "select count(millrace.enqueue('k', jsonb_build_object('n', n), 'q', delay => make_interval(secs => 12 + n % 20),
                                       state => payload('s', jsonb_build_object('n', n)), blob => payload('b', jsonb_build_object('n', n))))
           from generate_series($1, $2) n"
}

no_object()
{
    [ "$(s3_count jobs)" = 0 ]
}

all_taken()
{
    sql 'select take_all()' >/dev/null
    [ "$(sql 'select count(*) from got')" = "$1" ]
}

@test "daemon, store and database are killed in turn: nothing is lost, no object is left" {
    local round=0 jobs=0 until=$((SECONDS + ${MR_SOAK_SECONDS:-600}))
    carry
    while [ "$SECONDS" -lt "$until" ]; do
        round=$((round + 1))
        [ "$(put $((jobs + 1)) $((jobs + 100)))" = 100 ]
        jobs=$((jobs + 100))
        sleep "$((RANDOM % 4)).$((RANDOM % 10))" # any moment will do
        sql 'select take_all()' >/dev/null
        case $((round % 3)) in
            0) signal carrier KILL; ended carrier || true; carry ;;
            1) kill_s3; sleep 2; start_s3_again ;; # down for a while
            2) "$MR_ROOT/tools/pgserver" crash "$MR_SERVER"; "$MR_ROOT/tools/pgserver" start "$MR_SERVER" >/dev/null ;;
        esac
    done
    wait_until 300 all_taken "$jobs"
    [ "$(sql 'select count(*) from got where not whole')" = 0 ]
    [ "$(sql 'select count(*) from millrace.dead')" = 0 ]
    wait_until 300 no_object
    echo "# $jobs jobs, $round kills" >&3
}
