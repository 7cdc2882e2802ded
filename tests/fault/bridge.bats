#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# Bridges that are killed in a loop under load, a database that crashes in the middle of batches, a Redis that is killed, and one whose replica
# takes its place: each entry has its effect once.

# shellcheck disable=SC2154  # redis_port is set by redis_new_tcp
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
    sql "create table effect (n int not null, entry text not null)"
    sql "create function ingest(entries jsonb[]) returns void language sql as \$\$
           insert into effect select (e -> 'data' ->> 'n')::int, e ->> 'id' from unnest(entries) e \$\$"
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

# $1: its consumer's name, $2: after what time it takes over (1s).
start_bridge()
{
    printf 'bridge b { redis = "%s" stream = "s" sql = "ingest" batch = 100 consumer = "%s" reclaim = "%s" block = "100ms" }\n' \
        "${address:-$(redis_address)}" "$1" "${2:-1s}" >"conf.$1"
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

@test "an entry that crashes the server ends alone, as a dead letter" {
    private_server pg -o restart_after_crash=on
    "$MR_BIN" migrate >/dev/null
    make_effect
    # the backend is the parent of the shell that COPY starts
    sql "create function crash(entries jsonb[]) returns void language plpgsql as \$\$
         begin
           if exists (select from unnest(entries) e where e -> 'data' ->> 'n' = '3') then
             copy (select 1) to program 'kill -9 \$PPID';
           end if;
           perform ingest(entries);
         end \$\$"
    redis_new
    redis_fill s 1 4
    printf 'bridge b { redis = "%s" stream = "s" sql = "crash" queue = "sink" block = "100ms" }\n' "$(redis_address)" >conf
    daemon one serve -c conf --roles bridge
    wait_until 100 eval '[ "$(sql "select count(*) from effect")" -eq 3 ] && [ "$(redis xpending s millrace | head -1)" = 0 ]'
    [ "$(sql "select string_agg(n::text, ',' order by n) from effect")" = 1,2,4 ]
    [ "$(sql "select args from millrace.dead_letters where queue = 'sink'")" = '{"n": "3", "kind": "k"}' ]
    # three times in fours, three in twos, three alone
    [ "$(grep -c 'was terminated by signal 9' "$MR_SERVER/log")" -eq 9 ]
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

# Everything that the stream has was applied and acknowledged.
stream_applied()
{
    redis --raw xrange s - + | grep -E '^[0-9]+-[0-9]+$' >ids
    sql 'drop table if exists held; create table held (entry text primary key)' 2>/dev/null
    sql 'copy held from stdin' <ids
    [ "$(sql 'select count(*) from held h where not exists (select from effect e where e.entry = h.entry)')" -eq 0 ] &&
        [ "$(redis xpending s millrace | head -1)" = 0 ]
}

# No id was applied twice. Prints how many were applied that the stream does not have.
entries_once()
{
    wait_until 60 stream_applied
    [ "$(sql 'select count(*) from held')" -eq "$(redis xlen s)" ]
    [ "$(sql 'select count(*) - count(distinct entry) from effect')" -eq 0 ]
    [ "$(sql 'select count(*) from millrace.dead_letters')" -eq 0 ]
    lost=$(sql 'select count(*) from effect e where not exists (select from held h where h.entry = e.entry)')
}

@test "Redis fails over to a replica that was behind: what that holds is applied once, whoever had read it" {
    local last
    fresh_db
    make_effect
    redis_new_tcp
    redis_new_replica
    start_bridge one
    redis_fill s 1 300
    exactly_once 300
    kill_bridge one
    # 301 to 400 were read by a bridge that died, and are pending; nobody has read 401 to 500
    redis_fill s 301 500
    redis xreadgroup group millrace one count 100 streams s '>' >/dev/null
    redis_cut
    # what this one does, and the entries from 501 on, the replica does not know
    start_bridge two 1h
    redis_fill s 501 600
    wait_until 30 more_than 499
    last=$(redis --raw xrevrange s + - count 1 | head -n 1)
    redis_fail_over
    [ "$(redis xlen s)" -eq 500 ]
    # the bound: an entry under the id of one that was applied and then lost is taken for that one
    redis xadd s "$last" n 0
    redis_fill s 601 700
    wait_until 30 more_than 599
    # those that the new primary has as pending are taken over
    start_bridge three
    entries_once
    logged three 'bridge.reclaimed'
    [ "$lost" -eq 99 ]
    [ "$(sql 'select count(*), count(distinct n), min(n), max(n) from effect')" = '700|700|1|700' ]
    signal two TERM
    ended two
    logged two 'bridge.ended: ended .*applied=300 repeated=101' || { show_log two; false; }
    drop_db
}

@test "Redis fails over under load" {
    fresh_db
    make_effect
    redis_new_tcp
    redis_new_replica
    address=redis://127.0.0.1:$redis_port
    start_bridge one
    start_bridge two
    feed 8000
    wait_until 60 more_than 1000
    kill_bridge two
    redis_fail_over
    wait "$feeder"
    redis_fill s 8001 8200
    entries_once
    echo "# $(redis xlen s) entries are there; $lost more were applied and are lost" >&3
    drop_db
}

@test "a replica that had not heard of the group when it took over: its entries are applied again" {
    fresh_db
    make_effect
    redis_new_tcp
    redis_fill s 1 10
    redis_new_replica
    redis_cut
    start_bridge one
    redis_fill s 11 20
    wait_until 30 more_than 19
    redis_fail_over
    wait_until 30 logged one 'bridge.restarted'
    wait_until 30 more_than 29
    [ "$(sql 'select count(*), count(distinct n) from effect')" = '30|20' ]
    drop_db
}
