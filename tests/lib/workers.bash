# SPDX-License-Identifier: PostgreSQL
# shellcheck shell=bash
#
# Worker processes for bats files, known by their pids. Each writes its log and, at its end, its
# summary as JSON to a file of its own in MR_SCRATCH.

worker_pids=()
worker_number=0

# start_worker QUEUE OPTION...: `millrace work` in the background.
start_worker()
{
    local log=$MR_SCRATCH/worker.$((++worker_number))
    "$MR_BIN" work "$@" --json >"$log.json" 2>"$log.log" 3>&- &
    worker_pids+=($!)
}

# kill_worker INDEX: SIGKILL; the others move up.
kill_worker()
{
    kill -KILL "${worker_pids[$1]}"
    wait "${worker_pids[$1]}" 2>/dev/null || true
    unset "worker_pids[$1]"
    worker_pids=("${worker_pids[@]}")
}

# Ends all in order, and waits for them. Prints what they logged when one ended badly.
stop_workers()
{
    local pid status=0
    [ ${#worker_pids[@]} -eq 0 ] || kill -TERM "${worker_pids[@]}" 2>/dev/null || true
    for pid in "${worker_pids[@]}"; do
        wait "$pid" || status=$?
    done
    worker_pids=()
    [ $status -eq 0 ] || tail -n 20 "$MR_SCRATCH"/worker.*.log
    return $status
}

# worker_sum NAME: a figure of the summaries, added up over the workers that ended in order.
worker_sum()
{
    cat "$MR_SCRATCH"/worker.*.json | sed -n "s/.*\"$1\": *\([0-9]*\).*/\1/p" | awk '{ n += $1 } END { print n + 0 }'
}
