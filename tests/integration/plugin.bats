#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# The plugin handler: a function of a shared object, compiled here as a user would.

bats_require_minimum_version 1.5.0
load ../lib/server
load ../lib/workers

setup_file()
{
    fresh_db
    sql "select millrace.set_retry('k', base => '10 minutes', jitter => 0)"
    cat >"$MR_SCRATCH/odd.c" <<'C'
#include <millrace/millrace.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
mr_handler millrace_handler, returns, requeues, sleeps, garbled;
int millrace_handler(const mr_claimed_job *job, mr_outcome *outcome, void *arg)
{
    (void)outcome;
    return job->id > 0 && job->lease && job->attempt >= 1 && !arg ? 0 : 1;
}
int returns(const mr_claimed_job *job, mr_outcome *outcome, void *arg)
{
    (void)job, (void)outcome, (void)arg;
    return 7;
}
int requeues(const mr_claimed_job *job, mr_outcome *outcome, void *arg)
{
    (void)job, (void)arg;
    return mr_outcome_requeue(outcome, "{\"queue\": \"elsewhere\", \"args\": {\"b\": 2}}");
}
int sleeps(const mr_claimed_job *job, mr_outcome *outcome, void *arg)
{
    (void)job, (void)outcome, (void)arg;
    sleep(2);
    return 0;
}
int garbled(const mr_claimed_job *job, mr_outcome *outcome, void *arg)
{
    (void)job, (void)arg;
    mr_outcome_complete(outcome, "{} ], [");
    return 0;
}
C
    ${CC:-cc} -std=c99 -Wall -Wextra -Werror -shared -fPIC -I "$MR_ROOT/include" -o "$MR_SCRATCH/odd.so" -x c "$MR_SCRATCH/odd.c"
}

teardown_file()
{
    drop_db
}

setup()
{
    q=plugin$BATS_TEST_NUMBER
    cd "$MR_SCRATCH" || return
}

teardown()
{
    stop_workers || true
}

enqueue()
{
    sql "select millrace.enqueue('k', '${1:-{\}}', queue => '$q'${2:+, $2})"
}

work()
{
    local target=$1
    shift
    "$MR_BIN" work "$q" --plugin "$target" --until-empty --breaker-failures 0 "$@"
}

fate()
{
    sql "select status, attempt, coalesce(error, '') from millrace.jobs where id = $1"
}

@test "millrace_handler of a file, with or without a path" {
    a=$(enqueue)
    work odd.so
    [[ $(fate "$a") == 'completed|1|' ]]
    b=$(enqueue)
    work "$MR_SCRATCH/odd.so:millrace_handler"
    [[ $(fate "$b") == 'completed|1|' ]]
}

@test "many jobs on several threads" {
    sql "select count(*) from millrace.enqueue_many('k', array_fill('{}'::jsonb, array[2000]), '$q')"
    work odd.so --concurrency 4
    [ "$(sql "select count(*) from millrace.jobs where queue = '$q' and status = 'completed'")" -eq 2000 ]
}

@test "what a function returns, and what it says, becomes the outcome" {
    a=$(enqueue)
    work odd.so:returns
    [[ $(fate "$a") == 'scheduled|2|the handler returned 7' ]]
    b=$(enqueue)
    work odd.so:requeues
    [ "$(sql "select queue, args from millrace.jobs where id = $b")" = 'elsewhere|{"b": 2}' ]
    c=$(enqueue)
    work odd.so:garbled
    [[ $(fate "$c") == "scheduled|2|the handler's result"*JSON* ]]
}

@test "a job over its timeout goes on, its lease is kept, and the log says so once" {
    id=$(enqueue '{}' "timeout => '100 ms'")
    start_worker "$q" --plugin odd.so:sleeps --lease 1s --until-empty
    wait "${worker_pids[0]}"
    worker_pids=()
    [[ $(fate "$id") == 'completed|1|' ]]
    [ "$(grep -c plugin.overdue "$MR_SCRATCH/worker.1.log")" -eq 1 ]
    grep -q 'job '"$id"' runs longer than its timeout of 100 ms' "$MR_SCRATCH/worker.1.log"
}

@test "a file or a function that is not there is told at once" {
    id=$(enqueue)
    echo 'not a library' >text.so
    for pair in 'missing.so|cannot open shared object file' 'odd.so:nothing|undefined symbol: nothing' 'text.so|file too short' '/|'; do
        run work "${pair%|*}"
        [ "$status" -ne 0 ]
        [[ $output == *"cannot load the plugin ${pair%|*}: "*"${pair#*|}"* ]]
        [[ $output == *'hint: '* ]]
    done
    [[ $(fate "$id") == available\|* ]]
}
