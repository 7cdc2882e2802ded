#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# The exec handler from the queue to the job's fate: children of every sort, and what the log
# says about them. The handler alone, with more of them, is in tests/unit/test_exec.c.

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

# A child in shell. Standard input of this function is a list of cases of args.do; the job's id is
# in $id, and `answer JSON-MEMBERS` answers.
child()
{
    {
        cat <<'END'
#!/usr/bin/env bash
answer() { printf '{"id": %d%s}\n' "$id" "${1:+, $1}"; }
echo $$ >>pids
while IFS= read -r line; do
    id=${line#'{"id":'} id=${id%%,*}
    what=${line#*'"do": "'} what=${what%%'"'*}
    case $what in
END
        cat
        echo '    *) answer ;;'
        echo '    esac'
        echo 'done'
    } >child
    chmod +x child
}

enqueue_do()
{
    sql "select millrace.enqueue('k', '{\"do\": \"$1\"}', queue => '$q'${2:+, $2})"
}

work()
{
    "$MR_BIN" work "$q" --exec ./child --until-empty --breaker-failures 0 "$@" 2>log
}

# What became of the job $1: status, number of the next or last attempt, last error.
fate_is()
{
    local fate
    fate=$(sql "select status, attempt, coalesce(error, '') from millrace.jobs where id = $1")
    # shellcheck disable=SC2053 # a pattern
    [[ $fate == $2 ]] || { echo "job $1: $fate"; cat log; return 1; }
}

children()
{
    wc -l <pids
}

@test "many jobs through a few children, none twice" {
    child </dev/null
    enqueue 5000 "$q"
    work --concurrency 3
    jobs_are "$q" completed 5000
    [ "$(sql "select count(*) from millrace.jobs where queue = '$q' and attempt > 1")" -eq 0 ]
    [ "$(children)" -le 3 ]
}

@test "a child may be any command with arguments, in quotes like those of a shell" {
    a=$(enqueue_do x)
    run -0 "$MR_BIN" work "$q" --until-empty --exec "sed -u 's/{\"id\":\\([0-9]*\\).*/{\"id\":\\1, \"result\": \"it'\\''s \\1\"}/'"
    [ "$(sql "select millrace.job($a) ->> 'result'")" = "it's $a" ]
}

@test "done with a result, failed, failed for good, snoozed, requeued, released" {
    child <<'END'
    done) answer '"result": {"n": 12345678901234567890.5}' ;;
    fail) answer '"error": "no route", "state": "AAEC"' ;;
    soon) answer '"error": "busy", "retry_in": "1 hour"' ;;
    never) answer '"error": "no such user", "retry": false' ;;
    snooze) answer '"outcome": "snoozed", "delay": 3600' ;;
    move) answer '"outcome": "requeued", "changes": {"queue": "elsewhere", "args": {"b": 2}}' ;;
    back) [ -e back ] && answer || answer '"outcome": "released"'; touch back ;;
END
    for what in "done" fail soon never snooze move back; do
        declare "id_$what=$(enqueue_do $what)"
    done
    work
    # shellcheck disable=SC2154 # declared above
    {
        fate_is "$id_done" 'completed|1|'
        fate_is "$id_fail" 'scheduled|2|no route'
        fate_is "$id_soon" 'scheduled|2|busy'
        fate_is "$id_never" 'dead|1|no such user'
        fate_is "$id_snooze" 'scheduled|1|'
        fate_is "$id_move" 'available|1|'
        fate_is "$id_back" 'completed|1|'
        [ "$(sql "select millrace.job($id_done) ->> 'result'")" = '{"n": 12345678901234567890.5}' ]
        [ "$(sql "select run_at > now() + interval '50 minutes' from millrace.jobs where id in ($id_soon)")" = t ]
        [ "$(sql "select queue, args from millrace.jobs where id = $id_move")" = 'elsewhere|{"b": 2}' ]
    }
}

@test "what the server refuses fails its own job only" {
    child <<'END'
    interval) answer '"outcome": "snoozed", "delay": "soon"' ;;
    base64) answer '"error": "x", "state": "%%%"' ;;
    nul) answer '"result": "\u0000"' ;;
END
    a=$(enqueue_do interval)
    b=$(enqueue_do base64)
    c=$(enqueue_do nul)
    d=$(enqueue_do fine)
    work
    fate_is "$a" 'scheduled|2|*soon*'
    fate_is "$b" 'scheduled|2|*state*'
    fate_is "$c" 'scheduled|2|*'
    fate_is "$d" 'completed|1|'
}

@test "a malformed line fails the job with its beginning, and the child goes on" {
    child <<'END'
    chat) echo 'Traceback (most recent call last):'; answer ;;
    typo) answer '"reslt": 5' ;;
    other) id=77777777; answer ;;
END
    a=$(enqueue_do chat)
    b=$(enqueue_do typo)
    c=$(enqueue_do other)
    d=$(enqueue_do fine)
    work --concurrency 1
    fate_is "$a" 'scheduled|2|handler wrote a line that is no answer: invalid JSON at byte 1: expected an object: Traceback (most recent call last):'
    fate_is "$b" 'scheduled|2|handler wrote a line that is no answer: unknown key "reslt": {"id": *'
    fate_is "$c" 'scheduled|2|handler wrote a line that is no answer: it has no such job: {"id": 77777777}'
    fate_is "$d" 'completed|1|'
    [ "$(children)" -eq 1 ]
}

@test "too long a line fails the job and ends the child" {
    child <<'END'
    shout) head -c 9000000 /dev/zero | tr '\0' x; echo; answer ;;
END
    a=$(enqueue_do shout)
    b=$(enqueue_do fine)
    work --concurrency 1
    fate_is "$a" 'scheduled|2|handler wrote a line of more than 8388608 bytes: xxx*'
    fate_is "$b" 'completed|1|'
    [ "$(children)" -eq 2 ]
}

@test "a child that exits fails the job it ran, no other" {
    child <<'END'
    exit) echo 'disk full' >&2; exit 3 ;;
    crash) kill -SEGV $$ ;;
END
    sql "select count(*) from millrace.enqueue_many('k', array_fill('{\"do\": \"fine\"}'::jsonb, array[100]), '$q')"
    a=$(enqueue_do "exit")
    b=$(enqueue_do crash)
    sql "select count(*) from millrace.enqueue_many('k', array_fill('{\"do\": \"fine\"}'::jsonb, array[100]), '$q')"
    work --concurrency 1
    fate_is "$a" 'scheduled|2|handler exited with status 3 while it ran the job: disk full'
    fate_is "$b" 'scheduled|2|handler exited with signal SIGSEGV while it ran the job*'
    jobs_are "$q" completed 200
    [ "$(sql "select count(*) from millrace.jobs where queue = '$q' and attempt > 1")" -eq 2 ]
    grep -q 'warning handler.exited: handler exited with status 3, started again after 100 ms' log
    grep -q "handler.output: disk full (worker=$q job=" log
}

@test "a child that forks and leaves has left" {
    child <<'END'
    leave) sleep 600 & echo $! >left; exit 0 ;;
END
    a=$(enqueue_do leave)
    b=$(enqueue_do fine)
    work --concurrency 1
    # The sleep still holds the pipes.
    kill "$(cat left)"
    fate_is "$a" 'scheduled|2|handler exited with status 0 while it ran the job'
    fate_is "$b" 'completed|1|'
}

@test "a hung child is killed after its time, also one that ignores SIGTERM" {
    child <<'END'
    hang) sleep 600 ;;
    deaf) trap '' TERM; sleep 600 & echo $! >deaf; while :; do sleep 1; done ;;
END
    a=$(enqueue_do hang)
    b=$(enqueue_do deaf "timeout => '700 ms'")
    c=$(enqueue_do fine)
    work --timeout 1s --concurrency 2
    fate_is "$a" 'scheduled|2|timed out after 1 s'
    fate_is "$b" 'scheduled|2|timed out after 0.7 s'
    fate_is "$c" 'completed|1|'
    # Nothing of it is left, neither the child nor what it had started.
    while read -r pid; do
        wait_until 10 is_gone "$pid"
    done < <(cat pids deaf)
}

@test "a child that always fails is started less and less often; the breaker stops it" {
    printf '#!/bin/sh\nexit 1\n' >child
    chmod +x child
    for _ in 1 2 3 4 5 6; do enqueue_do fine >/dev/null; done
    daemon worker work "$q" --exec ./child --concurrency 1 --breaker-failures 3
    wait_until 20 logged worker breaker.opened
    logged worker 'started again after 100 ms'
    logged worker 'started again after 200 ms'
    jobs_are "$q" scheduled 3
    jobs_are "$q" available 3
    signal worker TERM
    ended worker
    [ "$status" -eq 0 ]
}

@test "standard error reaches the log with the job, bounded, as JSON too" {
    child <<'END'
    say) printf 'to whom\t\033[31mit may concern\033[0m\n' >&2; answer ;;
    flood) seq 1 1000 >&2; answer ;;
    long) head -c 100000 /dev/zero | tr '\0' y >&2; echo >&2; answer ;;
END
    a=$(enqueue_do say)
    work
    grep -q "info handler.output: to whom  .31mit may concern .0m (worker=$q job=$a)" log
    b=$(enqueue_do flood)
    work
    [ "$(grep -c "job=$b" log)" -eq 101 ]
    grep -q "handler.output: 900 more lines were left out (worker=$q job=$b)" log
    c=$(enqueue_do long)
    MILLRACE_LOG=json work
    [ "$(jq -r "select(.job == $c) | .message | length" log)" -lt 8300 ]
    jq -r "select(.job == $c) | .message" log | grep -q 'yyy ... (the line is longer)$'
}

@test "a command that cannot run is refused before anything is claimed" {
    a=$(enqueue_do fine)
    run -1 "$MR_BIN" work "$q" --until-empty --exec ./missing
    [[ $output == *'cannot run ./missing: No such file or directory'*'hint: '* ]]
    run -1 "$MR_BIN" work "$q" --until-empty --exec no-such-command
    [[ $output == *'cannot run no-such-command: no such command'*'hint: '*PATH* ]]
    touch flat.py
    run -1 "$MR_BIN" work "$q" --until-empty --exec ./flat.py
    [[ $output == *'cannot run ./flat.py: not executable'*'chmod +x ./flat.py'* ]]
    run -1 "$MR_BIN" work "$q" --until-empty --exec 'cat | sh'
    [[ $output == *'| outside of quotes'*'sh -c'* ]]
    run -1 "$MR_BIN" work "$q" --until-empty --exec 'cat {args.x}'
    [[ $output == *'placeholder {args.x}'*'Use run'* ]]
    [ "$(sql "select status, attempt from millrace.jobs where id = $a")" = 'available|1' ]
}

@test "what runs when the grace period ends goes back, its child ended" {
    child <<'END'
    hang) touch running; sleep 600 ;;
END
    a=$(enqueue_do hang)
    daemon worker work "$q" --exec ./child --concurrency 1 --grace 300ms
    wait_until 20 test -e running
    signal worker TERM
    ended worker
    [ "$status" -eq 0 ]
    [ "$(sql "select status, attempt from millrace.jobs where id = $a")" = 'available|1' ]
    wait_until 10 is_gone "$(cat pids)"
}
