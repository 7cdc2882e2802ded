#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# Progress as real children report it, and `millrace wait`. The library's side is in library.bats, the
# worker's in worker.bats, the handlers alone in tests/unit/test_exec.c and test_run.c.

bats_require_minimum_version 1.5.0
load ../lib/server
load ../lib/daemon

setup_file()
{
    fresh_db
    sql "select millrace.set_retry('k', max_attempts => 3, base => '10 minutes', jitter => 0)"
}

teardown_file()
{
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

enqueue_one()
{
    sql "select millrace.enqueue('k', '${1:-{\}}', queue => '$q')"
}

progress_is()
{
    [ "$(sql "select concat_ws(' ', j ->> 'status', j ->> 'progress', j ->> 'progress_note') from millrace.job($1) j")" = "$2" ]
}

comes_to()
{
    wait_until 30 progress_is "$1" "$2" || { sql "select millrace.job($1)"; return 1; }
}

# ---- children ----------------------------------------------------------------------------

@test "exec: a child reports, by id or not, and then answers" {
    cat >child <<'END'
#!/usr/bin/env bash
while IFS= read -r line; do
    id=${line#'{"id":'} id=${id%%,*}
    printf '{"id": %d, "progress": 40, "note": "p\\u00e4ge 2"}\n' "$id"
    until [ -e one ]; do sleep 0.05; done
    printf '{"progress": 80.5}\n'
    until [ -e two ]; do sleep 0.05; done
    printf '{"id": %d, "result": {"pages": 5}}\n' "$id"
done
END
    chmod +x child
    id=$(enqueue_one)
    daemon worker work "$q" --exec ./child --concurrency 1
    comes_to "$id" 'running 40 päge 2'
    run -0 "$MR_BIN" job "$id"
    [[ $output == *'  progress     40 %'*'  note         päge 2'* ]]
    touch one
    comes_to "$id" 'running 80.5'
    touch two
    run -0 "$MR_BIN" wait "$id" --timeout 1min
    [ "$output" = "job $id: completed"$'\n''{"pages": 5}' ]
    progress_is "$id" 'completed 80.5'
}

@test "exec: bad reports are left out, what is no JSON fails the job as ever" {
    cat >child <<'END'
#!/usr/bin/env bash
while IFS= read -r line; do
    id=${line#'{"id":'} id=${id%%,*}
    case $line in
    *'"bad"'*)
        printf '{"id": %d, "progress": 7}\n' "$id"
        printf '{"id": %d, "progress": 700}\n{"id": %d, "progress": -1}\n{"id": %d, "progress": "x"}\n' "$id" "$id" "$id"
        printf '{"id": %d, "progress": 8, "note": {}}\n{"id": 1000000, "progress": 9}\n' "$id"
        printf '{"id": %d}\n' "$id"
        ;;
    *'"bytes"'*) printf '{"id": %d, "progress": 8, "note": "\377"}\n' "$id" ;;
    *'"long"'*)
        printf '{"id": %d, "progress": 9, "note": "%s"}\n' "$id" "$(printf 'ü%.0s' {1..4000})"
        printf '{"id": %d}\n' "$id"
        ;;
    esac
done
END
    chmod +x child
    a=$(enqueue_one '{"do": "bad"}')
    b=$(enqueue_one '{"do": "bytes"}')
    c=$(enqueue_one '{"do": "long"}')
    run -0 --separate-stderr "$MR_BIN" work "$q" --exec ./child --concurrency 1 --until-empty
    progress_is "$a" 'completed 7'
    # shellcheck disable=SC2154 # set by run
    [ "$(grep -c 'a report of progress was left out: ' <<<"$stderr")" -eq 4 ]
    progress_is "$b" scheduled
    [[ $(sql "select error from millrace.jobs where id = $b") == 'handler wrote a line that is no answer: invalid JSON at byte '*': not UTF-8: '* ]]
    [ "$(sql "select concat_ws(' ', j ->> 'status', j ->> 'progress', octet_length(j ->> 'progress_note')) from millrace.job($c) j")" = 'completed 9 1000' ]
}

@test "run: lines of standard output report, the rest is as it was" {
    cat >process <<'END'
#!/bin/sh
echo '{"progress": 25, "note": "first"}'
until [ -e one ]; do sleep 0.05; done
echo 'a line for the log'
echo '{"progress": 12345}'
echo '{"progress": 50, "file": "not a report"}'
printf '{"progress": 60, "note": "\377"}\n'
echo '{"result": "fine"}'
echo '{"progress": 100}'
END
    chmod +x process
    id=$(enqueue_one)
    daemon worker work "$q" --run ./process --concurrency 1
    comes_to "$id" 'running 25 first'
    touch one
    run -0 "$MR_BIN" wait "$id" --timeout 1min --json
    [ "$output" = "{\"id\":$id,\"status\":\"completed\",\"result\":\"fine\",\"failure\":null}" ]
    progress_is "$id" 'completed 100'
    logged worker 'a line for the log'
    logged worker 'left out: "progress" is not a number from 0 to 100'
    logged worker 'not a report'
}

@test "a child that reports a thousand times a second leaves a few rows" {
    cat >child <<'END'
#!/usr/bin/env bash
while IFS= read -r line; do
    id=${line#'{"id":'} id=${id%%,*}
    for ((i = 1; i <= 3000; i++)); do
        printf '{"id": %d, "progress": %d.%02d, "note": "row %d"}\n' "$id" $((i / 30)) $((i % 30)) "$i"
    done
    printf '{"id": %d}\n' "$id"
done
END
    chmod +x child
    id=$(enqueue_one)
    SECONDS=0
    "$MR_BIN" work "$q" --exec ./child --concurrency 1 --until-empty
    [ "$(sql "select count(*) from millrace.report where job_id = $id")" -le $((SECONDS + 3)) ]
    progress_is "$id" 'completed 100 row 3000'
}

@test "plugin: a C function reports" {
    cat >far.c <<'C'
#include <millrace/millrace.h>
mr_handler millrace_handler;
int millrace_handler(const mr_claimed_job *job, mr_outcome *outcome, void *arg)
{
    (void)job, (void)arg;
    for (int i = 0; i <= 100; i++) {
        if (mr_outcome_progress(outcome, i, "from C")) {
            return 1;
        }
    }
    return mr_outcome_progress(outcome, 101, 0) == MR_EINVALID ? 0 : 2;
}
C
    ${CC:-cc} -std=c99 -Wall -Wextra -Werror -shared -fPIC -I "$MR_ROOT/include" -o far.so far.c
    id=$(enqueue_one)
    "$MR_BIN" work "$q" --plugin ./far.so --until-empty
    progress_is "$id" 'completed 100 from C'
}

have_reported_twice()
{
    [ "$(sql "select count(*) from (select from millrace.report r join millrace.jobs j on j.id = r.job_id where j.queue = '$q' group by r.job_id having count(*) > 1) s")" -eq 4 ]
}

# The job comes back with its next attempt; what is lost with the worker is a report.
@test "a worker killed while it reports loses nothing but the report" {
    cat >child <<'END'
#!/usr/bin/env bash
while IFS= read -r line; do
    id=${line#'{"id":'} id=${id%%,*}
    while [ ! -e go ]; do
        printf '{"id": %d, "progress": 50, "note": "again and again"}\n' "$id"
        sleep 0.001
    done
    printf '{"id": %d, "result": 1}\n' "$id"
done
END
    chmod +x child
    sql "select millrace.set_queue('$q', '{\"lease\": \"1 second\"}')"
    local ids=() job
    for job in 1 2 3 4; do ids+=("$(enqueue_one)"); done
    daemon first work "$q" --exec ./child --concurrency 4
    for job in "${ids[@]}"; do comes_to "$job" 'running 50 again and again'; done
    # they go on reporting: the worker holds the next report of each, or has just sent it
    wait_until 30 have_reported_twice
    signal first KILL
    ended first
    touch go
    daemon second work "$q" --exec ./child --concurrency 4
    for job in "${ids[@]}"; do
        run -0 "$MR_BIN" wait "$job" --timeout 1min
        [ "$output" = "job $job: completed"$'\n'1 ]
    done
    [ "$(sql "select count(*), count(distinct id), min(attempt), max(attempt) from millrace.jobs where queue = '$q'")" = '4|4|2|2' ]
}

# ---- millrace wait -----------------------------------------------------------------------

@test "wait: what came of a job, and the exit status says it" {
    local id lease
    id=$(enqueue_one)
    run -6 "$MR_BIN" wait "$id" --timeout 100ms
    [ "${lines[0]}" = "millrace: job $id has not ended within 100 ms: it is available" ]
    lease=$(sql "select lease from millrace.claim('$q')")
    run -6 "$MR_BIN" wait "$id" --timeout 1ms --json
    [ "${lines[0]}" = "millrace: job $id has not ended within 1 ms: it is running" ]
    sql "select millrace.fail('$lease', $id, E'bad\\nluck', retry => false)"
    run -5 "$MR_BIN" wait "$id"
    [ "$output" = "job $id: dead: bad luck" ]
    run -5 "$MR_BIN" wait "$id" --json
    [ "$output" = "{\"id\":$id,\"status\":\"dead\",\"result\":null,\"failure\":\"bad\\u000aluck\"}" ]
    id=$(enqueue_one)
    "$MR_BIN" cancel "$id" --reason 'no need'
    run -5 "$MR_BIN" wait "$id"
    [ "$output" = "job $id: cancelled: no need" ]
    id=$(sql "select millrace.enqueue('k', queue => '$q', expires_in => '1 ms')")
    run -5 "$MR_BIN" wait "$id" --timeout 1min
    [ "$output" = "job $id: expired" ]
    id=$(sql "select millrace.enqueue('k', queue => '$q', delay => '1 hour')")
    run -6 "$MR_BIN" wait "$id" --timeout 20ms
    [[ $output == *'it is scheduled'* ]]
    sql "select millrace.pause_job($id)"
    run -6 "$MR_BIN" wait "$id" --timeout 20ms
    [[ $output == *'it is paused'* ]]
}

@test "wait: no such job, no database, no sense" {
    run -1 "$MR_BIN" wait 123456789
    [ "${lines[0]}" = 'millrace: there is no job 123456789' ]
    [[ ${lines[1]} == 'hint: '* ]]
    run -2 "$MR_BIN" wait
    run -2 "$MR_BIN" wait 1 2
    run -2 "$MR_BIN" wait seven
    run -2 "$MR_BIN" wait -- -1
    run -2 "$MR_BIN" wait 1 --timeout 0s
    run -2 "$MR_BIN" wait 1 --timeout soon
    run -3 "$MR_BIN" wait 1 --dsn 'host=/nonexistent dbname=x'
}

@test "wait: through a worker that comes later" {
    id=$(enqueue_one)
    "$MR_BIN" wait "$id" --timeout 1min >waited 3>&- &
    local pid=$!
    "$MR_BIN" work "$q" --run "echo '{\"result\": [1, 2]}'" --until-empty
    wait $pid
    [ "$(cat waited)" = "job $id: completed"$'\n''[1, 2]' ]
}

@test "wait: a reader is enough" {
    sql "create role progress_reader_$$ login in role millrace_reader"
    id=$(enqueue_one)
    run -6 "$MR_BIN" wait "$id" --timeout 10ms --dsn "$MILLRACE_DSN user=progress_reader_$$"
    sql "drop role progress_reader_$$"
}
