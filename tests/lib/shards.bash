# SPDX-License-Identifier: PostgreSQL
# shellcheck shell=bash
#
# Sets of shards for bats files, after lib/server:
#
#   new_databases N       N databases with the schema on the current server, in no set yet: ${databases[@]}, ${addresses[@]}
#   new_shards N          the same as a set; MILLRACE_DSN names them all
#   use_shards INDEX...   MILLRACE_DSN names these, in this order
#   on INDEX SQL          runs SQL in one of them
#   drop_databases        for teardown()
#
#   start_servers N       N servers of this file's own, a shard on each: ${servers[@]}, ${addresses[@]}, MILLRACE_DSN
#   server VERB INDEX     tools/pgserver start, stop, crash, restart on one of them
#   remove_servers        for teardown_file()
#
#   three_shards          for setup_file(): three servers and one set for all tests of the file
#   three_shards_again    for setup(): all of them run, and MILLRACE_DSN names them
#   three_shards_end      for teardown_file()

address_of()
{
    printf 'host=%s port=%s user=%s dbname=%s' "$PGHOST" "$PGPORT" "$PGUSER" "$1"
}

# shellcheck disable=SC2034 # for the tests
new_databases()
{
    local i name
    databases=()
    addresses=()
    for ((i = 0; i < $1; i++)); do
        name=s_${BASHPID}_$RANDOM$RANDOM
        psql -X -q -v ON_ERROR_STOP=1 -d postgres -c "create database $name template millrace_template" || return
        databases+=("$name")
        addresses+=("$(address_of "$name")")
    done
}

use_shards()
{
    local list='' i
    for i in "$@"; do
        list+="${list:+ ; }${addresses[i]}"
    done
    export MILLRACE_DSN=$list
}

new_shards()
{
    local all=() i
    new_databases "$1" || return
    for ((i = 0; i < $1; i++)); do all+=("$i"); done
    use_shards "${all[@]}"
    "$MR_BIN" shard add >/dev/null
}

on()
{
    psql -X -q -A -t -v ON_ERROR_STOP=1 -d "${addresses[$1]}" -c "$2"
}

# The number of all shards' answers to a question, added up.
sum_on()
{
    local i total=0
    for ((i = 0; i < ${#addresses[@]}; i++)); do
        total=$((total + $(on "$i" "$1")))
    done
    echo "$total"
}

drop_databases()
{
    local name
    for name in "${databases[@]}"; do
        PGOPTIONS='-c client_min_messages=warning' psql -X -q -d postgres -c "drop database if exists $name with (force)"
    done
    databases=()
    unset MILLRACE_DSN
}

# The socket stays where it is over a restart, and so does the address.
start_servers()
{
    local i
    servers=()
    addresses=()
    for ((i = 0; i < $1; i++)); do
        servers+=("$MR_SCRATCH/shard_$i")
        "$MR_ROOT/tools/pgserver" start "${servers[i]}" -o fsync=off -o shared_buffers=16MB -o max_connections=40 || return
        eval "$("$MR_ROOT/tools/pgserver" env "${servers[i]}")"
        addresses+=("$(address_of postgres)")
        MILLRACE_DSN="${addresses[i]}" "$MR_BIN" migrate >/dev/null || return
    done
    export PGHOST=$MR_PGHOST PGPORT=$MR_PGPORT PGUSER=$MR_PGUSER
}

server()
{
    "$MR_ROOT/tools/pgserver" "$1" "${servers[$2]}"
}

remove_servers()
{
    local dir
    for dir in "${servers[@]}"; do
        "$MR_ROOT/tools/pgserver" remove "$dir"
    done
}

# ---- one set for all tests of a file ----

three_shards()
{
    start_servers 3
    declare -p servers addresses | sed 's/^declare -a //' >"$BATS_FILE_TMPDIR/servers" # not local where it is read
    use_shards 0 1 2
    "$MR_BIN" shard add >/dev/null
}

# shellcheck disable=SC1091
three_shards_end()
{
    source "$BATS_FILE_TMPDIR/servers"
    remove_servers
}

# A test before may have failed.
# shellcheck disable=SC1091
three_shards_again()
{
    local i
    source "$BATS_FILE_TMPDIR/servers"
    for i in 0 1 2; do
        pg_isready -q -d "${addresses[i]}" || server restart "$i" >/dev/null
    done
    use_shards 0 1 2
}
