#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# Back-pressure with several producers at once and no daemon: the limit holds, producers wait and go on, nothing is lost or there twice.

bats_require_minimum_version 1.5.0
load ../lib/server

setup()
{
    fresh_db
    cd "$BATS_TEST_TMPDIR" || return
}

teardown()
{
    drop_db
}

depth()
{
    sql "select millrace.depth('$1')"
}

depth_at_least()
{
    [ "$(depth "$1")" -ge "$2" ]
}

set_queue()
{
    sql "select millrace.set_queue('$1', '$2')" >/dev/null
}

# The lines $1 to $2 of a file of jobs that differ in their args only.
plain_lines()
{
    seq "$1" "$2" | sed 's/.*/{"args": {"n": &}}/'
}

# A transaction that has done $1 and stays open until end_open.
begin_open()
{
    coproc OPEN { psql -X -q -A -t; }
    echo "$1" >&"${OPEN[1]}"
    printf '%s\n' '\echo open' >&"${OPEN[1]}"
    local line
    until read -r line <&"${OPEN[0]}" && [ "$line" = open ]; do :; done
}

end_open()
{
    local pid=$OPEN_PID
    echo "$1" >&"${OPEN[1]}"
    eval "exec ${OPEN[1]}>&-"
    wait "$pid"
}

# A count misses what is in flight: a job of each other producer. 206 leaves room for two counts that do at once.
@test "four producers of single jobs: the limit, and what was in flight when it was counted" {
    set_queue q '{"depth_limit": 200}'
    cat >one.sql <<'SQL'
do $$ begin perform millrace.enqueue('k', queue => 'q'); exception when sqlstate 'MR002' then perform pg_sleep(0.001); end $$;
SQL
    pgbench -n -c 4 -j 2 -t 200 -f one.sql >/dev/null
    depth_at_least q 200
    echo "depth: $(depth q)"
    [ "$(depth q)" -le 206 ]
    # drained by half, filled again
    sql "select count(*) from millrace.claim('q', max_jobs => 100)" >/dev/null
    pgbench -n -c 4 -j 2 -t 200 -f one.sql >/dev/null
    depth_at_least q 200
    echo "depth: $(depth q)"
    [ "$(depth q)" -le 206 ]
}

@test "four producers with files wait for room, and go on as workers drain: each job once, no daemon" {
    local pids=() max=0 n
    set_queue q '{"depth_limit": 50}'
    sql 'create table taken (n int)'
    for n in 0 1 2 3; do
        plain_lines $((n * 300 + 1)) $((n * 300 + 300)) >"file.$n"
        "$MR_BIN" enqueue k --queue q --file "file.$n" --chunk 10 --wait 2min --quiet >"out.$n" 2>"err.$n" 3>&- &
        pids+=($!)
    done
    wait_until 30 depth_at_least q 50
    while :; do
        n=$(depth q)
        [ "$n" -le "$max" ] || max=$n
        sql "with c as (select * from millrace.claim('q', max_jobs => 100)),
                  t as (insert into taken select (c.args ->> 'n')::int from c)
             select millrace.complete(l) from (select min(c.lease) as l from c) c where l is not null" >/dev/null
        [ "$(sql 'select count(*) from taken')" -lt 1200 ] || break
        kill -0 "${pids[@]}" 2>/dev/null || [ "$n" -gt 0 ] || depth_at_least q 1 || break
    done
    for n in 0 1 2 3; do
        wait "${pids[$n]}" || { cat "err.$n"; false; }
        [[ $(cat "out.$n") == 'enqueued: 300 jobs'* ]]
    done
    # the last call is let in whole, and those of the three others may have been in flight: 50 + 4 * 10 - 1; and as above
    echo "deepest: $max"
    [ "$max" -le 119 ]
    [ "$(sql 'select count(*), count(distinct n), min(n), max(n) from taken')" = '1200|1200|1|1200' ]
}

@test "a full queue ends the command with status 4, with --wait only after the time; --skip goes on" {
    set_queue q '{"depth_limit": 3}'
    plain_lines 1 8 >file
    # larger than the limit: in pieces that it takes
    run "$MR_BIN" enqueue k --queue q --file file
    echo "$output"
    [ "$status" -eq 4 ]
    has "millrace: file: queue 'q' is full"
    has '4 jobs wait in it and its depth_limit is 3.'
    has '4 jobs are in; go on with --skip 4.'
    [[ $output != *PL/pgSQL* ]]
    run "$MR_BIN" enqueue k --queue q
    [ "$status" -eq 4 ]
    has "millrace: queue 'q' is full"
    [[ $output != *detail* ]]
    run "$MR_BIN" enqueue k --queue q --wait 200ms
    [ "$status" -eq 4 ]
    has 'detail: There was no room within 200 ms.'
    run "$MR_BIN" enqueue k --queue q --wait soon
    [ "$status" -eq 2 ]
    has 'wrong value for --wait: "soon"'
    # room in time
    local before
    before=$(rollbacks)
    { wait_until 20 refused_since "$before" && sql "select count(*) from millrace.claim('q', max_jobs => 10)"; } >/dev/null 3>&- &
    run "$MR_BIN" enqueue k --queue q --file file --skip 4 --chunk 2 --wait 1min --quiet
    wait
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$(sql "select string_agg(args ->> 'n', ' ' order by id) from millrace.jobs where queue = 'q' and args ? 'n'")" = '1 2 3 4 5 6 7 8' ]
}

# The command has met the full queue: its transaction was rolled back.
rollbacks()
{
    sql "select xact_rollback from pg_stat_database where datname = current_database()"
}

refused_since()
{
    [ "$(rollbacks)" -gt "$1" ]
}

@test "an interrupt ends the wait" {
    set_queue q '{"depth_limit": 2}'
    plain_lines 1 6 >file
    "$MR_BIN" enqueue k --queue q --file file --chunk 2 --wait 10min --quiet >out 2>err 3>&- &
    local load=$! status=0
    wait_until 20 depth_at_least q 2
    wait_until 20 refused_since 0
    kill -INT $load
    wait $load || status=$?
    [ "$status" -eq 1 ]
    output=$(cat err)
    echo "$output"
    has 'interrupted while the queue was full'
    has '2 jobs are in; go on with --skip 2.'
    [ "$(depth q)" -eq 2 ]
}

@test "a full queue and its overflow take what four producers bring" {
    set_queue q '{"depth_limit": 100, "overflow": "spill"}'
    echo "select millrace.enqueue('k', queue => 'q');" >one.sql
    pgbench -n -c 4 -j 2 -t 100 -f one.sql >/dev/null
    depth_at_least q 100
    [ "$(depth q)" -le 106 ]
    [ $(($(depth q) + $(depth spill))) -eq 400 ]
}

@test "with a held snapshot and an open writer the check stays as cheap, and sees the drain" {
    local out
    set_queue q '{"depth_limit": 40000}'
    sql "select millrace.enqueue('k', queue => 'q')" >/dev/null
    begin_open 'begin isolation level repeatable read; select count(*) from millrace.queues;'
    sql 'create table other (i int)'
    psql -X -q >writer.out 2>&1 <<'SQL' &
begin; insert into other values (1);
select pg_sleep(600) where pg_backend_pid() > 0;
SQL
    wait_until 20 writer_open
    # the ledger is counted on by the producers alone, ten thousand jobs a transaction
    for _ in 1 2 3 4; do
        sql "select count(millrace.enqueue('k', queue => 'q')) from generate_series(1, 10000)" >/dev/null || true
    done
    out=$(psql -X -q -A -t <<'SQL'
select setval(('millrace.depth_at_' || queue_id)::regclass, 0) from millrace.queue where queue_name = 'q';
do $$ begin perform millrace.enqueue('k', queue => 'q', delay => '1 hour'); exception when sqlstate 'MR002' then null; end $$;
select pg_sleep(1.1); -- a gauge of a second is counted anew
select sum(idx_tup_read) as before from pg_stat_user_indexes where relname ~ '^job_' \gset
do $$ begin perform millrace.enqueue('k', queue => 'q', delay => '1 hour'); exception when sqlstate 'MR002' then null; end $$;
select pg_stat_force_next_flush();
select sum(idx_tup_read) - :before < 11000 from pg_stat_user_indexes where relname ~ '^job_';
SQL
    )
    echo "$out"
    [ "$(tail -n 1 <<<"$out")" = t ]
    sql "select count(*) from millrace.claim('q', max_jobs => 10000)" >/dev/null
    # a gauge of 20 ms, where the queue is full
    sql "select pg_sleep(0.03); select millrace.enqueue('k', queue => 'q')" >/dev/null
    sql "select count(pg_terminate_backend(pid)) from pg_stat_activity where datname = current_database() and query like 'select pg_sleep(600)%'" >/dev/null
    end_open 'commit;'
    wait
}

writer_open()
{
    [ "$(sql "select count(*) from pg_stat_activity where datname = current_database() and query like 'select pg_sleep(600)%' and backend_xid is not null")" = 1 ]
}

@test "a producer's role needs nothing but enqueue" {
    set_queue q '{"depth_limit": 1}'
    psql -X -q -A -t >out 2>&1 <<'SQL' || true
set role millrace_producer;
select millrace.enqueue('k', queue => 'q') > 0;
\set VERBOSITY sqlstate
select millrace.enqueue('k', queue => 'q');
select nextval('millrace.depth_in_1');
SQL
    cat out
    [ "$(cat out)" = $'t\nERROR:  MR002\nERROR:  42501' ]
}
