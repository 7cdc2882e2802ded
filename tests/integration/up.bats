#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# `millrace up`: a server of its own that is made, watched, stopped; whatever happens to it.

bats_require_minimum_version 1.5.0
load ../lib/server

setup_file()
{
    export HOUSE=$MR_SCRATCH/house
    # The shared server's variables: `up` must not take any notice of them.
    export PGHOSTADDR=192.0.2.1 PGOPTIONS=-cnonsense=1
}

teardown_file()
{
    rm -rf "$HOUSE"
}

setup()
{
    unset up_pid
    # As root the server's user has no way into the directories of bats.
    place=$MR_SCRATCH/$BATS_TEST_NUMBER
    mkdir "$place"
    conf=$BATS_TEST_TMPDIR/millrace.conf
    cat >"$conf" <<'CONF'
worker pages { queue = "pages"  exec = "sh -c 'while read -r job; do echo \"{}\"; done'"  concurrency = 1 }
worker naps  { queue = "naps"   run = "sleep 600"  grace = "300s" }
CONF
}

teardown()
{
    [ -z "${up_pid:-}" ] || kill -TERM "$up_pid" 2>/dev/null || true
    [ -z "${up_pid:-}" ] || wait_until 60 is_gone "$up_pid"
    [ -z "${bystander:-}" ] || kill "$bystander"
}

# Starts it in the background: up DIR [OPTION...]. Whoever waits for this test's output must not
# have to wait for it.
up()
{
    local dir=$1
    shift
    "$MR_BIN" up --data "$dir" "$@" >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" 3>&- &
    up_pid=$!
}

# ... and waits until it is ready.
up_ready()
{
    up "$@"
    wait_until 90 test -s "$1/dsn" || {
        cat "$BATS_TEST_TMPDIR/err" "$1/log" >&2
        return 1
    }
}

# Waits for the end of it; its exit status is in $status.
down()
{
    status=0
    wait "$up_pid" || status=$?
    [ "$status" -eq 0 ] || cat "$BATS_TEST_TMPDIR/err" # shown where it was to be 0
    unset up_pid
}

stop_up()
{
    kill -TERM "$up_pid"
    down
}

at()
{
    env -u PGHOSTADDR -u PGOPTIONS -u PGPASSWORD psql -X -q -A -t -v ON_ERROR_STOP=1 "$(cat "$1/dsn")" -c "$2"
}

millrace_at()
{
    local dir=$1
    shift
    env -u PGHOSTADDR -u PGOPTIONS -u PGPASSWORD MILLRACE_DSN="$(cat "$dir/dsn")" "$MR_BIN" "$@"
}

# is_done DIR ID
is_done()
{
    [ "$(at "$1" "select status from millrace.jobs where id = $2")" = completed ]
}

postmaster_of()
{
    head -n 1 "$1/data/postmaster.pid"
}

# No process has the directory in its command line, and nobody listens on its port.
nothing_left()
{
    local port
    port=$(cat "$1/port")
    ! grep -lsF "$1" /proc/[0-9]*/cmdline || return 1
    ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || return 1
    [ ! -e "$1/dsn" ] && [ ! -s "$1/pid" ] && [ -z "$(ls -A "$1/socket" 2>/dev/null)" ]
}

@test "help and wrong usage" {
    run "$MR_BIN" up --help
    [ "$status" -eq 0 ]
    has '--data DIR'
    run "$MR_BIN" up now
    [ "$status" -eq 2 ]
    run "$MR_BIN" up --port 80
    [ "$status" -eq 2 ]
    has '1024'
    run "$MR_BIN" up --data "$place/x" --roles wrok
    [ "$status" -eq 2 ]
    [ ! -e "$place/x" ]
}

@test "a mistake in the configuration is told before a server is made" {
    echo 'worker w { queue = "q" exce = "cat" }' >"$conf"
    run "$MR_BIN" up --data "$place/x" -c "$conf"
    [ "$status" -eq 1 ]
    has "$conf:1"
    [ ! -e "$place/x" ]
}

@test "serves HTTP with a token of its own, on another port when the usual one is taken" {
    # somebody has the usual port: this test, or another program, which may be about to give it up
    python3 -c 'import socket, sys, time
for _ in range(100):
    s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try: s.bind(("127.0.0.1", 7070)); s.listen(); break
    except OSError: time.sleep(0.1)
open(sys.argv[1], "w").close()
time.sleep(300)' "$place/taken" 3>&- &
    bystander=$!
    wait_until 60 test -e "$place/taken"
    up_ready "$place/h"
    url=$(cat "$place/h/url")
    token=${url#*#token=}
    [[ $url =~ ^http://127.0.0.1:[0-9]+/#token=mr_ ]]
    [[ $url != *:7070/* ]]
    [ "$(stat -c %a "$place/h/token" "$place/h/url" | tr '\n' ' ')" = '600 600 ' ]
    wait_until 20 curl -sf "${url%%#*}readyz"
    run -0 curl -s -X POST -H "Authorization: Bearer $token" -H 'Content-Type: application/json' -d '{"kind": "k"}' "${url%%#*}api/v1/jobs"
    has '"ids":['
    run -0 curl -s "${url%%#*}"
    has '<title>Millrace'
    kill -TERM "$up_pid"
    down
    # the token stays the same
    up_ready "$place/h"
    [ "$(cat "$place/h/token")" = "$token" ]
    # without HTTP there is no address
    kill -TERM "$up_pid"
    down
    up_ready "$place/h" --roles maintain
    [ ! -e "$place/h/url" ]
}

@test "makes a server, works, and leaves nothing behind" {
    up_ready "$HOUSE" -c "$conf"
    [ "$(cat "$BATS_TEST_TMPDIR/out")" = "export MILLRACE_URL='$(cat "$HOUSE/url")'
export MILLRACE_DSN='$(cat "$HOUSE/dsn")'" ]
    eval "$(cat "$BATS_TEST_TMPDIR/out")"
    id=$(millrace_at "$HOUSE" enqueue page '{"n": 1}' --queue pages)
    wait_until 30 is_done "$HOUSE" "$id"

    [ "$(at "$HOUSE" 'show server_encoding')" = UTF8 ]
    [ "$(at "$HOUSE" 'show lc_collate')" = C ]
    [ "$(at "$HOUSE" 'show data_checksums')" = on ]
    [ "$(at "$HOUSE" 'show synchronous_commit')" = on ]
    [ "$(at "$HOUSE" 'show listen_addresses')" = 127.0.0.1 ]
    [ "$(at "$HOUSE" "select count(*) from pg_hba_file_rules where auth_method not in ('peer', 'scram-sha-256')")" = 0 ]
    [ "$(stat -c %a "$HOUSE/dsn" "$HOUSE/pgpass" "$HOUSE/socket" "$HOUSE/data" | tr '\n' ' ')" = '600 600 700 700 ' ]
    # over loopback only with the password
    port=$(cat "$HOUSE/port")
    run env -u PGHOSTADDR -u PGOPTIONS -u PGPASSWORD psql -X -w "postgresql://millrace@127.0.0.1:$port/millrace" -c 'select 1'
    [ "$status" -ne 0 ]
    run env -u PGHOSTADDR -u PGOPTIONS -u PGPASSWORD PGPASSFILE="$HOUSE/pgpass" \
        psql -X -w "postgresql://millrace@127.0.0.1:$port/millrace" -c 'select 1'
    [ "$status" -eq 0 ]

    run "$MR_BIN" up --data "$HOUSE"
    [ "$status" -eq 1 ]
    has "pid $up_pid"

    stop_up
    [ "$status" -eq 0 ]
    nothing_left "$HOUSE"
}

@test "a server that dies is started again, at the same address" {
    up_ready "$HOUSE" -c "$conf"
    dsn=$(cat "$HOUSE/dsn")
    id=$(millrace_at "$HOUSE" enqueue page --queue pages --delay 4s)
    kill -KILL "$(postmaster_of "$HOUSE")"
    wait_until 60 grep -q 'runs again' "$BATS_TEST_TMPDIR/err"
    [ "$(cat "$HOUSE/dsn")" = "$dsn" ]
    wait_until 60 is_done "$HOUSE" "$id"
    stop_up
    [ "$status" -eq 0 ]
    nothing_left "$HOUSE"
}

@test "a server that cannot be started again is given up" {
    up_ready "$HOUSE" -c "$conf"
    cp "$HOUSE/local.conf" "$BATS_TEST_TMPDIR/local.conf"
    echo "shared_buffers = 'many'" >>"$HOUSE/local.conf"
    kill -KILL "$(postmaster_of "$HOUSE")"
    down
    cp "$BATS_TEST_TMPDIR/local.conf" "$HOUSE/local.conf"
    [ "$status" -eq 1 ]
    run cat "$BATS_TEST_TMPDIR/err"
    has 'keeps dying'
    has 'local.conf'
    nothing_left "$HOUSE"
}

@test "killed without mercy, nothing of it survives; the next one finds its jobs" {
    up_ready "$HOUSE"
    id=$(millrace_at "$HOUSE" enqueue page --queue pages)
    server=$(postmaster_of "$HOUSE")
    kill -KILL "$up_pid"
    down
    wait_until 60 is_gone "$server"
    up_ready "$HOUSE" -c "$conf"
    wait_until 30 is_done "$HOUSE" "$id"
    stop_up
    [ "$status" -eq 0 ]
}

@test "a server that an earlier run has left is stopped" {
    up_ready "$HOUSE"
    server=$(postmaster_of "$HOUSE")
    # It cannot follow its parent while it stands still.
    kill -STOP "$server"
    kill -KILL "$up_pid"
    down
    up "$HOUSE"
    wait_until 30 grep -q "pid $server" "$BATS_TEST_TMPDIR/err"
    kill -CONT "$server"
    wait_until 60 test -s "$HOUSE/dsn"
    wait_until 60 grep -q 'server.ready' "$BATS_TEST_TMPDIR/err"
    stop_up
    [ "$status" -eq 0 ]
    nothing_left "$HOUSE"
}

@test "somebody else's process that has an old pid is left alone" {
    sleep 600 3>&- &
    bystander=$!
    printf '%s\n1\n' "$bystander" >"$HOUSE/pid"
    printf '%s\n%s\n' "$bystander" "$HOUSE/data" >"$HOUSE/data/postmaster.pid"
    up_ready "$HOUSE"
    kill -0 "$bystander"
    stop_up
    [ "$status" -eq 0 ]
    kill -0 "$bystander"
}

@test "the second signal does not wait for jobs, but for the server" {
    up_ready "$HOUSE" -c "$conf"
    id=$(millrace_at "$HOUSE" enqueue nap --queue naps)
    wait_until 30 eval "at '$HOUSE' 'select status from millrace.jobs where id = $id' | grep -qx running"
    kill -TERM "$up_pid"
    wait_until 30 grep -q 'no more jobs are claimed' "$BATS_TEST_TMPDIR/err"
    kill -0 "$up_pid"
    kill -TERM "$up_pid"
    down
    [ "$status" -eq 1 ]
    nothing_left "$HOUSE"
    grep -q 'database system is shut down' <(tail -n 1 "$HOUSE/log")
}

@test "a port that is in use is refused when it was asked for, else avoided" {
    up_ready "$HOUSE"
    port=$(cat "$HOUSE/port")
    run "$MR_BIN" up --data "$place/other" --port "$port"
    [ "$status" -eq 1 ]
    has "port $port is in use"
    stop_up
}

@test "data of another version, and of none" {
    cp "$HOUSE/data/PG_VERSION" "$BATS_TEST_TMPDIR/version"
    echo 11 >"$HOUSE/data/PG_VERSION"
    run "$MR_BIN" up --data "$HOUSE"
    cp "$BATS_TEST_TMPDIR/version" "$HOUSE/data/PG_VERSION"
    [ "$status" -eq 1 ]
    has 'PostgreSQL 11 not found'
    has 'postgresql-11'
    mkdir -p "$place/odd/data"
    [ "$(id -u)" -ne 0 ] || chown nobody "$place/odd/data"
    run "$MR_BIN" up --data "$place/odd"
    [ "$status" -ne 0 ]
    has 'no PostgreSQL cluster'
}

@test "programs that are missing or too old" {
    run env MILLRACE_PGBIN="$BATS_TEST_TMPDIR" "$MR_BIN" up --data "$place/x"
    [ "$status" -eq 1 ]
    has 'holds no PostgreSQL server'
    printf '#!/bin/sh\necho "postgres (PostgreSQL) 12.1"\n' >"$BATS_TEST_TMPDIR/postgres"
    cp "$BATS_TEST_TMPDIR/postgres" "$BATS_TEST_TMPDIR/initdb"
    chmod +x "$BATS_TEST_TMPDIR/postgres" "$BATS_TEST_TMPDIR/initdb"
    run env MILLRACE_PGBIN="$BATS_TEST_TMPDIR" "$MR_BIN" up --data "$place/x"
    [ "$status" -eq 1 ]
    has 'holds PostgreSQL 12'
    has '13 or later'
}

@test "directories that will not do" {
    touch "$place/file"
    run "$MR_BIN" up --data "$place/file"
    [ "$status" -ne 0 ]
    has 'Not a directory'
    mkdir "$place/full"
    touch "$place/full/mine"
    run "$MR_BIN" up --data "$place/full"
    [ "$status" -ne 0 ]
    has '"mine"'
    run "$MR_BIN" up --data "$BATS_TEST_TMPDIR/$(printf 'x%.0s' {1..900})"
    [ "$status" -ne 0 ]
    has 'shorter name'
    run "$MR_BIN" up --data $'new\nline'
    [ "$status" -ne 0 ]
    has 'control character'
}

# An ordinary user's: as root somebody else's, who has no home and a directory of a long name
# with odd characters in it.
@test "an ordinary user without a home, in a place too deep for a socket" {
    as_user=()
    deep="$place/it's a \"long\" way, to $(printf 'x%.0s' {1..90})"
    mkdir "$deep"
    if [ "$(id -u)" -eq 0 ]; then
        as_user=(setpriv --reuid=nobody --regid="$(id -g nobody)" --clear-groups)
        chown nobody: "$deep"
    fi
    mkdir "$place/bin"
    cp "$MR_BIN" "$place/bin/millrace"
    chmod 755 "$place/bin" "$place/bin/millrace"
    cd "$deep"
    env -u HOME -u XDG_DATA_HOME "${as_user[@]}" "$place/bin/millrace" up \
        >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" 3>&- &
    up_pid=$!
    wait_until 90 test -s .millrace/dsn || { cat "$BATS_TEST_TMPDIR/err" >&2; return 1; }
    socket=$(cat .millrace/socket-dir)
    [[ $socket = /tmp/millrace.* ]]
    [ "$(stat -c %a "$socket")" = 700 ]
    [ "$(env -u PGHOSTADDR -u PGOPTIONS -u PGPASSWORD "${as_user[@]}" psql -X -A -t "$(cat .millrace/dsn)" -c 'select 1')" = 1 ]
    stop_up
    [ "$status" -eq 0 ]
    [ ! -e "$socket" ]
    # somebody else's
    if [ "$(id -u)" -eq 0 ]; then
        run "$MR_BIN" up --data "$deep/.millrace"
        [ "$status" -eq 1 ]
        has 'belongs to another user'
        mkdir -m 755 "$place/roots"
        run "${as_user[@]}" "$place/bin/millrace" up --data "$place/roots/new"
        [ "$status" -eq 1 ]
        has 'Permission denied'
        has 'hint:'
    fi
    rm -rf "$deep"
}

@test "root's server needs a directory that others can reach" {
    [ "$(id -u)" -eq 0 ] || skip 'this is about root: run it as root'
    mkdir -m 700 "$place/closed"
    run "$MR_BIN" up --data "$place/closed/x"
    [ "$status" -eq 1 ]
    has 'cannot reach it'
    has '/var/lib/millrace'
}

@test "a disk that is full" {
    [ "$(id -u)" -eq 0 ] || skip 'this is about root: run it as root'
    mkdir "$place/small"
    mount -t tmpfs -o size=20m,mode=755 none "$place/small" || skip 'no disk can be mounted here: run it in a container with CAP_SYS_ADMIN'
    run "$MR_BIN" up --data "$place/small/x"
    left=$(ls -A "$place/small/x")
    umount "$place/small"
    [ "$status" -eq 1 ]
    has 'No space left on device'
    has 'Free space'
    [[ $left != *data* ]]
}
