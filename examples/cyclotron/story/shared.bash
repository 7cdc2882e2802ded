# SPDX-License-Identifier: PostgreSQL
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # for those who read this in; token and chunk are theirs
#
# What the parts of the story, and the incident, have in common: a directory of their own that is removed at the end, servers, daemons, the service, and checks. Each line
# that begins with "ok" was checked; the first that is not ends it with status 1. Read in by scripts that stand in this directory's parent, with `set -euo pipefail`.

root=$(realpath ../..)
build=${MR_BUILD:-build}
[[ $build == /* ]] || build=$root/$build
millrace=$build/millrace

# begin: the directory, and what happens at the end. Everything that is started is in `pid`, or a child of this shell.
begin()
{
    work=$(realpath "$(mktemp -d)")
    declare -gA pid=()
    # Called as root the servers run as another user, who has to get there.
    chmod 711 "$work"
    trap clean_up EXIT
    trap 'exit 1' INT TERM
}

clean_up()
{
    local status=$?
    if [ "$status" -ne 0 ]; then
        tail -n 5 "$work"/*.log >&2 2>/dev/null || true
    fi
    end_all
    rm -rf "$work"
    exit "$status"
}

# Between two parts, too.
end_all()
{
    local server
    rm -f "$work/alive"
    # shellcheck disable=SC2046 # all that was started and not waited for
    kill -KILL $(jobs -p) "${pid[@]}" 2>/dev/null || true
    wait 2>/dev/null || true
    pid=()
    for server in "$work"/pg*; do
        "$root/tools/pgserver" remove "$server" >/dev/null 2>&1 || true
    done
    "$root/tools/s3server" remove "$work/s3" >/dev/null 2>&1 || true
    rm -rf "${work:?}"/*
}

say()
{
    printf '\n%s\n' "$1"
}

# check WHAT ACTUAL EXPECTED
check()
{
    if [ "$2" != "$3" ]; then
        printf 'FAILED  %s: %s, expected %s\n' "$1" "$2" "$3"
        exit 1
    fi
    printf 'ok      %s\n' "$1"
}

# at_most WHAT ACTUAL LIMIT
at_most()
{
    if [ "$2" -gt "$3" ]; then
        printf 'FAILED  %s: %s, the limit is %s\n' "$1" "$2" "$3"
        exit 1
    fi
    printf 'ok      %s: %s of %s\n' "$1" "$2" "$3"
}

sql()
{
    psql -X -q -A -t -v ON_ERROR_STOP=1 -c "$1"
}

# wait_for SECONDS COMMAND...
wait_for()
{
    local deadline=$((SECONDS + $1))
    shift
    until "$@" 2>"$work/waiting.log"; do
        if [ $SECONDS -ge $deadline ]; then
            printf 'FAILED  gave up waiting for: %s\n' "$*"
            exit 1
        fi
        sleep 0.1
    done
}

# Whether a query says t.
true_that()
{
    [ "$(sql "$1")" = t ]
}

# ---- servers -----------------------------------------------------------------------------

# start_server NAME [-o SETTING]...: MILLRACE_DSN and psql lead there. Only processes are killed here, never the machine.
start_server()
{
    local name=$1
    shift
    "$root/tools/pgserver" start "$work/$name" -o fsync=off -o full_page_writes=off -o max_wal_size=4GB "$@" >/dev/null
    eval "$("$root/tools/pgserver" env "$work/$name")"
    # Debian's psql is a wrapper that costs more than what most calls here do.
    [[ $PATH == "$PGBIN":* ]] || PATH=$PGBIN:$PATH
    export PGDATABASE=postgres PGOPTIONS='-c client_min_messages=warning'
    export MILLRACE_DSN="host=$PGHOST port=$PGPORT user=$PGUSER dbname=postgres"
    "$millrace" migrate >/dev/null
}

start_cyclotron()
{
    start_server "$@"
    psql -X -q -v ON_ERROR_STOP=1 -f cyclotron.sql -f load.sql
}

# start_service INVOCATIONS: with numbers below this
start_service()
{
    touch "$work/service.log"
    "$build/examples/cyclotron/service" "$1" >>"$work/service.log" 2>&1 &
    pid[service]=$!
    wait_for 30 grep -q ' listens on ' "$work/service.log"
    CYCLOTRON_SERVICE=http://127.0.0.1:$(sed -n 's/.* listens on //p' "$work/service.log")
    export CYCLOTRON_SERVICE
}

# start_daemon NAME FILE ROLES
start_daemon()
{
    : >"$work/$1.log"
    "$millrace" serve -c "$2" --roles "$3" >>"$work/$1.log" 2>&1 &
    pid[$1]=$!
    wait_for 60 grep -q serve.ready "$work/$1.log"
}

# stop NAME...
stop()
{
    local name
    for name in "$@"; do kill "${pid[$name]}"; done
    for name in "$@"; do
        wait "${pid[$name]}" || true
        unset "pid[$name]"
    done
}

# What the service has counted.
service()
{
    curl -sf --noproxy '*' "$CYCLOTRON_SERVICE/stats" | jq -r ".$1"
}

# ask NAME PATH: what a daemon answers, and the status behind it
ask()
{
    local port
    port=$(sed -n 's/.*http.listening.*port=\([0-9]*\).*/\1/p' "$work/$1.log" | tail -1)
    curl -s --noproxy '*' -H "Authorization: Bearer $token" -w ' %{http_code}\n' "http://127.0.0.1:$port$2"
}

# removed DAEMON WHAT: how many of them upkeep has removed, as its metrics say
removed()
{
    ask "$1" /metrics | sed -n "s/^millrace_removed_total{what=\"$2\"} //p"
}

# ---- invocations -------------------------------------------------------------------------

# total OUTCOME...: how many ended so, in both queues
total()
{
    sql "select load.total('$*')"
}

# nothing_left [PAUSED]: but for so many
nothing_left()
{
    true_that "select sum(available + running + scheduled + retrying) = ${1:-0} from millrace.stats() where queue in ('hog', 'hogoverflow')"
}

# ended NUMBER [PAUSED]: so many have, and nothing is left but the paused ones. Totals are counted by upkeep, within a second.
ended()
{
    nothing_left "${2:-0}" && [ "$(total completed dead cancelled)" = "$1" ]
}

# lines EXPRESSION FIRST LAST: an invocation a line, for produce. A few thousand at a time, so that nobody has them all in memory and no transaction is long.
lines()
{
    local first
    for ((first = $2; first <= $3; first += 2000)); do
        sql "select $1 from generate_series($first, least($first + 1999, $3)) n" || return
    done
}

# produce EXPRESSION FIRST LAST: creates them by way of the library, and says how many
produce()
{
    "$build/examples/cyclotron/produce" "$chunk" < <(lines "$@")
}

# The same in the background: what it says is in producer.out.
start_producer()
{
    "$build/examples/cyclotron/produce" "$chunk" < <(lines "$@") >"$work/producer.out" 2>"$work/producer.log" &
    pid[producer]=$!
}
