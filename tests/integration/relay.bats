#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# Jobs by way of Redis: a relay puts them into a stream, workers take them from there, and what becomes of them is what becomes of any job.

# shellcheck disable=SC2154  # redis_dir is set by redis_new
bats_require_minimum_version 1.5.0
load ../lib/server
load ../lib/daemon
load ../lib/redis

setup()
{
    cd "$BATS_TEST_TMPDIR" || return
    fresh_db
    sql "select millrace.set_queue('hog', '{\"transport\": \"redis\"}')" >/dev/null
    sql "create table ran (n int not null, attempt int not null, lease text)"
}

teardown()
{
    end_daemons
    redis_stop
    drop_db
}

address()
{
    printf '%s\n' "${address:-$(redis_address)}"
}

# $1: its name, then keys of its section.
start_relay()
{
    local name=$1
    shift
    printf 'maintain = "200ms"\nrelay %s { queue = "hog" redis = "%s" %s }\n' "$name" "$(address)" "$*" >"$name.conf"
    daemon "$name" serve -c "$name.conf" --roles relay,maintain
}

# $1: its name, $2: its handler, then other keys.
start_worker()
{
    local name=$1 handler=$2
    shift 2
    printf 'worker %s { queue = "hog" redis = "%s" %s %s }\n' "$name" "$(address)" "$handler" "$*" >"$name.conf"
    daemon "$name" serve -c "$name.conf" --roles work
}

# A handler that writes down what it runs, by way of a file.
write_handler()
{
    cat >handler.sh <<SCRIPT
#!/bin/sh
echo "\$MILLRACE_JOB_ID" >>"$BATS_TEST_TMPDIR/ran"
$1
SCRIPT
    chmod +x handler.sh
}

ran()
{
    sort ran | uniq | wc -l
}

key()
{
    printf 'mr:delivery:{hog}:%s\n' "$1"
}

idle()
{
    [ "$(redis xlen "$(key jobs)")" -eq 0 ] && jobs_are hog running 0
}

@test "jobs go through Redis to a worker of the daemon's, and end as completed" {
    redis_new
    write_handler 'exit 0'
    enqueue 50 hog
    start_relay fleet
    start_worker w 'run = "./handler.sh"' 'concurrency = 4'
    wait_until 60 jobs_are hog completed 50 || { show_log fleet; show_log w; return 1; }
    [ "$(ran)" -eq 50 ]
    [ "$(wc -l <ran)" -eq 50 ]
    wait_until 30 idle
    [ "$(redis xpending "$(key jobs)" workers | head -1)" = 0 ]
    signal w TERM
    ended w
    [ "$status" -eq 0 ]
    signal fleet TERM
    ended fleet
    [ "$status" -eq 0 ]
    logged fleet 'relay.ended.*sent=50.*finished=50'
    # nothing of it is left but the stream itself
    [ "$(redis keys '*' | sort)" = "$(key jobs)" ]
}
