# SPDX-License-Identifier: PostgreSQL
# shellcheck shell=bash
# shellcheck disable=SC2154 # run and story/shared.bash set what is not set here
#
# The same again with Redis delivery: a relay claims what is in hog, and workers take it from a stream. hogoverflow stays as it is. Redis forgets everything on the way,
# and a worker is killed.

part_redis()
{
    if ! command -v redis-server >/dev/null; then
        say 'Redis: skipped'
        printf '        redis-server is not installed\n        hint: run tools/deps test, or apt-get install redis-server\n'
        return
    fi
    start_cyclotron pg -o shared_buffers=512MB
    start_service "$invocations"
    redis-server --port 0 --unixsocket "$work/redis" --dir "$work" --save '' --appendonly yes --daemonize no --logfile "$work/redis.log" >/dev/null 2>&1 &
    pid[redis]=$!
    wait_for 30 redis_answers
    export CYCLOTRON_REDIS=unix://$work/redis
    start_daemon janitor janitor.conf maintain
    "$millrace" queue set hog transport=redis >/dev/null
    start_daemon relay relay.conf relay,http
    start_daemon worker1 fleet.conf work
    start_daemon worker2 fleet.conf work
    redis_load
    redis_count
    stop worker2 worker3 relay janitor service redis
}

redis()
{
    redis-cli -s "$work/redis" "$@" 2>/dev/null
}

redis_answers()
{
    [ "$(redis ping)" = PONG ]
}

redis_completed()
{
    [ "$(total completed)" -ge "$1" ]
}

# relayed WHAT: what became of so many entries, as the relay says
relayed()
{
    ask relay /metrics | sed -n "s/^millrace_relay_entries_total{.*what=\"$1\".*} //p"
}

redis_load()
{
    say "Redis: $invocations invocations; those of hog go through a stream, those of hogoverflow do not"
    start_producer 'load.numbered(n)' 0 $((invocations - 1))
    wait_for "$patience" redis_completed $((invocations / 20))
    redis flushall >/dev/null
    printf '        Redis has forgotten everything\n'
    wait_for "$patience" redis_completed $((invocations / 10))
    kill -KILL "${pid[worker1]}"
    wait "${pid[worker1]}" 2>/dev/null || true
    unset 'pid[worker1]'
    printf '        one of two workers is killed, and another one takes its place\n'
    start_daemon worker3 fleet.conf work
    wait "${pid[producer]}"
    unset 'pid[producer]'
    check "created, by one client in chunks of $chunk" "$(cat "$work/producer.out")" "created $invocations, in doubt 0 of which 0 were in"
}

redis_count()
{
    local through
    wait_for "$patience" ended "$invocations"
    through=$(sql "select load.total('completed dead', 'hog')")
    printf '        entries sent %s, sent again %s, lost with their worker %s; the service had %s requests, of which %s failed and %s were repeated\n' \
        "$(relayed sent)" "$(relayed resent)" "$(relayed lost)" "$(service requests)" "$(service failed)" "$(service repeated)"
    check "created = completed + dead: $invocations = $((invocations - dead)) + $dead" "$(total completed) $(total dead)" "$((invocations - dead)) $dead"
    check "every step had its effect, and none had it twice: $steps" "$(service effects)" "$steps"
    check "all $through that ended in hog went by way of the stream" "$(($(relayed finished) >= through))" 1
    check 'the stream is empty, and nothing is with a worker' "$(redis xlen 'mr:delivery:{hog}:jobs') $(redis xpending 'mr:delivery:{hog}:jobs' workers | head -1)" '0 0'
}
