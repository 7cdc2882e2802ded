# SPDX-License-Identifier: PostgreSQL
# shellcheck shell=bash
#
# Relays and workers of the queue hog, after lib/server, lib/daemon and lib/redis: setup, teardown, and what the tests of delivery ask for.

setup()
{
    cd "$BATS_TEST_TMPDIR" || return
    fresh_db
    sql "select millrace.set_queue('hog', '{\"transport\": \"redis\"}')" >/dev/null
    sql "create table ran (n int not null, attempt int not null, lease text)"
}

teardown()
{
    touch stop # those that nobody is the parent of any more
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

stream_has()
{
    [ "$(redis xlen "$(key jobs)")" -eq "$1" ]
}

dead_are()
{
    [ "$(sql "select count(*) from millrace.dead_letters where queue = 'hog'")" -eq "$1" ]
}

ran_are()
{
    [ -f ran ] && [ "$(wc -l <ran)" -ge "$1" ]
}

# All of $1 jobs ran, and at most $2 of them again: what was in flight when Redis lost it. Prints how many.
ran_again()
{
    local again
    again=$(($(wc -l <ran) - $1))
    show "$1 jobs, $(($1 - $(ran))) lost, $again ran again, of at most $2 in flight"
    [ "$(ran)" -eq "$1" ] && [ "$again" -le "$2" ]
}

depth_is()
{
    [ "$(sql "select millrace.depth('hog')")" -eq "$1" ]
}
