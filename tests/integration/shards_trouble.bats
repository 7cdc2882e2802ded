#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# Shards in trouble, each on a server of its own: down at the start, killed in the middle, read-only, slow; and the daemon beside it.

# shellcheck disable=SC2030,SC2031,SC2154 # bats runs a test in a subshell; output, status, servers and addresses are set elsewhere
bats_require_minimum_version 1.5.0
load ../lib/server
load ../lib/shards

setup_file() { three_shards; }
teardown_file() { three_shards_end; }

setup()
{
    client=$MR_BUILD/tests/integration/shards/shard_client
    three_shards_again
    queue=q$BATS_TEST_NUMBER
    started=()
    cd "$BATS_TEST_TMPDIR" || return
    writing on
}

teardown()
{
    local pid
    for pid in "${started[@]}"; do
        kill -KILL "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
}

# Starts a client in the background; its output goes to a file of its verb's name.
begin()
{
    "$client" "$@" >"$1.out" 2>&1 3>&- &
    started+=($!)
}

# Whether a line is in a file at least so often.
has_lines()
{
    [ "$(grep -c "$2" "$1")" -ge "$3" ]
}

# Whether nothing of the queue waits or runs on any shard.
is_empty()
{
    [ "$(sum_on "select coalesce(sum(available + running + scheduled + retrying), 0) from millrace.stats('$queue')")" -eq 0 ]
}

# The tenant whose jobs go to a shard.
tenant_of()
{
    local i id
    for i in {1..50}; do
        id=$("$client" one spare tenant="t$i")
        [ $((id >> 48)) -ne "$1" ] || { echo "t$i"; return; }
    done
    return 1
}

@test "one that is down at the start is passed over, and used when it comes" {
    mine=$("$client" one "$queue" ref=mine)
    home=$((mine >> 48))
    tenant=$(tenant_of "$home")
    server stop "$home" >/dev/null
    run -0 "$client" many "$queue" 20 1
    has_not "shard $home:"
    run -0 "$client" jobs "$queue" 100 50
    has_not "shard $home:"
    # calls that need it say so
    SHARD_TIMEOUT_MS=1000 run "$client" job "$mine"
    has "failed -4: shard $home cannot be reached"
    SHARD_TIMEOUT_MS=1000 run "$client" depth "$queue"
    has 'failed -4: address'
    SHARD_TIMEOUT_MS=1000 run "$client" one "$queue" tenant="$tenant" unique=u
    has "failed -4: the job's key belongs to shard $home"
    run -3 "$MR_BIN" shard list
    has unreachable
    run -3 "$MR_BIN" status
    has 'cannot connect to the database'
    run -3 "$MR_BIN" shard add
    has "shard $home of the set is not among the addresses, or down"
    run -0 "$client" consume "$queue" 300
    [ "$(grep -c '^done' <<<"$output")" -eq 120 ]
    # it comes while a producer runs
    begin produce "$queue" 100000 stop
    wait_until 60 has_lines produce.out '^in' 50
    run ! grep -q "^in .* $home\$" produce.out
    server start "$home" >/dev/null
    wait_until 60 has_lines produce.out "^in .* $home\$" 5
    touch stop
    wait_until 60 is_gone "${started[0]}"
    run ! grep -q '^refused\|^unclear' produce.out
    run -0 "$client" consume "$queue" 500
    [ "$("$client" depth "$queue")" -eq 0 ]
}

@test "one that is killed in the middle: nothing is lost, and what may have happened is said" {
    begin produce "$queue" 100000 stop
    begin consume "$queue" 60000
    for victim in 1 2; do
        wait_until 60 has_lines consume.out '^done' 100
        before=$(grep -c '^in' produce.out)
        server crash "$victim" >/dev/null
        # the others go on
        wait_until 60 has_lines produce.out '^in' $((before + 200))
        server restart "$victim" >/dev/null
        wait_until 60 has_lines produce.out "^in .* $victim\$" $(($(grep -c "^in .* $victim\$" produce.out) + 20))
    done
    touch stop
    wait_until 60 is_gone "${started[0]}"
    grep '^in' produce.out | cut -d' ' -f2 | sort -u >in
    grep '^unclear' produce.out | cut -d' ' -f2 | sort -u >unclear
    run ! grep '^refused' produce.out
    all_in()
    {
        grep '^done' consume.out | cut -d' ' -f2 | sort -u >finished
        [ -z "$(comm -23 in finished)" ] && is_empty
    }
    wait_until 60 all_in
    # nothing that was not enqueued, or may have been
    [ -z "$(comm -13 <(sort -u in unclear) finished)" ]
    show "$(wc -l <in) jobs enqueued, $(wc -l <unclear) unclear, $(wc -l <finished) done, $(grep -c '^done' consume.out) deliveries"
}

# Makes shard 1 read-only, or not.
writing()
{
    local read_only=on
    [ "$1" = off ] || read_only=off
    PGOPTIONS='-c default_transaction_read_only=off' psql -X -q -d "${addresses[1]}" -c "alter system set default_transaction_read_only = $read_only" -c 'select pg_reload_conf()' >/dev/null
    wait_until 30 reads_only "$read_only"
}

reads_only()
{
    [ "$(on 1 'show transaction_read_only')" = "$1" ]
}

@test "one that is read-only is passed over for new jobs and claims, and keys are refused" {
    tenant=$(tenant_of 1)
    "$client" many "$queue" 30 1
    writing off
    id=$("$client" one "$queue" tenant="$tenant")
    [ $((id >> 48)) -ne 1 ]
    run "$client" one "$queue" tenant="$tenant" unique=u
    has "failed -10: the job's key belongs to shard 1: shard 1 is read-only"
    run -0 "$client" consume "$queue" 500
    [ "$(grep -c '^done' <<<"$output")" -eq 21 ]
    run -0 "$MR_BIN" shard list
    has 'no '
    # an open connection learns of it, too: on the way there, and back
    begin produce "$queue" 100000 stop
    wait_until 60 has_lines produce.out '^in' 20
    writing on
    wait_until 60 has_lines produce.out '^in .* 1$' 5
    writing off
    before=$(wc -l <produce.out)
    more() { [ "$(wc -l <produce.out)" -gt $((before + 100)) ]; }
    wait_until 60 more
    tail -n +$((before + 20)) produce.out >later
    run ! grep '^in .* 1$' later
    run ! grep '^refused\|^unclear' produce.out
    touch stop
    writing on
}

@test "one that does not answer costs its time limit once, then it rests" {
    export SHARD_TIMEOUT_MS=1000
    tenant=$(tenant_of 1)
    "$client" many "$queue" 30 1
    psql -X -q -d "${addresses[1]}" -c 'begin' -c 'lock table millrace.queue in access exclusive mode' -c 'select pg_sleep(3600)' >/dev/null 2>&1 3>&- &
    started+=($!)
    locked() { [ "$(on 1 "select count(*) from pg_locks where relation = 'millrace.queue'::regclass and mode = 'AccessExclusiveLock' and granted")" -gt 0 ]; }
    wait_until 30 locked
    run "$client" one "$queue" tenant="$tenant"
    has 'failed -22: shard 1: no answer from the database within 1000 ms'
    begin produce "$queue" 300
    wait_until 120 is_gone "${started[1]}"
    # each call that went there is unclear; the pauses grow, so they are few
    [ "$(grep -c '^unclear' produce.out)" -lt 20 ]
    [ "$(grep -c '^unclear' produce.out)" -gt 0 ]
    run ! grep '^refused' produce.out
    [ "$(grep -c '^in' produce.out)" -gt 280 ]
    begin consume "$queue" 5000
    wait_until 120 has_lines consume.out '^done' 300
    kill "${started[0]}"
    on 1 "select pg_terminate_backend(pid) from pg_stat_activity where query = 'select pg_sleep(3600)'" >/dev/null
    wait_until 120 is_empty
}

# Writes a configuration of a worker on all shards, and starts the daemon.
start_daemon()
{
    {
        printf 'dsn = {"%s", "%s", "%s"}\n' "${addresses[@]}"
        printf 'worker w { queue = "%s" run = "touch %s/ran_{id}" concurrency = 4 }\n' "$queue" "$PWD"
        printf 'schedule often { cron = "0 0 1 1 *" kind = "k" queue = "%s" }\n' "$queue"
        printf 'queue %s { max_attempts = 9 }\n' "$queue"
    } >serve.conf
    "$MR_BIN" serve -c serve.conf >serve.log 2>&1 3>&- &
    started+=($!)
}

ran()
{
    [ "$(find . -name 'ran_*' | wc -l)" -eq "$1" ]
}

@test "the daemon: workers and upkeep on all shards, schedules on the first, one down at the start" {
    server stop 2 >/dev/null
    "$client" many "$queue" 20 1
    start_daemon
    wait_until 60 ran 20
    server start 2 >/dev/null
    for i in 0 1 2; do on "$i" "select millrace.enqueue('k', queue => '$queue', delay => '1 second') from generate_series(1, 10)" >/dev/null; done
    wait_until 60 ran 50
    settings_are_in()
    {
        [ "$(sum_on "select (settings ->> 'max_attempts')::int from millrace.queues where queue = '$queue'")" -eq 27 ] &&
            [ "$(on 0 "select count(*) from millrace.schedules where name = 'often'")" -eq 1 ]
    }
    wait_until 60 settings_are_in
    [ "$(on 1 'select count(*) from millrace.schedules')" -eq 0 ]
    [ "$(on 2 'select count(*) from millrace.schedules')" -eq 0 ]
    server crash 1 >/dev/null
    for i in 0 2; do on "$i" "select millrace.enqueue('k', queue => '$queue') from generate_series(1, 10)" >/dev/null; done
    wait_until 60 ran 70
    server restart 1 >/dev/null
    on 1 "select millrace.enqueue('k', queue => '$queue') from generate_series(1, 10)" >/dev/null
    wait_until 60 ran 80
    kill -TERM "${started[0]}"
    wait_until 60 is_gone "${started[0]}"
    grep -q 'completed=' serve.log
}

@test "a bridge or a relay works on one of several shards, and is told which" {
    cd "$BATS_TEST_TMPDIR"
    printf 'dsn = {"dbname=a", "dbname=b"}\n%s\n' 'relay r { queue = q redis = "redis://127.0.0.1:1" }' >relay.conf
    printf 'dsn = {"dbname=a", "dbname=b"}\n%s\n' 'bridge b { redis = "redis://127.0.0.1:1" stream = s sql = f }' >bridge.conf
    run --separate-stderr -1 "$MR_BIN" serve -c relay.conf --roles relay --check
    [ "${stderr_lines[0]}" = 'millrace: relay r works on one database, and dsn names several' ]
    run --separate-stderr -1 "$MR_BIN" serve -c bridge.conf --roles bridge --check
    [ "${stderr_lines[0]}" = 'millrace: bridge b works on one database, and dsn names several' ]
    sed -i 's/queue = q/& dsn = "dbname=b"/' relay.conf
    "$MR_BIN" serve -c relay.conf --roles relay --check
}
