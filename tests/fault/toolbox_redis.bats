#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# The limiter and the leases on Redis under eight clients, of which one is killed with SIGKILL again and again: never more is allowed than the
# limit says, no fencing number is given twice, and the numbers of each client rise. MR_TOOLBOX_SECONDS says for how long (5). And what a failover
# to a replica leaves of locks, limiters and the cache.

# shellcheck disable=SC2154  # redis_dir is set by redis_new, kills by killing
bats_require_minimum_version 1.5.0
load ../lib/server
load ../lib/redis
load ../lib/killing

setup()
{
    cd "$BATS_TEST_TMPDIR" || return
    conform=$MR_BUILD/tests/conformance/conform
    seconds=${MR_TOOLBOX_SECONDS:-5}
    clients=()
    redis_new
    MILLRACE_DSN=$(redis_address)
    export MILLRACE_DSN
}

teardown()
{
    kill_all "${clients[@]}"
    redis_stop
}

# client N: what it prints goes to a file for each time that it was started.
client()
{
    started=$((started + 1))
    sed "s/ME/client-$started/" rounds | "$conform" >"out.$started" 2>&1 3>&- &
    clients[$1]=$!
}

# under_fire COMMAND...: until the command says that enough was seen; nobody was told of an error.
under_fire()
{
    started=0
    killing "$seconds" "$@"
    ! grep -h MR_E out.*
}

# seen N PATTERN: so many lines of what the clients printed have it.
seen()
{
    [ "$(cat out.* | grep -c "$2")" -ge "$1" ]
}

@test "rate limiter on Redis: eight clients, killed at random, are never allowed more than 50 in a second" {
    yes 'rate_limit one 50 1s' | head -n 200000 >rounds
    under_fire seen 1 '^    allowed'
    # each event that counts, by its time: whoever was allowed is in it, also who was killed before the answer
    redis zrange 'mr:rate:hour:{one}' 0 -1 withscores | paste - - | awk '
        { split($1, part, ":"); at[NR] = $2; cost[NR] = part[2]; sum += part[2]
          while (at[NR] - at[first + 1] >= 1000000) sum -= cost[++first]
          if (sum > most) most = sum; all += part[2] }
        END { print all, most }' >figures
    read -r all most <figures
    allowed=$(cat out.* | grep -c '^    allowed')
    echo "# $all spent, $allowed of them answered, at most $most in any second, $kills kills" >&3
    [ "$most" -le 50 ]
    [ "$allowed" -le "$all" ]
    [ "$allowed" -gt 0 ]
}

@test "leases on Redis: eight contenders, killed at random, never get one fencing number twice, and numbers rise" {
    yes 'lock_in_turn l ME 200ms' | head -n 200000 >rounds
    under_fire seen 2 '^    [0-9]'
    local out
    for out in out.*; do
        sed -n 's/^    //p' "$out" | sort -nuc || return 1
    done
    sed -n 's/^    //p' out.* >fences
    echo "# $(wc -l <fences) times held, $kills kills" >&3
    [ "$(wc -l <fences)" -gt 1 ]
    [ -z "$(sort fences | uniq -d)" ]
}

@test "Redis fails over to a replica that was behind: fencing numbers rise, and a lease that it does not know is nobody's" {
    redis_stop
    redis_new_tcp
    redis_new_replica
    MILLRACE_DSN=$(redis_address)
    # the replica misses the lease of `new` and of `gone`, a value and what was spent
    cat >rounds <<CALLS
lock_lease old me 1h
cache_set k 1 1h
rate_limit r 2 1h
shell 'bash $redis_dir/cut'
lock_lease new me 1h
lock_lease gone me 1h
cache_set k 2 1h
rate_limit r 2 1h
shell 'bash $redis_dir/fail_over'
lock_lease old another 1h
lock_lease old me 1h
lock_lease new another 1h
lock_lease new me 1h
unlock_lease new me
unlock_lease gone me
lock_lease gone me 1h
cache_get k
rate_limit r 2 1h
rate_limit r 2 1h
CALLS
    "$conform" <rounds >said
    redis_failed_over
    diff - <(sed -n 's/^    //p' said) <<'SAID'
held, fence F1, the largest so far
ok
allowed, 1 left, resets within the period
held, fence F2, the largest so far
held, fence F3, the largest so far
ok
allowed, 0 left, resets within the period
another has it
held, fence F1
held, fence F4, the largest so far
another has it
not held
not held
held, fence F5, the largest so far
1
allowed, 0 left, resets within the period
refused, 0 left, resets within the period
SAID
}
