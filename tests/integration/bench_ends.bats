#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# How `millrace bench` ends: nothing is left of it, neither in scratch databases nor in a database
# that is in use, after signals, errors and the end of the server too.

bats_require_minimum_version 1.5.0
load ../lib/server
load ../lib/bench
load ../lib/daemon

setup_file()
{
    fresh_db
}

teardown_file()
{
    drop_db
}

teardown()
{
    end_daemons
}

scratch()
{
    psql -X -A -t -d postgres -c "select datname from pg_database where datname like 'millrace\_bench\_$1%'"
}

# Whether somebody is in the first copy of the scratch database of the process $1.
at_work()
{
    [ "$(psql -X -A -t -d postgres -c "select count(*) from pg_stat_activity where datname = 'millrace_bench_${1}_1'")" -gt 0 ]
}

# Databases of a run that has ended; other tests may run beside this one.
gone_scratch()
{
    local left
    left=$(scratch "$1")
    [ -z "$left" ] || { echo "left: $left" >&2; return 1; }
}

queue_there()
{
    [ "$(sql "select count(*) from millrace.queues q where q.queue like 'bench%'")" -gt 0 ]
}

@test "here: in queues of its own, of which nothing is left" {
    "$MR_BIN" enqueue letter --queue mine >/dev/null
    bench --here --yes --jobs 1000 --seconds 1
    holds '[.runs[].mode] == ["enqueue","single","drain","steady","latency","snapshot"]'
    [ "$(sql "select string_agg(q.queue, ',') from millrace.queues q where q.queue like 'bench%'")" = '' ]
    [ "$(sql "select millrace.depth('mine')")" -eq 1 ]
    run "$MR_BIN" bench drain --here --yes --dsn 'dbname=postgres'
    [ "$status" -eq 1 ]
    has 'millrace migrate'
}

@test "here: asks, and takes no for an answer" {
    need_terminal
    run script --quiet --return --command "echo n | '$MR_BIN' bench drain --here" /dev/null
    [ "$status" -eq 2 ]
    run bash -c "script --quiet --return --command \"'$MR_BIN' bench drain --here --jobs 100\" /dev/null <<<n"
    [ "$status" -eq 1 ]
    has 'not confirmed, nothing was measured'
}

@test "interrupted: nothing is left, wherever it was" {
    local mode pid
    for mode in enqueue drain latency; do
        daemon "$mode" bench "$mode" --jobs 10000000 --seconds 600
        pid=$(pid_of "$mode")
        wait_until 60 at_work "$pid"
        signal "$mode" TERM
        ended "$mode"
        [ "$status" -eq 1 ]
        logged "$mode" '^millrace: bench: interrupted$'
        gone_scratch "$pid"
    done
}

@test "here, interrupted: the queue is gone" {
    daemon here bench drain --here --yes --jobs 10000000
    wait_until 30 queue_there
    signal here TERM
    ended here
    [ "$status" -eq 1 ]
    run ! queue_there
}

@test "after an error in the middle nothing is left" {
    local pid
    # The deep backlog has to be deeper than the shallow one, and whether it is, is known late.
    daemon wrong bench enqueue depth --jobs 1000 --depth 5000
    pid=$(pid_of wrong)
    ended wrong
    [ "$status" -eq 2 ]
    logged wrong '--depth must be at least 20000'
    gone_scratch "$pid"
}

@test "a disk that takes no more, and a server that dies" {
    # No file of this server may be larger than 24 MB: the log's leaf reaches that with 100,000 jobs.
    (
        ulimit -f 24576
        exec "$MR_ROOT/tools/pgserver" start "$MR_SCRATCH/small" -o fsync=off -o full_page_writes=off 3>&-
    )
    export MR_SERVER=$MR_SCRATCH/small
    eval "$("$MR_ROOT/tools/pgserver" env "$MR_SERVER")"
    use_db postgres
    run --separate-stderr "$MR_BIN" bench enqueue --jobs 200000
    # shellcheck disable=SC2154  # run sets stderr
    echo "$status: $stderr"
    [ "$status" -eq 1 ]
    [[ $stderr == *'could not '*'file'* ]]
    [ -z "$(scratch '')" ]
    # It dies and comes back: the client does not know what became of its last call, and says so. A death
    # between two calls is mended by the library; then once more.
    daemon lost bench single --jobs 10000000 --seconds 600
    wait_until 60 at_work "$(pid_of lost)"
    for _ in {1..6}; do
        "$MR_ROOT/tools/pgserver" crash "$MR_SERVER"
        "$MR_ROOT/tools/pgserver" start "$MR_SERVER" 3>&-
        ! wait_until 5 gone lost || break
    done
    ended lost
    [ "$status" -eq 3 ]
    logged lost '^millrace: .*connect'
    [ -z "$(scratch '')" ]
    remove_private_server
}
