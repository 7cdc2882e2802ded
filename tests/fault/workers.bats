#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# Four workers, killed with SIGKILL again and again in the middle of 20,000 jobs: every job is
# completed, none is lost, a job runs at most once an attempt, and what a worker writes under a
# lease that was taken from it has no effect.

load ../lib/server
load ../lib/workers
worker_pids=() # filled by start_worker

jobs=20000
kills=20

setup()
{
    fresh_db
    sql "select millrace.set_queue('q', '{\"max_attempts\": 1000, \"poison_limit\": 1000}')"
    sql "select count(*) from millrace.enqueue_many('k', array(select jsonb_build_object('n', n) from generate_series(1, $jobs) n), 'q')"
    runs=$MR_SCRATCH/runs
    : >"$runs"
}

teardown()
{
    stop_workers
    drop_db
}

# What is done so far, cheaply: exec's handlers note their runs, sql's have effects.
runs_at_least()
{
    [ "$(wc -l <"$runs")" -ge "$1" ]
}

effects_at_least()
{
    [ "$(sql 'select count(*) from effect')" -ge "$1" ]
}

# Kills a worker whenever another part of the jobs is done, and starts another: kill_in_the_middle HOW_MUCH OPTION...
kill_in_the_middle()
{
    local how_much=$1 i
    shift
    for ((i = 1; i <= kills; i++)); do
        wait_until 120 "$how_much" $((jobs * i / (kills + 2))) || return
        kill_worker $((1 + RANDOM % 3)) # the first one lives, to tell
        start_worker "$@"
    done
}

check_completed()
{
    [ "$(sql "select count(*) from millrace.dead_letters")" -eq 0 ]
    [ "$(sql "select sum(done_n) from millrace.claim")" -eq $jobs ]
}

@test "exec: 20,000 jobs, 20 workers killed, one stopped beyond its lease" {
    local handler="python3 $MR_ROOT/tests/lib/note_runs.py $runs 0.002"
    for _ in 1 2 3 4; do
        start_worker q --exec "$handler" --concurrency 2 --batch 50 --lease 2s
    done
    # One that does not die but stands still for longer than its lease: it comes back and writes.
    wait_until 60 runs_at_least 200
    kill -STOP "${worker_pids[0]}"
    wait_until 60 grep -q ' 2$' "$runs"
    kill -CONT "${worker_pids[0]}"
    kill_in_the_middle runs_at_least q --exec "$handler" --concurrency 2 --batch 50 --lease 2s
    wait_until 180 queue_is_done q
    stop_workers
    check_completed
    # Every job ran, and no attempt ran twice: runs of a job <= its attempts.
    sql "create table run (id bigint, attempt int)"
    psql -X -q -v ON_ERROR_STOP=1 -c "\\copy run from '$runs' with (delimiter ' ')"
    [ "$(sql 'select count(distinct id) from run')" -eq $jobs ]
    [ "$(sql 'select count(*) from (select from run group by id, attempt having count(*) > 1) r')" -eq 0 ]
    echo "# runs $(sql 'select count(*) from run'), writes under void leases (MR001) that survivors told of: $(worker_sum lost)" >&3
    [ "$(worker_sum lost)" -gt 0 ]
}

@test "sql: effects exactly once" {
    sql 'create table effect (id bigint constraint once unique)'
    sql "create function note(job jsonb) returns void language sql as \$\$ insert into effect values ((job ->> 'id')::bigint); select pg_sleep(0.001) \$\$"
    for _ in 1 2 3 4; do
        start_worker q --sql note --concurrency 2 --batch 50 --lease 2s
    done
    kill_in_the_middle effects_at_least q --sql note --concurrency 2 --batch 50 --lease 2s
    wait_until 180 queue_is_done q
    stop_workers
    check_completed
    [ "$(sql 'select count(*) from effect')" -eq $jobs ]
    # Nobody even tried: a second insert would have been a failed attempt.
    [ "$(sql 'select sum(failed_n) from millrace.claim')" -eq 0 ]
}
