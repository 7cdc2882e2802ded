#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# The Redis backend: the program's commands on it, what is refused by name, and a Redis that is restarted, full, locked or not ours.

# shellcheck disable=SC2154  # stderr_lines is set by run
bats_require_minimum_version 1.5.0
load ../lib/server
load ../lib/redis
load ../lib/cache

setup()
{
    cd "$BATS_TEST_TMPDIR" || return
    unset MILLRACE_DSN DATABASE_URL
    conform=$MR_BUILD/tests/conformance/conform
}

teardown()
{
    # one that cannot save does not end otherwise
    [ -z "${redis_pid:-}" ] || timeout 5 redis-cli -s "$redis_dir/socket" config set save '' >/dev/null 2>&1 || true
    redis_stop
}

on_redis()
{
    redis_new "$@"
    MILLRACE_DSN=$(redis_address)
    export MILLRACE_DSN
}

# Makes calls of tests/conformance on one connection.
calls()
{
    printf '%s\n' "$@" | "$conform" | sed -n 's/^    //p'
}

@test "cache: set, get, delete, like, stats" {
    on_redis
    cache_speaks
}

@test "cache: more keys than one look takes" {
    on_redis
    seq 1 5000 | sed 's/.*/SET mr:{cache}:many:& 1 PX 3600000/' | redis >/dev/null
    redis set other 1
    "$MR_BIN" cache set kept 1 --ttl 1h
    "$MR_BIN" cache stats --json | grep -q '"total":5001,"valid":5001,"expired":0,"bytes":[1-9][0-9]*,"exact":false'
    [ "$("$MR_BIN" cache delete --like 'many:%')" = 'deleted: 5000' ]
    [ "$("$MR_BIN" cache get kept)" = 1 ]
    [ "$(redis get other)" = 1 ]
}

@test "lock: a command runs under a lease with a rising fencing number, and one at a time" {
    on_redis
    [ "$(echo hello | "$MR_BIN" lock 'a lock' -- sh -c 'cat; echo "$1"' sh world)" = $'hello\nworld' ]
    run -7 "$MR_BIN" lock l -- sh -c 'exit 7'
    [ "$(redis exists 'mr:{lock}:name:l')" = 0 ]
    local first second
    first=$("$MR_BIN" lock l -- sh -c 'echo "$MILLRACE_FENCE"')
    redis flushall
    second=$("$MR_BIN" lock l --ttl 10s -- sh -c 'echo "$MILLRACE_FENCE"')
    # also when Redis has forgotten everything
    [ "$second" -gt "$first" ]
    run --separate-stderr -124 "$MR_BIN" lock l -- "$MR_BIN" lock l --try -- touch ran
    [ "${stderr_lines[0]}" = 'millrace: lock "l" is held by another' ]
    [ ! -e ran ]
}

@test "lock: a command whose lock was taken away is stopped" {
    on_redis
    "$MR_BIN" lock l --ttl 1s -- sleep 60 2>err 3>&- &
    local holder=$! status=0
    wait_until 20 lock_is_there
    redis set 'mr:{lock}:name:l' 99:thief
    wait "$holder" || status=$?
    [ "$status" -eq 125 ]
    grep -q 'lock "l" is lost' err
    [ "$(redis get 'mr:{lock}:name:l')" = 99:thief ]
}

@test "lock: killed with SIGKILL, it is free when its --ttl is over, not at once" {
    on_redis
    local ttl holder pid first second
    for ttl in 1h 1s; do
        redis del 'mr:{lock}:name:l'
        rm -f up
        "$MR_BIN" lock l --ttl "$ttl" -- sh -c 'echo $$ $MILLRACE_FENCE >new; mv new up; exec sleep 300' 3>&- &
        holder=$!
        wait_until 20 test -e up
        read -r pid first <up
        kill -KILL "$holder" || true # a machine that stalls may have cost it the short lease
        wait "$holder" || true
        # its command goes with it
        wait_until 20 gone "$pid"
        if [ "$ttl" = 1h ]; then
            run -124 "$MR_BIN" lock l --try -- true
        fi
    done
    second=$("$MR_BIN" lock l --wait 30s -- sh -c 'echo "$MILLRACE_FENCE"')
    [ "$second" -gt "$first" ]
}

gone()
{
    ! kill -0 "$1"
}

lock_is_there()
{
    [ "$(redis exists 'mr:{lock}:name:l')" = 1 ]
}

@test "commands that need PostgreSQL say so by their name" {
    on_redis
    local command
    for command in top 'job 1' 'wait 1' 'pause q' 'resume q' 'cancel 1' 'queue list' 'retry list' 'cron list' 'capture list' doctor 'work --run true'; do
        # shellcheck disable=SC2086  # words
        run --separate-stderr -2 "$MR_BIN" $command
        [ "${stderr_lines[0]}" = "millrace: \`millrace ${command%% *}\` needs PostgreSQL; the address is one of Redis" ]
        [[ ${stderr_lines[1]} == 'hint: '*docs/redis.md* ]]
    done
    # those that find their database themselves say it when they connect
    run --separate-stderr -2 "$MR_BIN" migrate
    [ "${stderr_lines[0]}" = 'millrace: PostgreSQL is needed; the address in MILLRACE_DSN is one of Redis' ]
    "$MR_BIN" top --help >/dev/null
    # what is given wins over the environment
    run --separate-stderr -2 "$MR_BIN" top --dsn=redis://localhost
    [[ ${stderr_lines[0]} == *'needs PostgreSQL'* ]]
    MILLRACE_DSN=redis://localhost run --separate-stderr "$MR_BIN" top --dsn "host=$PGHOST dbname=none"
    [[ $stderr != *'one of Redis'* ]]
}

@test "addresses that are wrong" {
    run --separate-stderr -2 "$MR_BIN" cache get k --dsn redis://secret@:1
    [[ ${stderr_lines[0]} == 'millrace: not the address of a Redis server: '* ]]
    [[ $stderr != *secret* ]]
    run --separate-stderr -2 "$MR_BIN" cache get k --dsn rediss://host
    [ "${stderr_lines[0]}" = 'millrace: TLS to Redis is not supported' ]
    run --separate-stderr -3 "$MR_BIN" cache get k --dsn "unix://$PWD/nobody"
    [[ ${stderr_lines[0]} == "millrace: cannot connect to Redis at $PWD/nobody: "* ]]
    [[ ${stderr_lines[1]} == 'hint: Is Redis running there'* ]]
}

# A script `weather` that ends Redis and starts it again, with other arguments, until it says something: also that it is loading.
make_weather()
{
    {
        declare -f wait_until
        printf '%s\n' "redis_dir=$redis_dir" "kill -TERM $redis_pid" 'wait_until 20 test ! -e "$redis_dir/socket"'
        printf 'redis-server --port 0 --unixsocket "$redis_dir/socket" --dir "$redis_dir" --save "" --appendonly yes --daemonize yes'
        printf ' --pidfile "$redis_dir/pid" --logfile "$redis_dir/log" %s >/dev/null\n' "$*"
        printf '%s\n' 'says() { redis-cli -s "$redis_dir/socket" ping 2>&1 | grep -E "^(PONG|LOADING)"; }' 'wait_until 20 says'
    } >weather
}

# Ends the Redis that the weather left: it is no child of ours.
end_weather()
{
    wait_until 20 test -s "$redis_dir/pid"
    kill -TERM "$(cat "$redis_dir/pid")"
    wait_until 20 test ! -e "$redis_dir/socket"
    redis_pid=
}

@test "Redis is restarted: an idle connection is made again" {
    on_redis
    make_weather
    [ "$(calls 'cache_set k 1 1h' 'rate_limit r 2 1h' "shell 'bash weather 3>&-'" 'cache_get k' 'rate_limit r 2 1h')" = "$(printf '%s\n' \
        ok 'allowed, 1 left, resets within the period' 1 'allowed, 0 left, resets within the period')" ]
    end_weather
}

@test "Redis still loads its data: a call waits for it" {
    on_redis
    # 400 keys in the part that is loaded slowly
    seq 1 400 | sed 's/.*/SET filler:& 1/' | redis >/dev/null
    redis bgrewriteaof
    wait_until 20 rewritten
    make_weather --key-load-delay 4000 --loading-process-events-interval-bytes 1024
    [ "$(calls 'cache_set k 1 1h' "shell 'bash weather 3>&-'" 'cache_get k')" = $'ok\n1' ]
    end_weather
}

rewritten()
{
    redis info persistence | tr -d '\r' | grep -qx 'aof_rewrite_in_progress:0' && redis info persistence | tr -d '\r' | grep -qx 'aof_rewrite_scheduled:0'
}

@test "a connection that was closed is made again; a Redis that dies under a call is a transient failure" {
    on_redis
    [ "$(calls 'cache_set k 1 1h' "shell 'redis-cli -s $redis_dir/socket client kill type normal skipme yes >/dev/null'" 'cache_get k')" = $'ok\n1' ]
    # it answers nothing any more, then it dies: whether the call was sent before or not
    run calls 'cache_get k' "shell 'kill -STOP $redis_pid; (sleep 0.2; kill -KILL $redis_pid) >/dev/null 2>&1 3>&- &'" 'cache_get k'
    [ "${lines[0]}" = 1 ]
    [[ ${lines[1]} == 'MR_ECONNECT (transient): '* ]]
    wait "$redis_pid" || true
    redis_pid=
}

@test "Redis is full: MR_EFULLDISK, and what needs no memory still works" {
    on_redis --maxmemory 3mb --maxmemory-policy noeviction
    [ "$(calls 'cache_set small 1 1h' 'lock_lease l one 1h')" = $'ok\nheld, fence F1, the largest so far' ]
    redis config set maxmemory 1mb
    run calls 'cache_set k 1 1h' 'rate_limit r 1 1h' 'lock_lease m one 1h' 'cache_get small' 'cache_delete small' 'unlock_lease l one'
    [[ ${lines[0]} == "MR_EFULLDISK (transient): Redis at $redis_dir/socket: OOM command not allowed"* ]]
    [[ ${lines[1]} == 'MR_EFULLDISK (transient): '*OOM* ]]
    [[ ${lines[2]} == 'MR_EFULLDISK (transient): '*OOM* ]]
    [ "${lines[3]}" = 1 ]
    [ "${lines[4]}" = deleted ]
    run --separate-stderr -1 "$MR_BIN" cache set k 1 --ttl 1h
    [[ $stderr == *'maxmemory-policy noeviction'* ]]
}

save_failed()
{
    redis info persistence | tr -d '\r' | grep -qx 'rdb_last_bgsave_status:err'
}

@test "Redis could not save: only reading works, also on a new connection" {
    mkdir gone
    on_redis --dir "$PWD/gone" --appendonly no --stop-writes-on-bgsave-error yes
    calls 'cache_set k 1 1h' 'lock_lease l one 1h' 'enqueue k 1 queue q'
    local at
    redis config set save '3600 1000000'
    rmdir gone
    redis bgsave
    wait_until 20 save_failed
    [[ $(redis ping 2>&1) == MISCONF* ]]
    run calls 'cache_get k' 'depth q' 'cache_set k 2 1h' 'cache_delete k' 'lock_lease m one 1h' 'unlock_lease l one' 'enqueue k 1 queue q' 'cache_get k'
    [ "${lines[0]}" = 1 ]
    [ "${lines[1]}" = '1 available' ]
    for at in 2 3 4 5 6; do
        [[ ${lines[at]} == 'MR_EFULLDISK (transient): Redis at '*MISCONF* ]]
    done
    [ "${lines[7]}" = 1 ]
    [ "$("$MR_BIN" cache get k)" = 1 ]
}

@test "a command that is too large is refused before it is made, and its connection goes on" {
    on_redis
    # 2.5 GiB: more than hiredis can count
    run calls 'enqueue_heavy q 40 67108864' 'enqueue_heavy q 5 60000000' 'enqueue_heavy q 2 1000' 'enqueue k 1 queue p' 'claim p 1' 'fail L1 J1 why state @rep:x:67108865' 'depth q'
    [[ ${lines[0]} == 'MR_ELIMIT (rejected): a command of 2684'*' bytes for Redis, the limit is 268435456' ]]
    [[ ${lines[1]} == 'MR_ELIMIT (rejected): a command of 3000'*' bytes for Redis, the limit is 268435456' ]]
    [ "${lines[2]}" = '2 done' ]
    [[ $output == *'MR_EINVALID (rejected, 22023): state is 67108865 bytes long, the limit is 67108864'* ]]
    [ "${lines[-1]}" = "2 available" ]
}

@test "a password: missing, wrong, right, of a user, over TCP" {
    redis_new_tcp --requirepass 'se:cr@t'
    run --separate-stderr -1 "$MR_BIN" cache get k --dsn "unix://$redis_dir/socket"
    [[ ${stderr_lines[0]} == "millrace: Redis at $redis_dir/socket: NOAUTH "* ]]
    [[ ${stderr_lines[1]} == 'hint: It wants a password: '* ]]
    run --separate-stderr -1 "$MR_BIN" cache get k --dsn "redis://:wrongword@127.0.0.1:$redis_port"
    [[ ${stderr_lines[0]} == "millrace: Redis at 127.0.0.1:$redis_port: WRONGPASS "* ]]
    [[ $stderr != *wrongword* ]]
    "$MR_BIN" cache set k 1 --ttl 1h --dsn "redis://:se%3acr%40t@127.0.0.1:$redis_port/3"
    [ "$("$MR_BIN" cache get k --dsn "unix://default:se%3acr%40t@$redis_dir/socket?db=3")" = 1 ]
    run -1 "$MR_BIN" cache get k --dsn "redis://default:se%3acr%40t@127.0.0.1:$redis_port/4"
    run --separate-stderr -1 "$MR_BIN" cache get k --dsn "redis://:se%3acr%40t@127.0.0.1:$redis_port/4000"
    [[ ${stderr_lines[0]} == *'DB index'* ]]
    REDISCLI_AUTH='se:cr@t' redis acl setuser reader on '>pw' '~mr:*' +@all -set
    run --separate-stderr -1 "$MR_BIN" cache set k 1 --ttl 1h --dsn "unix://reader:pw@$redis_dir/socket"
    [[ ${stderr_lines[0]} == *NOPERM* ]]
}

@test "keys of another program, and a server that is none of ours" {
    on_redis
    redis rpush 'mr:{cache}:k' 1
    redis set 'mr:rate:hour:{k}' 1
    redis set 'mr:{lock}:name:k' nonsense
    run calls 'cache_get k' 'rate_limit k 1 1h' 'lock_lease k one 1h' 'unlock_lease k one' 'cache_get_many k' 'cache_set k 2 1h' 'cache_get k'
    [[ ${lines[0]} == 'MR_EFOREIGN (config): Redis at '*WRONGTYPE* ]]
    [[ ${lines[1]} == 'MR_EFOREIGN (config): Redis at '*WRONGTYPE* ]]
    [[ ${lines[2]} == 'MR_EFOREIGN (config): Redis at '*WRONGTYPE* ]]
    [ "${lines[3]}" = 'not held' ]
    [ "${lines[6]}" = ok ]
    [ "${lines[7]}" = 2 ]
    redis replicaof 127.0.0.1 1
    # and it becomes the master again
    run calls 'cache_set k 3 1h' "shell 'redis-cli -s $redis_dir/socket replicaof no one >/dev/null'" 'cache_set k 3 1h'
    [[ ${lines[0]} == 'MR_EREADONLY (config): Redis at '*READONLY* ]]
    [ "${lines[1]}" = ok ]
}

@test "scripts that Redis has forgotten are sent again" {
    on_redis
    [ "$(calls 'rate_limit r 2 1h' "shell 'redis-cli -s $redis_dir/socket script flush >/dev/null'" 'rate_limit r 2 1h')" = \
        $'allowed, 1 left, resets within the period\nallowed, 0 left, resets within the period' ]
}

@test "docs/redis.md prints what it says" {
    on_redis
    awk '/^```sh$/ { on = 1; next } /^```/ { on = 0 } on' "$MR_ROOT/docs/redis.md" >script
    awk '/^```text$/ { on = 1; next } /^```/ { on = 0 } on' "$MR_ROOT/docs/redis.md" >expected
    [ -s expected ]
    # the last one is refused
    run -2 env "PATH=${MR_BIN%/*}:$PATH" bash script
    printf '%s\n' "$output" >actual
    diff -u expected actual
}
