#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# The server goes away under load and comes back, the network is slow on the other side: workers
# go on by themselves, and the counts match.

load ../lib/server
load ../lib/workers
worker_pids=() # filled by start_worker

teardown()
{
    stop_workers
    [ -z "${hooks_pid:-}" ] || kill "$hooks_pid" 2>/dev/null || true
    if [ -n "${MR_SERVER:-}" ]; then
        remove_private_server
    else
        drop_db
    fi
}

# As superuser from the claim log: the view would derive the status of every job.
figure()
{
    sql "select coalesce(sum($1), 0) from millrace.claim"
}

at_least()
{
    [ "$(figure done_n)" -ge "$1" ]
}

@test "PostgreSQL restarted five times under load: workers reconnect, every job completes" {
    local jobs=20000 i how
    private_server outage -o max_connections=50
    "$MR_BIN" migrate >/dev/null
    sql "select millrace.set_queue('q', '{\"max_attempts\": 1000, \"poison_limit\": 1000, \"lease\": \"3 seconds\"}')"
    sql "select count(*) from millrace.enqueue_many('k', array_fill('{}'::jsonb, array[$jobs]), 'q')"
    runs=$MR_SCRATCH/runs
    : >"$runs"
    for _ in 1 2 3; do
        start_worker q --exec "python3 $MR_ROOT/tests/lib/note_runs.py $runs 0.002" --concurrency 2 --batch 50
    done
    for i in 1 2 3 4 5; do
        wait_until 120 at_least $((jobs * i / 7))
        how=restart
        if [ $((i % 2)) -eq 0 ]; then
            how=crash
            "$MR_ROOT/tools/pgserver" crash "$MR_SERVER"
        fi
        "$MR_ROOT/tools/pgserver" restart "$MR_SERVER"
        echo "# $how $i at $(figure done_n) completed" >&3
    done
    wait_until 180 at_least $jobs
    stop_workers
    [ "$(figure done_n)" -eq $jobs ]
    [ "$(sql "select available + running + scheduled + retrying + dead from millrace.stats('q')")" -eq 0 ]
    [ "$(cut -d ' ' -f 1 "$runs" | sort -u | wc -l)" -eq $jobs ]
    [ "$(worker_sum reconnects)" -ge 5 ]
}

rss_kb()
{
    awk '/^VmRSS/ { print $2 }' "/proc/$1/status"
}

# hooks_at_least N: so many were in the slow server at once.
hooks_at_least()
{
    [ "$(cat "$MR_SCRATCH/hooks.most" 2>/dev/null || echo 0)" -ge "$1" ]
}

@test "a thousand hooks at once to a server that answers after five seconds: memory and leases are flat" {
    local first last
    fresh_db
    sql "select count(*) from millrace.enqueue_many('k', array_fill('{}'::jsonb, array[3000]), 'q')"
    python3 "$MR_ROOT/tests/lib/slow_hooks.py" 5 "$MR_SCRATCH/hooks" 3>&- &
    hooks_pid=$!
    wait_until 30 test -s "$MR_SCRATCH/hooks.port"
    start_worker q --http "http://127.0.0.1:$(cat "$MR_SCRATCH/hooks.port")/hook" --concurrency 1000 --batch 1000 --lease 6s --timeout 60s
    wait_until 60 hooks_at_least 1000
    first=$(rss_kb "${worker_pids[0]}")
    [ "$(figure open_n)" -le 1000 ]
    wait_until 120 at_least 2000
    last=$(rss_kb "${worker_pids[0]}")
    [ "$(figure open_n)" -le 1000 ]
    wait_until 120 at_least 3000
    echo "# $first kB with the first thousand under way, $last kB with the third" >&3
    # A sanitizer keeps what was freed for a while.
    if ! ldd "$MR_BIN" | grep -q libasan; then
        [ "$last" -le $((first * 12 / 10)) ]
    fi
    # Nobody lost a lease of six seconds in ten seconds of waiting: each ran once.
    [ "$(sql 'select max(attempt) from millrace.job')" -eq 1 ]
}
