# SPDX-License-Identifier: PostgreSQL
# shellcheck shell=bash
#
# A batch of many members and sixteen finishers, some of which are killed: one callback of each sort, and counts that add up.
# Load lib/server first.

# bench NAME ARGUMENTS...: a pgbench in the background; its pid is in the array "pids".
bench()
{
    local name=$1
    shift
    pgbench -n -T 86400 -f "$MR_ROOT/tests/stress/batches/$name.pgbench" "$@" 3>&- >>"$MR_SCRATCH/$name.log" 2>&1 &
    pids+=($!)
}

batch_ended()
{
    [ "$(sql "select ended_at is not null from millrace.batches where id = $batch")" = t ]
}

members_done()
{
    [ "$(sql "select completed > $1 from millrace.batches where id = $batch")" = t ]
}

# batch_of MEMBERS DIES SECONDS: DIES is the job of a thousand that dies, -1 for none. Leaves the batch's number in "batch".
batch_of()
{
    local members=$1 dies=$2 id
    pids=()
    sql "select millrace.set_queue('m', '{}'), millrace.set_queue('called', '{}')"
    batch=$(sql "select millrace.batch_begin(on_complete => '{\"kind\": \"complete\", \"queue\": \"called\"}', on_death => '{\"kind\": \"death\", \"queue\": \"called\"}',
                                             on_end => '{\"kind\": \"end\", \"queue\": \"called\"}')")
    for _ in $(seq 16); do
        bench finisher -c 1 -D "dies=$dies"
    done
    bench upkeep -c 2
    for _ in $(seq $((members / 10000))); do
        sql "select app.add($batch, 5000)"
        sql "select app.add($batch, 5000)"
        if [ "$dies" -ge 0 ]; then
            for id in $(sql "select job_id from millrace.job where batch_id = $batch order by pos desc limit 3"); do
                sql "select millrace.cancel($id)"
            done
        fi
    done
    kill -9 "${pids[@]:0:3}"
    sql "select millrace.batch_seal($batch)"
    wait_until "$3" members_done $((members / 2))
    kill -9 "${pids[@]:3:3}"
    wait_until "$3" batch_ended
    kill "${pids[@]:6}"
    wait "${pids[@]}" || true
    if grep -i 'error\|aborted' "$MR_SCRATCH/finisher.log" "$MR_SCRATCH/upkeep.log"; then
        return 1
    fi
}

# The counts of the batch, and what the queue says of the same.
counts()
{
    sql "select jobs, completed, dead, cancelled, expired from millrace.batches where id = $batch"
}

# By the logs, not by the view: that derives a million statuses one by one.
counts_by_jobs()
{
    sql "select (select count(distinct job_id) from millrace.job where batch_id = $batch), sum(k.done_n), (select count(*) from millrace.dead),
                sum(length(k.outcome) - length(replace(k.outcome, 'k', ''))), 0
           from millrace.claim k
           join millrace.queue q on q.queue_id = k.lane >> 12
          where q.queue_name = 'm'"
}

callbacks()
{
    sql "select string_agg(kind, ' ' order by kind) from millrace.jobs where queue = 'called'"
}
