# SPDX-License-Identifier: PostgreSQL
# shellcheck shell=bash
#
# `millrace serve` and `millrace work` in the background of a bats test, after lib/server:
#
#   daemon NAME serve -c FILE ...   starts it; its log is $BATS_TEST_TMPDIR/NAME.log
#   wait_until 10 logged NAME PATTERN
#   signal NAME TERM                sends a signal
#   ended NAME                      waits for its end, the exit status is in $status
#   end_daemons                     for teardown(): ends what still runs

declare -gA daemon_pid

pid_of()
{
    printf '%s\n' "${daemon_pid[$1]}"
}

daemon()
{
    local name=$1
    shift
    # Here, not by the child: who waits for a line of it must not see the log of the one before.
    : >"$BATS_TEST_TMPDIR/$name.log"
    "$MR_BIN" "$@" >"$BATS_TEST_TMPDIR/$name.out" 2>"$BATS_TEST_TMPDIR/$name.log" 3>&- &
    daemon_pid[$name]=$!
}

# How often a line of the log has the pattern.
count_logged()
{
    grep -cE -- "$2" "$BATS_TEST_TMPDIR/$1.log" || true
}

logged()
{
    grep -qE -- "$2" "$BATS_TEST_TMPDIR/$1.log"
}

# The log so far, for a test that fails.
show_log()
{
    sed "s/^/$1: /" "$BATS_TEST_TMPDIR/$1.log" >&2
}

signal()
{
    kill "-$2" "${daemon_pid[$1]}"
}

gone()
{
    ! kill -0 "${daemon_pid[$1]}" 2>/dev/null
}

# Fails when it does not end within a minute.
# shellcheck disable=SC2034 # status is for the test, as after run
ended()
{
    status=0
    wait_until 60 gone "$1" || { show_log "$1"; return 1; }
    wait "${daemon_pid[$1]}" || status=$?
    unset "daemon_pid[$1]"
}

end_daemons()
{
    local name
    for name in "${!daemon_pid[@]}"; do
        kill -KILL "${daemon_pid[$name]}" 2>/dev/null || true
        wait "${daemon_pid[$name]}" 2>/dev/null || true
        [ -n "${BATS_TEST_COMPLETED:-}" ] || show_log "$name"
    done
}

# Makes $1 jobs in the queue $2 of the kind $3 (k), args {"n": 1} and so on.
enqueue()
{
    sql "select count(*) from millrace.enqueue_many('${3:-k}',
           (select array_agg(jsonb_build_object('n', n)) from generate_series(1, $1) n), '$2')" >/dev/null
}

# Whether the queue $1 has $3 jobs of the status $2.
jobs_are()
{
    [ "$(sql "select count(*) from millrace.jobs where queue = '$1' and status = '$2'")" -eq "$3" ]
}
