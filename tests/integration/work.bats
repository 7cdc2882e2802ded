#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# `millrace work`: the command line, its start and its end, the breaker. What each kind of handler
# does with a job is tested elsewhere.

bats_require_minimum_version 1.5.0
load ../lib/server
load ../lib/daemon

setup_file()
{
    fresh_db
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

work()
{
    "$MR_BIN" work "$@"
}

# A program that says that it runs, waits for the file "go" and ends well.
write_waiting()
{
    cat >wait.sh <<'END'
#!/bin/sh
echo "$MILLRACE_JOB_ID" >>started
until [ -e go ]; do sleep 0.05; done
END
    chmod +x wait.sh
}

@test "wrong usage says what is missing" {
    run work
    [ "$status" -eq 2 ]
    [[ $output == *'no queue given'* ]]
    run work "$q"
    [ "$status" -eq 2 ]
    [[ $output == *'no handler given'*--exec*--plugin* ]]
    run work "$q" --run true --exec cat
    [ "$status" -eq 2 ]
    [[ $output == *'more than one handler'* ]]
    run work "$q" other --run true
    [ "$status" -eq 2 ]
    [[ $output == *'work takes one queue: "other"'* ]]
    run work "$q" --run true --batch 0
    [ "$status" -eq 2 ]
    run work "$q" --run true --cuncurrency 3
    [ "$status" -eq 2 ]
    [[ $output == *'Did you mean --concurrency?'* ]]
    run work --help
    [ "$status" -eq 0 ]
    [[ $output == *--until-empty* ]]
}

@test "until nothing is left, with a summary" {
    enqueue 50 "$q"
    run --separate-stderr work "$q" --run true --until-empty
    [ "$status" -eq 0 ]
    [[ $output =~ ^completed\ 50,\ failed\ 0,\ requeued\ 0,\ released\ 0,\ lost\ 0\ in\ [0-9.]+\ s$ ]]
    jobs_are "$q" completed 50
    enqueue 3 "$q"
    run --separate-stderr work --json --until-empty --run true "$q"
    [ "$status" -eq 0 ]
    [ "$(sql "select ('$output'::jsonb - 'seconds')")" = \
        '{"lost": 0, "failed": 0, "released": 0, "requeued": 0, "completed": 3, "reconnects": 0}' ]
}

@test "options before the queue, a name, a lease of its own" {
    write_waiting
    enqueue 1 "$q"
    daemon w work --run ./wait.sh --name mailer --lease 77s "$q" --until-empty
    wait_until 20 [ -s started ]
    [ "$(sql "select split_part(worker, '@', 1), round(extract(epoch from lease_until - last_claim_at)) from millrace.workers where queue = '$q'")" = 'mailer|77' ]
    touch go
    ended w
    [ "$status" -eq 0 ]
}

@test "a failure is logged with job, kind, attempt and error" {
    sql "select millrace.enqueue('send', queue => '$q', max_attempts => 1)"
    run work "$q" --run 'sh -c "echo no route >&2; exit 3"' --until-empty
    [ "$status" -eq 0 ]
    [[ $output == *'warning worker.failed: job '*' failed: '*"(worker=$q queue=$q job="*'kind=send attempt=1 max_attempts=1)'* ]]
    jobs_are "$q" dead 1
}

@test "JSON logs are JSON, line by line" {
    local line count=0
    enqueue 3 "$q"
    MILLRACE_LOG=json MILLRACE_LOG_LEVEL=debug daemon w work "$q" --until-empty \
        --run "sh -c 'printf \"\\377 \\\"quoted\\\" \\t\\n\" >&2; exit 1'"
    ended w
    [ "$status" -eq 0 ]
    while IFS= read -r line; do
        psql -X -q -A -t -v ON_ERROR_STOP=1 -v line="$line" <<<"select (:'line'::jsonb) ?& array['time', 'level', 'event', 'message']" |
            grep -qx t
        count=$((count + 1))
    done <w.log
    [ "$count" -ge 4 ]
    grep -q '"event":"worker.failed"' w.log
}

@test "a database that cannot be reached, or is not ours" {
    run work "$q" --run true --dsn 'host=/nonexistent dbname=x'
    [ "$status" -eq 3 ]
    [[ $output == *'cannot connect to the database'* ]]
    run work "$q" --run true --dsn 'postgresql://host%zz/db'
    [ "$status" -eq 2 ]
    (
        empty_db
        run work "$q" --run true
        drop_db
        [ "$status" -eq 1 ]
        [[ $output == *'millrace migrate'* ]]
    )
    sql "create role plain_$BATS_TEST_NUMBER login"
    run work "$q" --run true --dsn "$MILLRACE_DSN user=plain_$BATS_TEST_NUMBER"
    sql "drop role plain_$BATS_TEST_NUMBER"
    [ "$status" -eq 1 ]
    [[ $output == *'permission denied'* ]]
}

@test "a wrong password and a server without TLS" {
    private_server tls --listen
    local where="host=127.0.0.1 port=$PGPORT user=$PGUSER dbname=postgres"
    "$MR_BIN" migrate --dsn "$where" >/dev/null
    PGPASSWORD=wrong run work "$q" --run true --dsn "$where"
    [ "$status" -eq 3 ]
    [[ $output == *'password authentication failed'* ]]
    run work "$q" --run true --dsn "$where sslmode=require"
    [ "$status" -eq 3 ]
    [[ $output == *'server does not support SSL'* ]]
    run work "$q" --run true --dsn "$where" --until-empty
    [ "$status" -eq 0 ]
    remove_private_server
}

@test "a handler that cannot be opened is said at once" {
    run work "$q" --run ./no-such-program
    [ "$status" -eq 1 ]
    [[ $output == *no-such-program* ]]
}

@test "the first signal lets running jobs finish and claims no more" {
    write_waiting
    enqueue 5 "$q"
    daemon w work "$q" --run ./wait.sh --concurrency 2
    wait_until 20 two_started
    signal w TERM
    touch go
    ended w
    [ "$status" -eq 0 ]
    jobs_are "$q" completed 2
    jobs_are "$q" available 3
}

two_started()
{
    [ "$(wc -l <started)" -eq 2 ]
}

@test "what the grace period leaves goes back, its attempt not counted" {
    write_waiting
    enqueue 3 "$q"
    daemon w work "$q" --run ./wait.sh --concurrency 2 --grace 300ms
    wait_until 20 two_started
    signal w INT
    ended w
    [ "$status" -eq 0 ]
    jobs_are "$q" available 3
    touch go
    run --separate-stderr work "$q" --run ./wait.sh --until-empty
    [ "$(sql "select distinct status, attempt from millrace.jobs where queue = '$q'")" = 'completed|1' ]
}

@test "the second signal ends it at once" {
    write_waiting
    enqueue 1 "$q"
    daemon w work "$q" --run ./wait.sh
    wait_until 20 [ -s started ]
    signal w TERM
    wait_until 20 logged w signal.stop
    signal w TERM
    ended w
    [ "$status" -eq 1 ]
    logged w 'signal.exit'
    touch go
}

@test "a closed terminal ends it, unless it was started with nohup" {
    daemon w work "$q" --run true
    wait_until 20 logged w worker.connected
    signal w HUP
    ended w
    [ "$status" -eq 0 ]
    trap '' HUP
    daemon n work "$q" --run true
    trap - HUP
    wait_until 20 logged n worker.connected
    signal n HUP
    enqueue 1 "$q"
    wait_until 20 jobs_are "$q" completed 1
    signal n TERM
    ended n
    [ "$status" -eq 0 ]
}

@test "an open breaker claims nothing and burns no attempt; a probe closes it" {
    cat >flaky.sh <<'END'
#!/bin/sh
echo x >>runs
[ -e works ]
END
    chmod +x flaky.sh
    enqueue 20 "$q"
    daemon w work "$q" --run ./flaky.sh --concurrency 1 --breaker-failures 3 --breaker-open 700ms
    wait_until 20 logged w 'breaker.opened: 3 failures in a row'
    # The probes fail: each opens it again, and nothing else runs.
    wait_until 20 three_probes
    touch works
    wait_until 20 logged w breaker.closed
    wait_until 30 jobs_are "$q" available 0
    signal w TERM
    ended w
    [ "$status" -eq 0 ]
    # one attempt for each failure, not more
    [ "$(sql "select max(attempt) <= 2 from millrace.jobs where queue = '$q'")" = t ]
}

# Three failures and two probes at least, and never more than a probe each time it opened.
three_probes()
{
    local runs opened
    runs=$(wc -l <runs)
    opened=$(count_logged w breaker.opened)
    [ "$opened" -ge 3 ] && [ "$runs" -le $((opened + 3)) ]
}

@test "without named statements and LISTEN" {
    enqueue 10 "$q"
    run --separate-stderr work "$q" --run true --pooler --poll 20ms --until-empty
    [ "$status" -eq 0 ]
    [[ $output == 'completed 10,'* ]]
}

@test "it reconnects by itself and loses nothing" {
    enqueue 200 "$q"
    daemon w work "$q" --run true --concurrency 4
    wait_until 20 logged w worker.connected
    sql "select count(pg_terminate_backend(pid)) from pg_stat_activity
          where application_name = 'millrace worker' and datname = current_database()"
    wait_until 20 logged w 'worker.disconnected: lost the connection'
    wait_until 30 jobs_are "$q" completed 200
    [ "$(count_logged w worker.connected)" -eq 2 ]
    signal w TERM
    ended w
    [ "$status" -eq 0 ]
}
