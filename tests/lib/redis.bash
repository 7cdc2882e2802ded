# SPDX-License-Identifier: PostgreSQL
# shellcheck shell=bash
#
# A Redis of the test's own, on a unix socket in $MR_SCRATCH, after lib/server:
#
#   redis_new [ARG...]      starts one without data
#   redis_new_tcp [ARG...]  the same, on a port of 127.0.0.1, too: redis_port
#   redis_start [ARG...]    starts it again, with its data of before
#   redis_address           prints its address
#   redis COMMAND...        redis-cli
#   redis_stop, redis_kill  ends it, gracefully or at once
#   redis_fill KEY FROM TO  adds entries to a stream

redis_new()
{
    redis_dir=$(mktemp -d "$MR_SCRATCH/redis.XXXXXX") || return
    redis_start "$@"
}

redis_new_tcp()
{
    for _ in 1 2 3 4 5; do
        redis_port=$((20000 + RANDOM % 12000))
        # one that cannot have its port ends at once
        redis_new --bind 127.0.0.1 --port "$redis_port" "$@" && return
        redis_stop
    done
    return 1
}

redis_address()
{
    printf 'unix://%s/socket\n' "$redis_dir"
}

redis_start()
{
    redis-server --port 0 --unixsocket "$redis_dir/socket" --dir "$redis_dir" --save '' --appendonly yes --appendfsync everysec \
        --daemonize no --logfile "$redis_dir/log" "$@" >/dev/null 2>&1 3>&- &
    redis_pid=$!
    wait_until 20 redis_answers_or_ended
    redis_answers
}

redis_answers_or_ended()
{
    redis_answers || ! kill -0 "$redis_pid"
}

redis()
{
    redis-cli -s "$redis_dir/socket" "$@"
}

# One that wants a password answers, too.
redis_answers()
{
    [[ $(redis ping 2>&1) =~ ^(PONG|NOAUTH) ]]
}

redis_stop()
{
    [ -n "${redis_pid:-}" ] || return 0
    kill -TERM "$redis_pid" 2>/dev/null || true
    wait "$redis_pid" 2>/dev/null || true
    redis_pid=
}

redis_kill()
{
    kill -KILL "$redis_pid"
    wait "$redis_pid" 2>/dev/null || true
    redis_pid=
}

# Adds entries $2 to $3 (n = ...) to the stream $1, in one pipe.
redis_fill()
{
    awk -v key="$1" -v from="$2" -v to="$3" 'BEGIN { for (n = from; n <= to; n++) printf "XADD %s * n %d kind k\r\n", key, n }' |
        redis --pipe >/dev/null
}
