#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# The toolbox and a server that stops answering, or crashes: docs/locks.md and docs/cache.md.

bats_require_minimum_version 1.5.0
load ../lib/server

setup()
{
    stopped=
    private_server toolbox
    "$MR_BIN" migrate >/dev/null
}

teardown()
{
    [ -z "$stopped" ] || kill -CONT "$stopped" || true
    remove_private_server
}

# The backend that holds the lock $1, when it has just been heard of: it has nothing else to do for seconds, and is stopped outside of a call.
idle_holder()
{
    sql "select a.pid from pg_stat_activity a join pg_locks l on l.pid = a.pid
          where l.locktype = 'advisory' and l.granted and l.classid::bigint << 32 | l.objid::bigint = millrace.lock_key('$1')
            and a.state = 'idle' and clock_timestamp() - a.state_change < '1 second'"
}

finds_holder()
{
    stopped=$(idle_holder "$1")
    [ -n "$stopped" ]
}

@test "lock: when its server stops answering the command is ended, and the exit status is 125" {
    "$MR_BIN" lock silent -- sh -c ': >"$0"; exec sleep 300' "$BATS_TEST_TMPDIR/up" 2>"$BATS_TEST_TMPDIR/err" 3>&- &
    local holder=$! status=0 begun
    wait_until 20 test -e "$BATS_TEST_TMPDIR/up"
    wait_until 30 finds_holder silent
    kill -STOP "$stopped"
    begun=$SECONDS
    # 5 seconds until it asks, 5 without an answer, 4.5 until SIGKILL; a busy machine is given a minute
    wait "$holder" || status=$?
    [ "$status" -eq 125 ]
    [ $((SECONDS - begun)) -le 60 ]
    grep -qx 'millrace: lock "silent" is lost: stopping the command' "$BATS_TEST_TMPDIR/err"
    # the stopped session still has it; when it goes on, it finds its client gone
    [ "$(sql "select millrace.try_lock('silent')")" = f ]
    kill -CONT "$stopped"
    stopped=
    wait_until 30 eval '[ "$(sql "select millrace.try_lock('\''silent'\'')")" = t ]'
}

@test "an unlogged cache after a crash of the server is empty, and works" {
    sql "select millrace.set_cache('{\"unlogged\": true}'); select millrace.cache_set('k', '1', '1 hour'); checkpoint"
    [ "$(sql "select millrace.cache_get('k')")" = 1 ]
    "$MR_ROOT/tools/pgserver" crash "$MR_SERVER"
    "$MR_ROOT/tools/pgserver" restart "$MR_SERVER"
    [ "$(sql "select millrace.cache_get('k') is null and not exists (select from millrace.cache_get_many('{k}') m where m.value is not null)")" = t ]
    [ "$(sql "select (millrace.cache_stats()).total")" = 0 ]
    sql "select millrace.cache_set('k', '2', '1 hour')"
    [ "$(sql "select millrace.cache_get('k')")" = 2 ]
    sql "select count(*) from millrace.maintain()"
    [ "$(sql "select millrace.cache_get('k')")" = 2 ]
}
