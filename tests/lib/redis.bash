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
#
# After redis_new_tcp, a second one that takes its place:
#
#   redis_new_replica       starts a replica, and waits until it has what the first one has
#   redis_cut               cuts it off when it has what was written until now: it has nothing of what is written from now on
#   redis_fail_over         kills the first one, makes the replica a primary, and has it take over socket and port
#   redis_failed_over       after $redis_dir/fail_over, which is the same as a script, for a program that goes on while it happens; so is cut

# A Redis Cluster of three primaries and a replica each:
#
#   redis_cluster_new          starts it: redis_cluster_ports, redis_cluster_pids (by port)
#   cluster PORT COMMAND...    redis-cli to one of its nodes; `cluster -c PORT ...` follows it
#   cluster_owner KEY          the port of the primary that has the key's slot
#   cluster_stop

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
    local pid
    for pid in ${redis_pid:-} ${replica_pid:-}; do
        kill -TERM "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    redis_pid='' replica_pid=''
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

redis_new_replica()
{
    replica_dir=$(mktemp -d "$MR_SCRATCH/redis.XXXXXX") || return
    redis-server --bind 127.0.0.1 --port 0 --unixsocket "$replica_dir/socket" --dir "$replica_dir" --save '' --appendonly yes --daemonize no \
        --logfile "$replica_dir/log" --replicaof "127.0.0.1 $redis_port" >/dev/null 2>&1 3>&- &
    replica_pid=$!
    redis_replica_scripts
    wait_until 20 replica_follows
}

replica_follows()
{
    redis-cli -s "$replica_dir/socket" info replication | grep -q '^master_link_status:up'
}

# WAIT counts the replicas that have what its own connection wrote. One that is cut off keeps its data, and looks for a primary where none is.
redis_replica_scripts()
{
    cat >"$redis_dir/cut" <<SCRIPT
printf 'SET synced 1\nWAIT 1 20000\n' | redis-cli -s $redis_dir/socket | tail -n 1 | grep -qx 1 &&
    redis-cli -s $replica_dir/socket replicaof 127.0.0.1 1 >/dev/null
SCRIPT
    cat >"$redis_dir/fail_over" <<SCRIPT
kill -KILL $redis_pid
while redis-cli -s $redis_dir/socket ping; do sleep 0.01; done >/dev/null 2>&1
redis-cli -s $replica_dir/socket replicaof no one >/dev/null &&
    redis-cli -s $replica_dir/socket config set port $redis_port >/dev/null &&
    ln -s $replica_dir/socket $redis_dir/next && mv -T $redis_dir/next $redis_dir/socket
SCRIPT
}

redis_cut()
{
    bash "$redis_dir/cut"
}

redis_fail_over()
{
    bash "$redis_dir/fail_over" && redis_failed_over
}

# From now on redis_stop and redis_kill end the other one.
redis_failed_over()
{
    wait "$redis_pid" 2>/dev/null || true
    redis_pid=$replica_pid
    replica_pid=
}

declare -gA redis_cluster_pids

redis_cluster_new()
{
    for _ in 1 2 3 4 5; do
        cluster_start && return
        cluster_stop
    done
    return 1
}

# On six ports in a row, whichever are free.
cluster_start()
{
    local first=$((20000 + RANDOM % 9000)) port addresses=()
    redis_cluster_ports=()
    cluster_dir=$(mktemp -d "$MR_SCRATCH/cluster.XXXXXX") || return
    for port in $(seq "$first" $((first + 5))); do
        redis_cluster_ports+=("$port")
        addresses+=("127.0.0.1:$port")
        mkdir "$cluster_dir/$port" || return
        redis-server --bind 127.0.0.1 --port "$port" --dir "$cluster_dir/$port" --save '' --appendonly yes --daemonize no --cluster-enabled yes \
            --cluster-config-file nodes.conf --cluster-node-timeout 3000 --logfile "$cluster_dir/$port/log" >/dev/null 2>&1 3>&- &
        redis_cluster_pids[$port]=$!
    done
    for port in "${redis_cluster_ports[@]}"; do
        wait_until 20 cluster_answers_or_ended "$port" && cluster "$port" ping >/dev/null 2>&1 || return
    done
    redis-cli --cluster create "${addresses[@]}" --cluster-replicas 1 --cluster-yes >"$cluster_dir/create.log" 2>&1 || return
    wait_until 60 cluster_is_ready
}

cluster_answers_or_ended()
{
    cluster "$1" ping >/dev/null 2>&1 || ! kill -0 "${redis_cluster_pids[$1]}" 2>/dev/null
}

# Every node says so, and every primary has its replica.
cluster_is_ready()
{
    local port
    for port in "${redis_cluster_ports[@]}"; do
        cluster "$port" cluster info | grep -q '^cluster_state:ok' || return
        ! cluster "$port" info replication | grep -q '^master_link_status:down' || return
    done
    [ "$(cluster "${redis_cluster_ports[0]}" cluster nodes | grep -c ' slave ')" -eq 3 ]
}

cluster()
{
    local follow=()
    [ "$1" != -c ] || { follow=(-c); shift; }
    local port=$1
    shift
    redis-cli "${follow[@]}" -p "$port" "$@"
}

# As a node says that lives.
cluster_owner()
{
    local port slot
    for port in "${redis_cluster_ports[@]}"; do
        slot=$(cluster "$port" cluster keyslot "$1" 2>/dev/null) || continue
        cluster "$port" cluster nodes | awk -v slot="$slot" '$3 ~ /master/ && $3 !~ /fail/ {
            for (i = 9; i <= NF; i++) { split($i, range, "-"); if (slot >= range[1] && slot <= (range[2] == "" ? range[1] : range[2])) {
                split($2, at, "[:@]"); print at[2]; exit } } }'
        return
    done
}

cluster_kill()
{
    kill -KILL "${redis_cluster_pids[$1]}"
    wait "${redis_cluster_pids[$1]}" 2>/dev/null || true
    unset "redis_cluster_pids[$1]"
}

cluster_stop()
{
    local port
    for port in "${!redis_cluster_pids[@]}"; do
        kill -KILL "${redis_cluster_pids[$port]}" 2>/dev/null || true
        wait "${redis_cluster_pids[$port]}" 2>/dev/null || true
    done
    redis_cluster_pids=()
}
