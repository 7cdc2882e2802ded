# SPDX-License-Identifier: PostgreSQL
# shellcheck shell=bash
#
# PgBouncer in transaction mode, with three connections, in front of the current database:
#
#   load ../lib/server
#   load ../lib/pgbouncer
#   setup_file() { fresh_db; start_pgbouncer; }       # from here on everything goes through it
#   teardown_file() { stop_pgbouncer; drop_db; }
#
# DIRECT_HOST and DIRECT_PORT stay those of the server.

# PgBouncer refuses to run as root, and only the server's owner can reach its socket.
as_server_owner()
{
    if [ "$(id -u)" -eq 0 ]; then
        setpriv --reuid="$(stat -c %u "$DIRECT_HOST")" --regid="$(stat -c %g "$DIRECT_HOST")" --clear-groups "$@"
    else
        "$@"
    fi
}

write_configuration()
{
    cat >"$POOL/pgbouncer.ini" <<CONF
[databases]
$PGDATABASE = host=$DIRECT_HOST port=$DIRECT_PORT user=$PGUSER
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = $POOL_PORT
unix_socket_dir =
auth_type = scram-sha-256
auth_file = $POOL/users
pool_mode = transaction
default_pool_size = 3
max_client_conn = 100
logfile = $POOL/log
pidfile = $POOL/pid
CONF
    printf '"%s" "%s"\n' "$PGUSER" "$PGPASSWORD" >"$POOL/users"
}

start_pgbouncer()
{
    local try
    export DIRECT_HOST=$PGHOST DIRECT_PORT=$PGPORT
    export POOL=$MR_SCRATCH/pool PGPASSWORD
    PGPASSWORD=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
    mkdir -m 700 "$POOL"
    for ((try = 0; try < 10; try++)); do
        export POOL_PORT=$((20000 + RANDOM % 12000))
        write_configuration
        [ "$(id -u)" -ne 0 ] || chown -R "$(stat -c %u:%g "$DIRECT_HOST")" "$POOL"
        as_server_owner pgbouncer -d -q "$POOL/pgbouncer.ini" 3>&- || continue
        if wait_until 10 psql -X -q -h 127.0.0.1 -p "$POOL_PORT" -c 'select 1'; then
            export PGHOST=127.0.0.1 PGPORT=$POOL_PORT
            use_db "$PGDATABASE"
            return
        fi
    done
    cat "$POOL/log" >&2
    return 1
}

stop_pgbouncer()
{
    local pid
    pid=$(cat "$POOL/pid")
    kill -INT "$pid"
    wait_until 10 is_gone "$pid"
    export PGHOST=$DIRECT_HOST PGPORT=$DIRECT_PORT PGPASSWORD=
    use_db "$PGDATABASE"
}
