#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# Verdicts of `millrace doctor` that take a second server: a standby of the first, which is promoted
# when it was looked at, and then started with other settings and brought near the end of its
# transaction ids. See doctor_verdicts.bats.

bats_require_minimum_version 1.5.0
load ../lib/server
load ../lib/doctor

setup_file()
{
    private_server ill -o max_connections=40 -o max_locks_per_transaction=160 -o max_prepared_transactions=5 \
        -o hot_standby_feedback=on -o wal_receiver_status_interval=1s
    "$MR_BIN" migrate >/dev/null
}

teardown_file()
{
    [ ! -d "$MR_SCRATCH/other" ] || "$MR_ROOT/tools/pgserver" remove "$MR_SCRATCH/other"
    export MR_SERVER=$MR_SCRATCH/ill
    remove_private_server
}

# Runs a command as the user whose the servers are.
as_owner()
{
    if [ "$(id -u)" -eq 0 ]; then
        (cd / && setpriv --reuid="$(stat -c %u "$MR_SERVER")" --regid="$(stat -c %g "$MR_SERVER")" --clear-groups "$@")
    else
        "$@"
    fi
}

# ---- a standby -------------------------------------------------------------------------------------

# Points the variables to the other server, or back.
use_server()
{
    eval "$("$MR_ROOT/tools/pgserver" env "$MR_SCRATCH/$1")"
    use_db postgres
}

# A server that is known to tools/pgserver, with the data of the current one.
make_standby()
{
    local dir=$MR_SCRATCH/other
    mkdir -m 700 "$dir" "$dir/socket.d"
    chown "$(stat -c %u:%g "$MR_SERVER")" "$dir" "$dir/socket.d"
    as_owner "$PGBIN/pg_basebackup" -h "$PGHOST" -p "$PGPORT" -U "$PGUSER" -D "$dir/data" --no-sync -c fast -X stream -R "$@" >/dev/null
    cp "$MR_SERVER/password" "$MR_SERVER/bin" "$dir/"
    printf '%s\n' "$dir/socket.d" >"$dir/socket"
    printf '5432\n' >"$dir/port"
    "$MR_ROOT/tools/pgserver" start "$dir" -o listen_addresses= -o autovacuum_naptime=1s
}

@test "a standby can be looked at, and what it holds back is found on the primary" {
    sql "select count(*) from millrace.enqueue_many('k', array_fill('{}'::jsonb, array[150]), 'beside')" >/dev/null
    well 'standby feedback' none
    make_standby -C -S beside
    use_server other
    wait_until 20 check_is depth "warning: *'beside' (150 pending*"
    says 'server version' note 'PostgreSQL *, a standby: jobs can be looked at, not taken' 'Connect to the primary*'
    [ "$("$MR_BIN" doctor --json | jq '[.checks[] | select(.evidence | startswith("could not") or startswith("not known"))] | length')" = 0 ]
    "$MR_BIN" status | grep -qE '^beside +150 '
    "$MR_BIN" top --once --interval 100ms | grep -qE '^beside +150 '
    # a reader there holds the horizon here, in its slot; ended, it does not
    open_transaction 'set transaction isolation level repeatable read; select 1'
    use_server ill
    wait_until 20 says 'standby feedback' ok "1 hold the horizon, the oldest * transactions back (slot 'beside')"
    wait_until 20 check_is 'replication slots' "ok: 1, WAL kept: * by 'beside' -> null"
    use_server other
    close_transaction
    # without a slot the walsender holds it
    sql "alter system set primary_slot_name = ''" && sql 'select pg_reload_conf()' >/dev/null
    open_transaction 'set transaction isolation level repeatable read; select 1'
    use_server ill
    wait_until 20 says 'replication slots' warning "1, *; inactive: 'beside'"
    follow 'replication slots'
    well 'replication slots' none
    wait_until 20 check_is 'standby feedback' 'ok: 1 hold the horizon, * (pid *) -> null'
    use_server other
    close_transaction
    [ "$(sql 'select pg_promote()')" = t ]
    well 'server version'
    use_server ill
    wait_until 20 well 'standby feedback' none
}

# ---- the other server, by itself -------------------------------------------------------------------

# Starts it with settings NAME=VALUE that the file of `alter system` does not have.
restart_other()
{
    local settings=() setting
    for setting in "$@"; do
        settings+=(-o "$setting")
    done
    "$MR_ROOT/tools/pgserver" stop "$MR_SCRATCH/other"
    "$MR_ROOT/tools/pgserver" start "$MR_SCRATCH/other" "${settings[@]}"
}

@test "settings that take a restart" {
    use_server other
    restart_other max_connections=10 superuser_reserved_connections=3 max_locks_per_transaction=64 max_prepared_transactions=0
    says locks warning 'room for 640: max_locks_per_transaction 64' 'alter system set max_locks_per_transaction = 500 -- it takes a restart*'
    says shared_buffers note '128 MB, the default or less' "alter system set shared_buffers = '2GB' -- *"
    follow locks
    follow shared_buffers
    restart_other
    well locks 'room for 5000: max_locks_per_transaction 500'
    well shared_buffers '2048 MB'
}

@test "a setting of the command line goes before all others" {
    use_server other
    "$MR_ROOT/tools/pgserver" stop "$MR_SCRATCH/other"
    as_owner "$PGBIN/pg_ctl" -D "$MR_SCRATCH/other/data" -w -s -l "$MR_SCRATCH/other/log" -o "-k '$PGHOST' -p 5432 -c fsync=off" start 3>&-
    says fsync critical 'off: *' 'Start the server without fsync=off on its command line*'
    restart_other fsync=on
    well fsync
    restart_other fsync=off
}

# The check $1 on the server while it is off: nothing runs beside, autovacuum neither.
alone()
{
    as_owner "$PGBIN/postgres" --single -D "$MR_SCRATCH/other/data" postgres \
        <<<"select d.verdict || ': ' || d.evidence || ' -> ' || coalesce(d.remedy, 'null') as found from millrace.doctor_at(clock_timestamp()) d where d.topic = '$1'" |
        sed -n 's/.*found = "\(.*\)"\t.*/\1/p'
}

# The next transaction has the number $1; the log of commits needs a place for it.
jump_to()
{
    local file
    printf -v file '%s/other/data/pg_xact/%04X' "$MR_SCRATCH" $(($1 / 1048576))
    as_owner dd if=/dev/zero of="$file" bs=262144 count=1 status=none
    as_owner "$PGBIN/pg_resetwal" -D "$MR_SCRATCH/other/data" -x "$1" "${@:2}" >/dev/null
}

# The remedy, in each database that can be reached; autovacuum does the others.
freeze()
{
    local name
    while read -r name; do
        psql -X -q -d "$name" -c 'vacuum (freeze)'
    done < <(sql 'select datname from pg_database where datallowconn')
    check_is 'transaction ids' 'ok: *'
}

@test "transaction ids that run out, and WAL that a slot keeps" {
    local wal
    use_server other
    sql "select pg_create_physical_replication_slot('far', true)" >/dev/null
    wal=$(sql "select pg_walfile_name(pg_current_wal_lsn() + (2::bigint << 30))")
    "$MR_ROOT/tools/pgserver" stop "$MR_SCRATCH/other"
    is_said "$(alone 'transaction ids')" 'ok: *'
    jump_to 500000000 -l "$wal"
    is_said "$(alone 'transaction ids')" 'warning: database *: the oldest unfrozen is 49* back, autovacuum freezes from 200000000 on -> End what holds *vacuum (freeze)'
    seen 'transaction ids' warning
    is_said "$(alone 'replication slots')" "warning: 1, WAL kept: 20* MB by 'far'; inactive: 'far' -> *"
    jump_to 1600000000 -l "${wal:0:8}00000004${wal:16}"
    is_said "$(alone 'transaction ids')" 'critical: database *: the oldest unfrozen is 159* back, *'
    seen 'transaction ids' critical
    "$MR_ROOT/tools/pgserver" start "$MR_SCRATCH/other"
    says 'replication slots' critical "1, WAL kept: 1? GB by 'far'; inactive: 'far'" "select pg_drop_replication_slot('far') -- *"
    follow 'replication slots'
    well 'replication slots' none
    wait_until 60 freeze
    well 'transaction ids'
}
