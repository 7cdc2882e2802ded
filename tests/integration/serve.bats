#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# `millrace serve`: roles, reload, signals, several at once, a database that goes away.

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
    write_waiting
}

teardown()
{
    touch go
    end_daemons
}

# A program that says that it runs, waits for the file "go" and ends well.
write_waiting()
{
    cat >wait.sh <<'END'
#!/bin/sh
echo "$MILLRACE_JOB_ID" >>started
until [ -e go ]; do sleep 0.05; done
END
    # A persistent child that writes its pid once and answers every job.
    cat >answer.sh <<'END'
#!/bin/bash
echo $$ >>"$1"
while read -r line; do
    [[ $line =~ \"id\":\ ?([0-9]+) ]] && echo "{\"id\": ${BASH_REMATCH[1]}}"
done
END
    chmod +x wait.sh answer.sh
}

started()
{
    [ "$(wc -l <started)" -ge "$1" ]
}

stop()
{
    signal "$1" TERM
    ended "$1"
    [ "$status" -eq 0 ]
}

@test "starts, says so, works and ends with a summary" {
    cat >conf <<END
worker one { queue = "$q" run = "true" }
worker two { queue = "${q}b" exec = "./answer.sh pids" }
END
    enqueue 20 "$q"
    enqueue 20 "${q}b"
    daemon serve serve -c conf --pid-file pid
    wait_until 20 logged serve 'serve.ready: ready'
    logged serve 'serve.start: millrace .* starts \(version=.* roles=work,maintain config=conf workers=2 pid='
    [ "$(cat pid)" -eq "$(pid_of serve)" ]
    run "$MR_BIN" serve -c conf --pid-file pid
    [ "$status" -eq 1 ]
    [[ $output == *"process $(pid_of serve) runs already"* ]]
    wait_until 20 jobs_are "$q" completed 20
    wait_until 20 jobs_are "${q}b" completed 20
    [ "$(count_logged serve 'worker.connected.*worker=one')" -eq 1 ]
    stop serve
    logged serve 'worker.ended: ended \(worker=one completed=20 failed=0'
    logged serve 'serve.end: millrace ends \(completed=40 failed=0 requeued=0 released=0 lost=0 reconnects=0 rounds=[1-9]'
    [ ! -e pid ]
}

@test "a file or a handler that is no good: not started" {
    echo 'worker w { queue = q run = ./no-such-program }' >conf
    run "$MR_BIN" serve -c conf
    [ "$status" -eq 1 ]
    [[ $output == *'worker w: '*no-such-program* ]]
    # with one that could be started before it
    echo "worker good { queue = \"$q\" run = \"true\" }" >>conf
    sed -i '1!G;h;$!d' conf
    enqueue 1 "$q"
    run "$MR_BIN" serve -c conf
    [ "$status" -eq 1 ]
    [[ $output == *'worker w: '*no-such-program* ]]
    jobs_are "$q" available 1
    echo 'wroker w { }' >conf
    run "$MR_BIN" serve -c conf
    [ "$status" -eq 1 ]
    [[ $output == *'conf:1: unknown key "wroker"'* ]]
}

@test "the role work alone makes no upkeep, maintain alone takes no jobs" {
    echo "worker w { queue = \"$q\" run = \"true\" }" >conf
    daemon upkeep serve -c conf --roles maintain
    wait_until 20 logged upkeep serve.ready
    enqueue 5 "$q"
    sql "select millrace.enqueue('k', queue => '$q', delay => '300 milliseconds')"
    wait_until 20 jobs_are "$q" available 6
    daemon work serve -c conf --roles work
    wait_until 20 jobs_are "$q" completed 6
    stop work
    logged work 'serve.end.*completed=6 .*rounds=0'
    stop upkeep
    logged upkeep 'serve.end.*completed=0 .*rounds=[1-9]'
    [ "$(count_logged upkeep 'worker\.')" -eq 0 ]
}

@test "upkeep needs no file" {
    sql "select millrace.enqueue('k', queue => '$q', delay => '200 milliseconds')"
    daemon upkeep serve --roles maintain
    wait_until 20 jobs_are "$q" available 1
    signal upkeep HUP
    wait_until 20 logged upkeep 'no file to read again'
    stop upkeep
}

@test "several share upkeep without a leader" {
    local name
    enqueue 30 "$q"
    sql "select count(*) from millrace.claim('$q', 'dies', 30, '300 milliseconds')" >/dev/null
    for name in a b c; do
        daemon $name serve --roles maintain
    done
    # rescued once, by whoever was first
    wait_until 30 jobs_are "$q" available 30
    stop b
    sql "select count(millrace.enqueue('k', queue => '$q', delay => '300 milliseconds')) from generate_series(1, 30)" >/dev/null
    wait_until 30 jobs_are "$q" available 60
    [ "$(sql "select count(distinct id), sum(attempt) from millrace.claim('$q', 'w', 100)")" = '60|90' ]
    for name in a c; do
        stop $name
        logged $name 'serve.end.*rounds=[1-9]'
        [ "$(count_logged $name 'maintain.failed')" -eq 0 ]
    done
}

@test "reload: who is unchanged goes on, a changed one finishes its jobs" {
    cat >conf <<END
worker same { queue = "${q}same" exec = "./answer.sh pids" concurrency = 1 }
worker slow { queue = "$q" run = "./wait.sh" concurrency = 1 }
worker gone { queue = "${q}gone" run = "true" }
END
    enqueue 1 "${q}same"
    enqueue 2 "$q"
    daemon serve serve -c conf
    wait_until 20 jobs_are "${q}same" completed 1
    wait_until 20 started 1
    cat >conf <<END
worker same { queue = "${q}same" exec = "./answer.sh pids" concurrency = 1 }
worker slow { queue = "$q" run = "./wait.sh" concurrency = 1 batch = 7 }
worker new { queue = "${q}new" run = "true" }
END
    enqueue 3 "${q}new"
    signal serve HUP
    wait_until 20 logged serve 'serve.reloaded'
    # the new "slow" claims while the old one still has its job
    wait_until 20 started 2
    wait_until 20 jobs_are "${q}new" completed 3
    wait_until 20 logged serve 'worker.ended.*worker=gone'
    enqueue 1 "${q}gone"
    enqueue 1 "${q}same"
    wait_until 20 jobs_are "${q}same" completed 2
    jobs_are "${q}gone" available 1
    touch go
    wait_until 20 jobs_are "$q" completed 2
    wait_until 20 logged serve 'worker.ended.*worker=slow completed=1 failed=0'
    stop serve
    # one child did all the jobs of the unchanged worker, which never reconnected
    [ "$(wc -l <pids)" -eq 1 ]
    [ "$(count_logged serve 'worker.connected.*worker=same')" -eq 1 ]
    [ "$(sql "select max(attempt) from millrace.jobs where queue like '$q%'")" -eq 1 ]
    logged serve 'serve.end.*completed=7 failed=0 requeued=0 released=0 lost=0'
}

@test "a broken file is refused at reload, and the old one stays" {
    echo "worker w { queue = \"$q\" run = \"true\" }" >conf
    daemon serve serve -c conf
    wait_until 20 logged serve serve.ready
    echo "worker w { queue = \"$q\" rum = \"true\" }" >conf
    signal serve HUP
    wait_until 20 logged serve 'serve.reload_refused: .*conf:1: unknown key "rum".*Did you mean run'
    echo "worker w { queue = \"$q\" run = \"./nowhere\" }" >conf
    signal serve HUP
    wait_until 20 logged serve 'serve.reload_refused: .*worker w: .*nowhere'
    enqueue 3 "$q"
    wait_until 20 jobs_are "$q" completed 3
    stop serve
}

@test "SIGTERM under load: running jobs finish, no attempt is lost" {
    cat >conf <<END
worker a { queue = "$q" run = "sleep 0.05" concurrency = 4 }
worker b { queue = "${q}b" exec = "./answer.sh pids" concurrency = 2 }
END
    enqueue 400 "$q"
    enqueue 4000 "${q}b"
    daemon serve serve -c conf
    wait_until 20 some_completed
    stop serve
    [ "$(sql "select count(*) from millrace.jobs where queue in ('$q', '${q}b') and status not in ('available', 'completed')")" -eq 0 ]
    [ "$(sql "select count(*) from millrace.jobs where queue in ('$q', '${q}b')")" -eq 4400 ]
    # nothing that waits has been tried, nothing done was tried twice
    [ "$(sql "select max(attempt) from millrace.claim('$q', 'w', 400)")" -eq 1 ]
    [ "$(sql "select max(attempt) from millrace.jobs where queue in ('$q', '${q}b')")" -eq 1 ]
    [ "$(count_logged serve worker.failed)" -eq 0 ]
}

some_completed()
{
    [ "$(sql "select count(*) from millrace.jobs where queue = '$q' and status = 'completed'")" -ge 20 ]
}

@test "what outlives the grace period goes back uncounted" {
    echo "worker w { queue = \"$q\" run = \"./wait.sh\" concurrency = 2 grace = \"300ms\" }" >conf
    enqueue 2 "$q"
    daemon serve serve -c conf
    wait_until 20 started 2
    stop serve
    jobs_are "$q" available 2
    [ "$(sql "select max(attempt) from millrace.claim('$q', 'w', 2)")" -eq 1 ]
    logged serve 'serve.end.*released=2'
}

@test "the second SIGTERM ends it at once" {
    echo "worker w { queue = \"$q\" run = \"./wait.sh\" }" >conf
    enqueue 1 "$q"
    daemon serve serve -c conf
    wait_until 20 started 1
    signal serve TERM
    wait_until 20 logged serve signal.stop
    signal serve 0
    signal serve TERM
    ended serve
    [ "$status" -eq 1 ]
    jobs_are "$q" running 1
}

# Writes what comes to the datagram socket "notify" to the file "notified".
listen_notify()
{
    perl -MIO::Socket::UNIX -e '$| = 1;
        my $s = IO::Socket::UNIX->new(Type => SOCK_DGRAM, Local => "notify") or die;
        while (defined $s->recv(my $text, 1000)) { print "$text\n" }' >notified 3>&- &
    listener=$!
    wait_until 10 [ -S notify ]
}

@test "systemd is told" {
    listen_notify
    echo "worker w { queue = \"$q\" run = \"true\" }" >conf
    NOTIFY_SOCKET=$PWD/notify daemon serve serve -c conf
    wait_until 20 grep -qx READY=1 notified
    signal serve HUP
    wait_until 20 logged serve serve.reloaded
    stop serve
    wait_until 20 grep -qx STOPPING=1 notified
    kill "$listener"
    [ "$(grep -v '^MONOTONIC_USEC=[0-9]*$' notified | tr '\n' ' ')" = 'READY=1 RELOADING=1 READY=1 STOPPING=1 ' ]
}

signs_of_life()
{
    [ "$(grep -cx WATCHDOG=1 notified)" -ge "$1" ]
}

@test "a sign of life for systemd's watchdog, from the loop and only when asked for" {
    listen_notify
    echo "worker w { queue = \"$q\" run = \"true\" }" >conf
    NOTIFY_SOCKET=$PWD/notify WATCHDOG_USEC=200000 daemon serve serve -c conf
    wait_until 20 grep -qx READY=1 notified
    wait_until 20 signs_of_life 5
    stop serve
    wait_until 20 grep -qx STOPPING=1 notified
    : >notified
    # of another process, of nobody, of nonsense
    NOTIFY_SOCKET=$PWD/notify WATCHDOG_USEC=200000 WATCHDOG_PID=1 daemon other serve -c conf
    wait_until 20 logged other serve.ready
    stop other
    NOTIFY_SOCKET=$PWD/notify WATCHDOG_USEC=-1 daemon odd serve -c conf
    wait_until 20 logged odd serve.ready
    stop odd
    kill "$listener"
    [ "$(grep -c WATCHDOG notified)" -eq 0 ]
}

@test "logs as JSON lines" {
    local line count=0
    cat >conf <<END
log = "json"
log_level = "debug"
worker w { queue = "$q" run = "false" }
queue "$q" { warn_depth = 3 }
END
    enqueue 2 "$q"
    daemon serve serve -c conf
    wait_until 20 logged serve worker.failed
    stop serve
    while IFS= read -r line; do
        psql -X -q -A -t -v ON_ERROR_STOP=1 -v line="$line" <<<"select (:'line'::jsonb) ?& array['time', 'level', 'event', 'message']" |
            grep -qx t
        count=$((count + 1))
    done <serve.log
    [ "$count" -ge 8 ]
    # the environment wins
    MILLRACE_LOG=text MILLRACE_LOG_LEVEL=error daemon quiet serve -c conf
    wait_until 20 connections 2
    stop quiet
    [ ! -s quiet.log ]
}

# At least so many sessions of the daemon.
connections()
{
    [ "$(sql "select count(*) from pg_stat_activity where application_name like 'millrace %' and datname = current_database()")" -ge "$1" ]
}

@test "a worker without a schema is logged and comes back" {
    empty_db
    echo "worker w { queue = \"$q\" run = \"true\" }" >conf
    daemon serve serve -c conf
    wait_until 20 logged serve 'worker.gave_up: cannot go on: .*millrace migrate'
    wait_until 20 logged serve 'maintain.failed'
    "$MR_BIN" migrate >/dev/null
    enqueue 3 "$q"
    wait_until 40 jobs_are "$q" completed 3
    wait_until 20 logged serve 'maintain.recovered'
    # once per change, not once per attempt; without a function while migrate is at it is a change
    [ -z "$(grep -oE 'maintain.failed.*' serve.log | sort | uniq -d)" ]
    stop serve
    drop_db
}

@test "the database is restarted under a daemon" {
    private_server restarted
    "$MR_BIN" migrate >/dev/null
    echo "worker w { queue = \"$q\" run = \"sleep 0.02\" concurrency = 4 }" >conf
    enqueue 300 "$q"
    daemon serve serve -c conf
    wait_until 20 some_completed
    "$MR_ROOT/tools/pgserver" stop "$MR_SERVER"
    wait_until 20 logged serve 'worker.unreachable: still trying: '
    "$MR_ROOT/tools/pgserver" start "$MR_SERVER"
    wait_until 60 jobs_are "$q" completed 300
    # unreachable is told once however often it was tried
    [ "$(count_logged serve 'worker.disconnected.*worker=w')" -eq 1 ]
    [ "$(count_logged serve 'worker.connected.*worker=w')" -eq 2 ]
    [ "$(count_logged serve 'link.connected.*part=maintain')" -eq 2 ]
    stop serve
    logged serve 'serve.end.*failed=0 .*reconnects=1 '
    remove_private_server
}
