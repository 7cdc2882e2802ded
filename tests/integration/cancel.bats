#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# Cancelling jobs from the command line: those that wait, and those that real children, servers and
# functions are at. A worker hears of it with its next heartbeat, at a third of the lease, which is
# short here. The handlers alone, with more cases, are in tests/unit/test_exec.c and test_run.c.

bats_require_minimum_version 1.5.0
load ../lib/server
load ../lib/daemon

setup_file()
{
    fresh_db
    # What fails stays where it can be looked at.
    sql "select millrace.set_retry('k', max_attempts => 3, base => '10 minutes', jitter => 0)"
    export HOOKS=$MR_SCRATCH/hooks
    python3 "$MR_ROOT/tests/lib/hook_server.py" "$HOOKS" >"$HOOKS.out" 2>&1 3>&- &
    export HOOKS_PID=$!
    wait_until 20 test -s "$HOOKS.port"
    export HOOKS_URL
    HOOKS_URL=http://127.0.0.1:$(cat "$HOOKS.port")
    psql -X -q -v ON_ERROR_STOP=1 <<'SQL'
create table done (job bigint not null);
create function nap(job jsonb) returns void language plpgsql as $$
begin
  insert into done values ((job ->> 'id')::bigint);
  perform pg_sleep(coalesce((job #>> '{args,sleep}')::float, 0));
end $$;
create function naps(jobs jsonb[]) returns table (id bigint, error text) language plpgsql as $$
begin
  insert into done select (j ->> 'id')::bigint from unnest(jobs) j;
  perform pg_sleep(max(coalesce((j #>> '{args,sleep}')::float, 0))) from unnest(jobs) j;
end $$;
create procedure nap_in_steps(job jsonb) language plpgsql as $$
begin
  insert into done values ((job ->> 'id')::bigint);
  commit;
  perform pg_sleep(coalesce((job #>> '{args,sleep}')::float, 0));
end $$;
SQL
}

teardown_file()
{
    kill "$HOOKS_PID" || true
    drop_db
}

setup()
{
    q=q$BATS_TEST_NUMBER
    sql "select millrace.set_queue('$q', '{\"lease\": \"3 seconds\"}')"
    cd "$BATS_TEST_TMPDIR" || return
}

teardown()
{
    end_daemons
}

# A child of exec that does what args.do says, and one of run that gets it as its argument. Who
# begins something that takes long writes its pid to the file `running`.
make_handlers()
{
    cat >act <<'END'
running() { echo $$ >running.new; mv running.new running; }
act()
{
    case $1 in
    hang) running; sleep 600 ;;
    polite) trap 'touch told; exit 0' TERM; running; while :; do sleep 0.1; done ;;
    deaf) trap '' TERM; running; while :; do sleep 0.5; done ;;
    stubborn) trap '' TERM; running; until [ -e go ]; do sleep 0.05; done ;;
    patient) running; until [ -e go ]; do sleep 0.05; done ;;
    esac
}
END
    cat >child <<'END'
#!/usr/bin/env bash
. ./act
while IFS= read -r line; do
    id=${line#'{"id":'} id=${id%%,*}
    what=${line#*'"do": "'} what=${what%%'"'*}
    act "$what"
    printf '{"id": %d, "result": "%s"}\n' "$id" "$what"
done
END
    cat >process <<'END'
#!/usr/bin/env bash
. ./act
act "$1"
echo "{\"result\": \"$1\"}"
END
    chmod +x child process
}

enqueue_do()
{
    sql "select millrace.enqueue('k', '{\"do\": \"$1\"}', queue => '$q')"
}

status_is()
{
    [ "$(sql "select millrace.job($1) ->> 'status'")" = "$2" ]
}

# Waits until the job $1 has the status $2; a worker in trouble would take much longer than usual.
comes_to()
{
    wait_until 30 status_is "$1" "$2" || { sql "select millrace.job($1)"; return 1; }
}

reason_is()
{
    local reason
    reason=$(sql "select millrace.job($1) ->> 'reason'")
    [ "$reason" = "$2" ] || { echo "the reason is: $reason"; return 1; }
}

# A worker whose breaker opens with the first failure: it does not count what was cancelled.
start_one()
{
    daemon worker work "$q" "$@" --concurrency 1 --breaker-failures 1 --timeout 10min
}

# cancel_running ID: of a job that runs, with a reason.
cancel_running()
{
    run -0 "$MR_BIN" cancel "$1" --reason 'no longer wanted'
    [ "$output" = "job $1: running (its worker will be told)" ]
}

is_cancelled()
{
    comes_to "$1" cancelled
    reason_is "$1" 'no longer wanted'
}

# The worker is in order: the next job runs, nothing was taken for a failure, and it ends.
goes_on()
{
    local next
    next=$(enqueue_do fine)
    comes_to "$next" completed
    [ "$(count_logged worker 'worker.cancelled: the job was cancelled and is told to stop')" -eq 1 ]
    [ "$(count_logged worker 'worker.failed|breaker.opened')" -eq 0 ]
    signal worker TERM
    ended worker
    [ "$status" -eq 0 ]
}

# stops_at WHAT OPTION...: a job of exec or run that does WHAT is cancelled, and its process ends.
stops_at()
{
    local id pid what=$1
    shift
    make_handlers
    id=$(enqueue_do "$what")
    start_one "$@"
    wait_until 20 test -e running
    pid=$(cat running)
    cancel_running "$id"
    is_cancelled "$id"
    wait_until 10 is_gone "$pid"
    goes_on
}

# ---- running jobs ------------------------------------------------------------------------

@test "exec: the child that runs the job ends, and another one goes on" {
    stops_at hang --exec ./child
}

@test "exec: a child that minds SIGTERM and leaves in order has not done its job" {
    stops_at polite --exec ./child
    [ -e told ]
}

@test "exec: a child that ignores SIGTERM is killed" {
    stops_at deaf --exec ./child
}

@test "run: the process ends" {
    stops_at hang --run './process {args.do}'
}

@test "run: a process that minds SIGTERM and leaves in order has not done its job" {
    stops_at polite --run './process {args.do}'
    [ -e told ]
}

@test "run: a process that ignores SIGTERM is killed" {
    stops_at deaf --run './process {args.do}'
}

called()
{
    [ "$(grep -c '"/slow/600?'"$q"'"' "$HOOKS.log")" -eq "$1" ]
}

@test "http: the request is cut, and the next one is sent" {
    local a b
    a=$(enqueue_do x)
    start_one --http "$HOOKS_URL/slow/600?$q"
    wait_until 20 called 1
    cancel_running "$a"
    is_cancelled "$a"
    # There is room for one at a time.
    b=$(enqueue_do x)
    wait_until 20 called 2
    cancel_running "$b"
    is_cancelled "$b"
    [ "$(count_logged worker 'worker.failed|breaker.opened')" -eq 0 ]
}

sleepers()
{
    [ "$(sql "select count(*) from pg_stat_activity where datname = current_database() and application_name = 'millrace sql'
                and state = 'active' and wait_event = 'PgSleep'")" -eq "$1" ]
}

enqueue_nap()
{
    sql "select millrace.enqueue('k', '{\"sleep\": $1}', queue => '$q')"
}

is_done()
{
    [ "$(sql "select count(*) from done where job = $1")" -eq "$2" ]
}

@test "sql: the statement is cancelled, and nothing stays of it" {
    local a b
    a=$(enqueue_nap 600)
    start_one --sql nap
    wait_until 20 sleepers 1
    b=$(enqueue_nap 0)
    cancel_running "$a"
    is_cancelled "$a"
    wait_until 10 sleepers 0
    is_done "$a" 0
    comes_to "$b" completed
    is_done "$b" 1
    goes_on
}

@test "sql: a batch is called again without the job that was cancelled" {
    local ids
    mapfile -t ids < <(sql "select * from millrace.enqueue_many('k', array['{}', '{}', '{\"sleep\": 600}', '{}', '{}']::jsonb[], '$q')")
    start_one --sql naps --per-batch
    wait_until 20 sleepers 1
    cancel_running "${ids[2]}"
    is_cancelled "${ids[2]}"
    for i in 0 1 3 4; do
        comes_to "${ids[i]}" completed
        is_done "${ids[i]}" 1
    done
    is_done "${ids[2]}" 0
    goes_on
}

@test "sql: a procedure is cancelled, and keeps what it has committed" {
    local a
    a=$(enqueue_nap 600)
    start_one --sql nap_in_steps
    wait_until 20 sleepers 1
    cancel_running "$a"
    is_cancelled "$a"
    wait_until 10 sleepers 0
    is_done "$a" 1
    goes_on
}

@test "plugin: a function that asks ends early, another one goes on to its end" {
    cat >asks.c <<'END'
#include <millrace/millrace.h>
#include <unistd.h>
mr_handler asks, deaf;
int asks(const mr_claimed_job *job, mr_outcome *outcome, void *arg)
{
    (void)job, (void)arg;
    while (!mr_outcome_cancelled(outcome)) {
        usleep(10000);
    }
    return 1;
}
int deaf(const mr_claimed_job *job, mr_outcome *outcome, void *arg)
{
    (void)job, (void)outcome, (void)arg;
    while (access("go", F_OK) != 0) {
        usleep(10000);
    }
    return 0;
}
END
    ${CC:-cc} -std=gnu99 -Wall -Wextra -Werror -shared -fPIC -I "$MR_ROOT/include" -o asks.so asks.c
    local a b
    a=$(enqueue_do x)
    daemon asking work "$q" --plugin ./asks.so:asks --concurrency 1 --breaker-failures 1
    wait_until 20 status_is "$a" running
    cancel_running "$a"
    is_cancelled "$a"
    signal asking TERM
    ended asking
    b=$(enqueue_do x)
    daemon deaf work "$q" --plugin ./asks.so:deaf --concurrency 1
    wait_until 20 status_is "$b" running
    cancel_running "$b"
    wait_until 20 logged deaf worker.cancelled
    touch go
    comes_to "$b" completed
}

@test "a job that completes in spite of it is completed" {
    local a b
    make_handlers
    # It was told to stop, and answers all the same.
    a=$(enqueue_do stubborn)
    start_one --exec ./child
    wait_until 20 test -e running
    cancel_running "$a"
    wait_until 20 logged worker worker.cancelled
    touch go
    comes_to "$a" completed
    rm running go
    goes_on
    # It ends before its worker hears of it: the first heartbeat would come in ten minutes.
    sql "select millrace.set_queue('$q', '{\"lease\": \"30 minutes\"}')"
    b=$(enqueue_do patient)
    daemon late work "$q" --run './process {args.do}' --concurrency 1
    wait_until 20 test -e running
    cancel_running "$b"
    touch go
    comes_to "$b" completed
    [ "$(count_logged late worker.cancelled)" -eq 0 ]
}

@test "a job whose worker is gone is not given to another one" {
    local a
    make_handlers
    a=$(enqueue_do hang)
    start_one --exec ./child
    wait_until 20 test -e running
    signal worker KILL
    ended worker
    kill -- "-$(cat running)" # its child sleeps on
    cancel_running "$a"
    wait_until 30 rescued "$a"
    is_cancelled "$a"
    run -0 "$MR_BIN" work "$q" --exec ./child --until-empty
    status_is "$a" cancelled
}

rescued()
{
    sql 'select count(*) from millrace.maintain()' && ! status_is "$1" running
}

# ---- jobs that wait, and the command itself ----------------------------------------------

@test "a job that waits, or comes later, or is paused, is not run any more" {
    local a b c d
    make_handlers
    a=$(enqueue_do fine)
    b=$(sql "select millrace.enqueue('k', '{\"do\": \"fine\"}', queue => '$q', delay => '1 second')")
    c=$(enqueue_do fine)
    d=$(enqueue_do fine)
    sql "select millrace.pause_job($c)"
    for id in "$a" "$b" "$c"; do
        run -0 --separate-stderr "$MR_BIN" cancel "$id" --reason "why $id"
        [ "$output" = "job $id: cancelled" ]
        status_is "$id" cancelled
        reason_is "$id" "why $id"
    done
    "$MR_BIN" work "$q" --exec ./child --until-empty
    status_is "$d" completed
    for id in "$a" "$b" "$c"; do
        status_is "$id" cancelled
        reason_is "$id" "why $id"
    done
}

@test "what had ended already stays as it is, and says so" {
    local a
    make_handlers
    a=$(enqueue_do fine)
    "$MR_BIN" work "$q" --exec ./child --until-empty
    run -0 --separate-stderr "$MR_BIN" cancel "$a" --reason 'too late'
    [ "$output" = "job $a had ended already: completed" ]
    status_is "$a" completed
    run -0 --separate-stderr "$MR_BIN" cancel "$a" --json
    [ "$output" = "{\"id\":$a,\"status\":\"completed\"}" ]
}

@test "as JSON, without a reason, twice, and in the story" {
    local a b
    a=$(enqueue_do fine)
    run -0 --separate-stderr "$MR_BIN" cancel --json "$a"
    [ "$output" = "{\"id\":$a,\"status\":\"cancelled\"}" ]
    [ "$(jq -r .id <<<"$output")" = "$a" ]
    run -0 --separate-stderr "$MR_BIN" cancel "$a" --reason 'another one'
    [ "$output" = "job $a: cancelled" ]
    reason_is "$a" ''
    b=$(enqueue_do fine)
    "$MR_BIN" cancel "$b" --reason $'it\'s "over"'
    run -0 "$MR_BIN" job "$b"
    [[ ${lines[0]} == "job $b: k, cancelled, attempt 1 of 3" ]]
    [[ $output == *$'\n  reason       it\'s "over"\n'* ]]
    [[ $output == *'attempt 1 cancelled'* ]]
    [ "$(sql "select millrace.depth('$q')")" -eq 0 ]
}

@test "the story of a running job says that it is to end" {
    local a
    a=$(enqueue_do fine)
    sql "select count(*) from millrace.claim('$q', 'w')"
    cancel_running "$a"
    run -0 "$MR_BIN" job "$a"
    [[ $output == *$'\n  cancelling   true\n'* ]]
    [[ $output == *$'\n  reason       no longer wanted\n'* ]]
}

@test "an unknown job exits 1 with the server's words, bad input exits 2" {
    run -1 "$MR_BIN" cancel 9223372036854775807
    [ "${lines[0]}" = 'millrace: there is no job 9223372036854775807' ]
    [[ ${lines[1]} == 'hint: Check the id; '* ]]
    [ "${#lines[@]}" -eq 2 ]
    run -1 "$MR_BIN" cancel 1 --reason "$(printf 'x%.0s' {1..1001})"
    [ "${lines[0]}" = 'millrace: reason is 1001 bytes long, the limit is 1000' ]
    for id in x 1x 0 1.5 '' ' ' 9223372036854775808; do
        run -2 "$MR_BIN" cancel "$id"
        [ "${lines[0]}" = "millrace: \"$id\" is not the id of a job" ]
        [[ ${lines[1]} == 'hint: '* ]]
    done
    run -2 "$MR_BIN" cancel
    run -2 "$MR_BIN" cancel 1 2
    run -2 "$MR_BIN" cancel 1 --reason
    run -2 "$MR_BIN" cancel 1 --raeson x
}

@test "who may not steer may not cancel" {
    local a role=cancel_worker_$$
    a=$(enqueue_do fine)
    sql "create role $role login in role millrace_worker"
    MILLRACE_DSN=${MILLRACE_DSN/user=$PGUSER/user=$role} run "$MR_BIN" cancel "$a"
    sql "drop role $role"
    [ "$status" -eq 1 ]
    [[ ${lines[0]} == *'permission denied for function cancel'* ]]
    status_is "$a" available
}
