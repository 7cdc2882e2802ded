#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# Bridges that are killed in a loop under load, a database that crashes in the middle of batches, a Redis that is killed: each entry has its
# effect once.

bats_require_minimum_version 1.5.0
load ../lib/server
load ../lib/daemon
load ../lib/redis

setup()
{
    cd "$BATS_TEST_TMPDIR" || return
}

teardown()
{
    [ -z "${feeder:-}" ] || kill "$feeder" 2>/dev/null || true
    end_daemons
    redis_stop
}

# The effect: a row a time that an entry is applied.
make_effect()
{
    sql "create table effect (n int not null)"
    sql "create function ingest(entries jsonb[]) returns void language sql as \$\$
           insert into effect select (e -> 'data' ->> 'n')::int from unnest(entries) e \$\$"
}

# $1 entries in chunks of 200, some every tenth of a second.
feed()
{
    (
        for ((n = 1; n <= $1; n += 200)); do
            until redis_fill s $n $((n + 199)) 2>/dev/null; do sleep 0.1; done
            sleep 0.05
        done
    ) 3>&- &
    feeder=$!
}

start_bridge()
{
    printf 'bridge b { redis = "%s" stream = "s" sql = "ingest" batch = 100 consumer = "%s" reclaim = "1s" block = "100ms" }\n' "$(redis_address)" "$1" >"conf.$1"
    daemon "$1" serve -c "conf.$1" --roles bridge
}

kill_bridge()
{
    kill -KILL "$(pid_of "$1")"
    wait "$(pid_of "$1")" 2>/dev/null || true
}

more_than()
{
    [ "$(sql 'select count(*) from effect')" -gt "$1" ]
}

# Until some batches more have had their effect.
goes_on()
{
    wait_until 60 more_than "$(($(sql 'select count(*) from effect') + 500))"
}

all_in()
{
    [ "$(sql 'select count(distinct n) from effect')" -eq "$1" ] && [ "$(redis xpending s millrace | head -1)" = 0 ]
}

exactly_once()
{
    wait_until 60 all_in "$1" || { sql 'select count(*), count(distinct n), max(n) from effect' >&2; redis xpending s millrace >&2; return 1; }
    [ "$(sql 'select count(*), count(distinct n), min(n), max(n) from effect')" = "$1|$1|1|$1" ]
    [ "$(sql 'select count(*) from millrace.dead_letters')" -eq 0 ]
}

@test "two bridges, killed twenty times under load" {
    fresh_db
    make_effect
    redis_new
    feed 20000
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        start_bridge one
        start_bridge two
        sleep "0.$((RANDOM % 6 + 1))"
        kill_bridge one
        sleep "0.0$((RANDOM % 9))"
        kill_bridge two
    done
    wait "$feeder"
    start_bridge one
    exactly_once 20000
    echo "rows that remember: $(sql 'select sum(spans) from millrace.bridges'); killed after $(sql 'select count(*) from effect') effects" >&3
    drop_db
}

@test "the database crashes in the middle of batches" {
    private_server pg
    "$MR_BIN" migrate >/dev/null
    make_effect
    redis_new
    start_bridge one
    feed 10000
    for _ in 1 2 3; do
        goes_on
        "$MR_ROOT/tools/pgserver" crash "$MR_SERVER"
        "$MR_ROOT/tools/pgserver" start "$MR_SERVER"
        sql 'select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and backend_type = $$client backend$$'
    done
    wait "$feeder"
    exactly_once 10000
    remove_private_server
}

@test "Redis is killed in the middle, and comes back with what it had" {
    fresh_db
    make_effect
    redis_new --appendfsync always
    start_bridge one
    feed 10000
    for _ in 1 2 3; do
        goes_on
        redis_kill
        redis_start --appendfsync always
    done
    wait "$feeder"
    # a chunk that Redis had in part is fed again: the entries have new ids, the numbers do not
    wait_until 60 all_in 10000
    [ "$(sql 'select count(*) from effect')" -eq "$(redis xlen s)" ]
    drop_db
}
