#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# Four workers, killed with SIGKILL again and again in the middle of 20,000 jobs: every job is
# completed, none is lost, a job runs at most once an attempt, and what a worker writes under a
# lease that was taken from it has no effect.

load ../lib/server
load ../lib/workers

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

completed()
{
    sql "select count(*) from millrace.jobs where queue = 'q' and status = 'completed'"
}

is_completed()
{
    [ "$(completed)" -ge "$1" ]
}

# Kills a worker whenever another twenty-first of the jobs is done, and starts another.
kill_in_the_middle()
{
    local i
    for ((i = 1; i <= kills; i++)); do
        wait_until 120 is_completed $((jobs * i / (kills + 2))) || return
        kill_worker $((RANDOM % 4))
        start_worker "$@"
    done
}

@test "exec: 20,000 jobs, 20 workers killed, one stopped beyond its lease" {
    local handler="$MR_ROOT/tests/lib/note_runs.sh $runs"
    for _ in 1 2 3 4; do
        start_worker q --exec "$handler" --concurrency 2 --batch 50 --lease 2s
    done
    # One that does not die but stands still for longer than its lease: it comes back and writes.
    wait_until 60 is_completed 500
    kill -STOP "${worker_pids[0]}"
    wait_until 60 eval '[ "$(sql "select count(*) from millrace.jobs where queue = '\''q'\'' and attempt > 1")" -gt 0 ]'
    kill -CONT "${worker_pids[0]}"
    kill_in_the_middle q --exec "$handler" --concurrency 2 --batch 50 --lease 2s
    wait_until 180 is_completed $jobs
    stop_workers
    [ "$(sql "select count(*) from millrace.jobs where queue = 'q' and status <> 'completed'")" -eq 0 ]
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
    sql "create function note(job jsonb) returns void language sql as \$\$ insert into effect values ((job ->> 'id')::bigint) \$\$"
    for _ in 1 2 3 4; do
        start_worker q --sql note --concurrency 2 --batch 50 --lease 2s
    done
    kill_in_the_middle q --sql note --concurrency 2 --batch 50 --lease 2s
    wait_until 180 is_completed $jobs
    stop_workers
    [ "$(sql 'select count(*) from effect')" -eq $jobs ]
    # Nobody even tried: a second insert would have been a failed attempt.
    [ "$(sql "select count(*) from millrace.jobs where queue = 'q' and error like '%once%'")" -eq 0 ]
}
