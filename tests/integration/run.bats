#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# The run handler from the queue to the job's fate: a process per job, its arguments, its exit
# status, its end. The handler alone is in tests/unit/test_run.c.

bats_require_minimum_version 1.5.0
load ../lib/server
load ../lib/daemon

setup_file()
{
    fresh_db
    # What fails stays where it can be looked at.
    sql "select millrace.set_retry('k', max_attempts => 3, base => '10 minutes', jitter => 0)"
}

teardown_file()
{
    drop_db
}

setup()
{
    q=q$BATS_TEST_NUMBER
    cd "$BATS_TEST_TMPDIR" || return
}

teardown()
{
    end_daemons
}

# The program $1, from standard input.
program()
{
    { echo '#!/usr/bin/env bash'; cat; } >"$1"
    chmod +x "$1"
}

# A job with the args $1 and the options $2.
enqueue_args()
{
    sql "select millrace.enqueue('k', '$1', queue => '$q'${2:+, $2})"
}

work()
{
    local command=$1
    shift
    "$MR_BIN" work "$q" --run "$command" --until-empty --breaker-failures 0 "$@" 2>log
}

fate_is()
{
    local fate
    fate=$(sql "select status, attempt, coalesce(error, '') from millrace.jobs where id = $1")
    # shellcheck disable=SC2053 # a pattern
    [[ $fate == $2 ]] || { echo "job $1: $fate"; cat log; return 1; }
}

@test "an existing script is called as it is, with values of the job in its arguments" {
    program etl <<'END'
printf '[%s]' "$@" >>called
END
    a=$(enqueue_args '{"note_id": 12, "title": "a \"b\"  $(touch owned)\nc", "at": {"place": "Ülm"}}' \
        "ref => 'r 1', tenant => 'acme', meta => '{\"trace\": 7}'")
    work './etl --note-id {args.note_id} "--title={args.title}" {args.at.place} {args.at} {id} {kind} {queue} {attempt} {ref} {tenant} {meta.trace}'
    fate_is "$a" 'completed|1|'
    [ "$(cat called)" = "[--note-id][12][--title=a \"b\"  \$(touch owned)
c][Ülm][{\"place\": \"Ülm\"}][$a][k][$q][1][r 1][acme][7]" ]
    [ ! -e owned ]
}

@test "the job is on standard input, and in the environment" {
    program look <<'END'
jq -e '.kind == "k" and .args.n == 5 and .attempt == 1 and .ref == "r 1" and (.state | @base64d) == "abc"' >/dev/null || exit 1
env | grep '^MILLRACE_[A-CE-Z]' | sort >env
END
    a=$(enqueue_args '{"n": 5}' "ref => 'r 1', state => 'abc'")
    MILLRACE_TENANT=stale work ./look --name looker
    fate_is "$a" 'completed|1|'
    [ "$(cat env)" = "MILLRACE_ATTEMPT=1
MILLRACE_JOB_ID=$a
MILLRACE_KIND=k
MILLRACE_MAX_ATTEMPTS=3
MILLRACE_QUEUE=$q
MILLRACE_REF=r 1
MILLRACE_WORKER=looker" ]
}

@test "the exit status decides" {
    program "exit" <<'END'
echo "status $1" >&2
exit "$1"
END
    for status in 0 1 64 65 69 75 78; do
        declare "id_$status=$(enqueue_args "{\"status\": $status}")"
    done
    work './exit {args.status}'
    # shellcheck disable=SC2154 # declared above
    {
        fate_is "$id_0" 'completed|1|'
        fate_is "$id_1" 'scheduled|2|exited with status 1: status 1'
        fate_is "$id_64" 'dead|1|exited with status 64: status 64'
        fate_is "$id_65" 'dead|1|exited with status 65: status 65'
        fate_is "$id_69" 'scheduled|2|exited with status 69: status 69'
        fate_is "$id_75" 'scheduled|2|exited with status 75: status 75'
        fate_is "$id_78" 'dead|1|exited with status 78: status 78'
    }
}

@test "a last line that is an answer counts, other output is logged" {
    program answer <<'END'
echo "working on $MILLRACE_JOB_ID"
printf '%s\n' "$1"
END
    a=$(enqueue_args '{"say": "{\"result\": [1, 2]}"}')
    b=$(enqueue_args '{"say": "{\"outcome\": \"snoozed\", \"delay\": \"1 hour\"}"}')
    c=$(enqueue_args '{"say": "{\"rows\": 5}"}')
    d=$(enqueue_args '{"say": "{\"outcome\": \"snoozed\"}"}')
    work './answer {args.say}'
    fate_is "$a" 'completed|1|'
    fate_is "$b" 'scheduled|1|'
    fate_is "$c" 'completed|1|'
    fate_is "$d" 'scheduled|2|the last line of output is no answer: the outcome snoozed needs "delay"'
    [ "$(sql "select millrace.job($a) ->> 'result'")" = '[1, 2]' ]
    grep -q "info handler.output: working on $a (worker=$q job=$a)" log
    grep -q "info handler.output: {\"rows\": 5} (worker=$q job=$c)" log
    run ! grep -q "{\"result\"" log
}

@test "a job that lacks a value of the command line is a dead letter that says so" {
    a=$(enqueue_args '{"other": 1}')
    b=$(enqueue_args '{"file": null}')
    c=$(enqueue_args '{"file": "--help"}')
    d=$(enqueue_args '{"file": "x"}')
    work 'touch {args.file}'
    fate_is "$a" 'dead|1|the command needs args.file, which the job does not have'
    fate_is "$b" 'dead|1|the command needs args.file, which is null'
    fate_is "$c" 'dead|1|args.file begins with a dash and would be taken for an option'
    fate_is "$d" 'completed|1|'
    [ -e x ]
}

@test "no more processes at once than the concurrency" {
    program slow <<'END'
touch "running.$$"
find . -name 'running.*' | wc -l >>counts
sleep 0.1
rm "running.$$"
END
    enqueue 20 "$q"
    work ./slow --concurrency 3
    jobs_are "$q" completed 20
    [ "$(sort -n counts | tail -n 1)" -le 3 ]
}

@test "a hung process is killed after its time, with what it started" {
    program hang <<'END'
[ "$1" != deaf ] || trap '' TERM
sleep 600 &
echo $! >>pids
echo $$ >>pids
wait
[ "$1" != deaf ] || while :; do sleep 1; done
END
    a=$(enqueue_args '{"how": "plain"}')
    b=$(enqueue_args '{"how": "deaf"}' "timeout => '500 ms'")
    work './hang {args.how}' --timeout 1s --concurrency 2
    fate_is "$a" 'scheduled|2|timed out after 1 s'
    fate_is "$b" 'scheduled|2|timed out after 0.5 s'
    while read -r pid; do
        wait_until 10 is_gone "$pid"
    done <pids
}

@test "a process that forks and leaves has ended, and its child stays" {
    program leave <<'END'
sleep 600 &
echo $! >left
echo '{"result": "left"}'
END
    a=$(enqueue_args '{}')
    work ./leave
    fate_is "$a" 'completed|1|'
    kill "$(cat left)"
}

@test "output without end is bounded" {
    program flood <<'END'
seq 1 100000
head -c 20000000 /dev/zero
seq 1 100000 >&2
exit 1
END
    a=$(enqueue_args '{}')
    work ./flood
    fate_is "$a" 'scheduled|2|exited with status 1: 100000'
    [ "$(grep -c handler.output log)" -eq 101 ]
    grep -q "19990[0-9] more lines were left out (worker=$q job=$a)" log
}

@test "a command that cannot be right is refused before anything is claimed" {
    a=$(enqueue_args '{}')
    for pair in "sh -c 'echo {args.x}'|placeholder {args.x} inside of a shell script*\"\$1\"" \
        '{args.x} y|the command itself must not contain a placeholder' 'echo {arg.x}|unknown placeholder {arg.x}*{{arg.x}}' \
        "echo 'a|a single quote is not closed" './missing|cannot run ./missing: No such file or directory' \
        'echo x > y|> outside of quotes'; do
        run -1 "$MR_BIN" work "$q" --until-empty --run "${pair%%|*}"
        # shellcheck disable=SC2053 # a pattern
        [[ $output == *${pair#*|}* ]] || { echo "$pair: $output"; return 1; }
    done
    fate_is "$a" 'available|1|'
}

@test "a job whose lease is lost is stopped" {
    program hang <<'END'
echo $$ >pid.new
mv pid.new pid
sleep 600
END
    enqueue_args '{}'
    daemon worker work "$q" --run ./hang --concurrency 1 --lease 1s --grace 100ms
    wait_until 20 test -e pid
    first=$(cat pid)
    # Somebody else may have it from now on.
    sql "select millrace.rescue(clock_timestamp() + interval '1 minute', 10)" >/dev/null
    wait_until 20 logged worker worker.lease_lost
    wait_until 20 is_gone "$first"
    signal worker TERM
    ended worker
    [ "$status" -eq 0 ]
    wait_until 10 is_gone "$(cat pid)"
}
