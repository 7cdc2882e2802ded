# SPDX-License-Identifier: PostgreSQL
# shellcheck shell=bash
#
# Eight clients of which one is killed with SIGKILL again and again, after lib/server:
#
#   client N              the test's own: starts the client N in the background and puts its pid into clients[N]
#   killing SECONDS COMMAND...
#                         so long, and on until the command succeeds; how often it killed is in $kills
#   kill_all PID...       for teardown()

kill_all()
{
    local pid
    for pid in "$@"; do
        kill -KILL "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
}

# One at random every tenth of a second, which is started again at once. The command says that enough was seen.
killing()
{
    local i end=$((SECONDS + $1)) last=$((SECONDS + $1 + 60))
    shift
    kills=0
    for i in 0 1 2 3 4 5 6 7; do client "$i"; done
    until ((SECONDS >= end)) && "$@"; do
        ((SECONDS < last)) || { echo "a minute more was not enough: $*"; return 1; }
        sleep 0.1 # the time in which they work
        i=$((RANDOM % 8))
        ! kill -KILL "${clients[i]}" 2>/dev/null || kills=$((kills + 1))
        wait "${clients[i]}" 2>/dev/null || true
        client "$i"
    done
    kill_all "${clients[@]}"
    clients=()
}
