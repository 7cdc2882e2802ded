#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# The SQL API through PgBouncer in transaction mode: more clients than server connections, so
# that each transaction of a client may be served by another session of the server.

bats_require_minimum_version 1.5.0
load ../lib/server
load ../lib/pgbouncer

setup_file()
{
    fresh_db
    sql 'create table hops (client text, pid int); create table sent (id bigint); create table finished (n int)'
    export FILES=$BATS_TEST_DIRNAME/pgbouncer
    start_pgbouncer
}

teardown_file()
{
    stop_pgbouncer
    drop_db
}

# Those of moves, shadows and sets of shards concern a whole database or two of them; eight clients would be in each other's way.
@test "api.sql calls every public function" {
    diff <(grep -o 'millrace\.[a-z_]*(' "$FILES/api.sql" | sed 's/millrace\.//; s/(//' | sort -u) \
        <(sql "select distinct p.proname from pg_proc p, aclexplode(p.proacl) a
                where p.pronamespace = 'millrace'::regnamespace and a.grantee::regrole::text like 'millrace\_%'
                  and p.proname not in ('job_standing', 'job_logged', 'worker_list', 'capture_list', 'capture_plan', 'capture_change', 'capture_run', 'capture_put',
                                        'shard_join', 'shard_change', 'shard_leave')
                  and p.proname !~ '^(move|shadow)_' order by 1")
}

@test "the whole API works, with eight clients on three connections" {
    local i pids=()
    for i in 1 2 3 4 5 6 7 8; do
        psql -X -q -t -A -F ' ' -v q="client$i" -f "$FILES/api.sql" >"$MR_SCRATCH/out$i" 2>&1 3>&- &
        pids+=($!)
    done
    wait "${pids[@]}" || true
    for i in 1 2 3 4 5 6 7 8; do
        tail -n 1 "$MR_SCRATCH/out$i" | grep -qx 'the end' || { cat "$MR_SCRATCH/out$i"; return 1; }
        paste -d ' ' <(grep -x '[tf]' "$MR_SCRATCH/out$i") <(grep -o ' as passed_[a-z_]*' "$FILES/api.sql") >"$MR_SCRATCH/answers$i"
        run grep '^f' "$MR_SCRATCH/answers$i"
        [ "$status" -eq 1 ] || { echo "client $i: $output"; return 1; }
        [ "$(grep -cx t "$MR_SCRATCH/out$i")" -eq "$(grep -c ' as passed_' "$FILES/api.sql")" ]
        [ "$(grep -c 'ERROR:  22023' "$MR_SCRATCH/out$i")" -eq 1 ]
    done
    # The clients were not served by one session each.
    [ "$(sql 'select count(distinct pid) <= 3 from hops')" = t ]
    [ "$(sql 'select max(n) > 1 from (select count(distinct pid) as n from hops group by client) h')" = t ]
}

@test "unnamed statements: nothing lost, nothing twice, with twelve clients" {
    local out
    out=$(pgbench -n -M extended -c 12 -j 2 -t 40 -f "$FILES/life.pgbench" 2>&1) || { echo "$out"; return 1; }
    [[ $out == *'480/480'* ]] || { echo "$out"; return 1; }
    # What the last claims found too late is still there.
    while sql "select lease from millrace.claim('shared', max_jobs => 100) limit 1" | grep . >"$MR_SCRATCH/lease"; do
        sql "insert into finished select millrace.complete('$(cat "$MR_SCRATCH/lease")')"
    done
    [ "$(sql 'select count(*) from sent')" -eq 480 ]
    [ "$(sql 'select sum(n) from finished')" -eq 480 ]
    [ "$(sql "select millrace.depth('shared')")" -eq 0 ]
    [ "$(sql "select count(*) from millrace.jobs where queue = 'shared' and status = 'completed'")" -eq 480 ]
}

@test "a lease taken on one connection is finished on another" {
    local lease
    sql "select millrace.enqueue('k', queue => 'hop')"
    lease=$(sql "select lease from millrace.claim('hop')")
    [ "$(PGHOST=$DIRECT_HOST PGPORT=$DIRECT_PORT sql "select millrace.complete('$lease')")" -eq 1 ]
}

@test "doctor and top work through it, and doctor says that it is there" {
    run --separate-stderr "$MR_BIN" doctor --json
    [ "$(jq -r '.checks[] | select(.topic == "pooler") | .verdict' <<<"$output")" = note ]
    [ "$(jq -r '[.checks[] | select(.evidence | startswith("could not"))] | length' <<<"$output")" = 0 ]
    run "$MR_BIN" top --interval 100ms
    [ "$status" -eq 0 ]
    [[ $output == *QUEUE*AVAIL* ]]
}
