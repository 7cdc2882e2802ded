# SPDX-License-Identifier: PostgreSQL
# shellcheck shell=bash
#
# Databases and servers for bats files:
#
#   load ../lib/server
#   setup_file() { fresh_db; }
#   teardown_file() { drop_db; }
#
# tests/run provides MR_ROOT, MR_BIN (the program), MR_SCRATCH (a directory that is deleted
# when the file is done) and a running server in the PG* variables. Servers and processes that
# a test leaves behind are ended by tests/run.

# Points PGDATABASE and MILLRACE_DSN to the database $1 of the current server.
use_db()
{
    export PGDATABASE=$1
    export MILLRACE_DSN="host=$PGHOST port=$PGPORT user=$PGUSER dbname=$PGDATABASE"
}

# A database of its own with the schema in it. In setup() for one test, in setup_file() for
# all of a file.
fresh_db()
{
    local name=t_${BASHPID}_$RANDOM$RANDOM
    psql -X -q -v ON_ERROR_STOP=1 -d postgres -c "create database $name template millrace_template" || return
    use_db "$name"
}

# The same without the schema.
empty_db()
{
    local name=t_${BASHPID}_$RANDOM$RANDOM
    psql -X -q -v ON_ERROR_STOP=1 -d postgres -c "create database $name" || return
    use_db "$name"
}

drop_db()
{
    PGOPTIONS='-c client_min_messages=warning' \
        psql -X -q -d postgres -c "drop database if exists $PGDATABASE with (force)"
    unset PGDATABASE MILLRACE_DSN
}

# Runs SQL in the current database, prints bare values, fails on an error.
sql()
{
    psql -X -q -A -t -v ON_ERROR_STOP=1 -c "$1"
}

# Whether nothing of a queue waits, runs or is to be retried: by two looks, because one reads what is delayed before what runs, and a job that is rescued in
# between is in neither.
queue_is_done()
{
    for _ in 1 2; do
        [ "$(sql "select available + running + scheduled + retrying from millrace.stats('$1')")" -eq 0 ] || return 1
    done
}

# Starts a server for this test file alone, for tests that crash it or need settings of their
# own, and points the PG* variables to it. $1 is a short name, the rest goes to pgserver. Has
# the database "postgres" only; put the schema in with "$MR_BIN" migrate. fsync is off unless the
# test says otherwise: what a process has written outlives the process.
private_server()
{
    export MR_SERVER=$MR_SCRATCH/$1
    shift
    "$MR_ROOT/tools/pgserver" start "$MR_SERVER" -o fsync=off "$@" || return
    eval "$("$MR_ROOT/tools/pgserver" env "$MR_SERVER")"
    use_db postgres
}

# Ends the server of private_server and returns to the shared one.
remove_private_server()
{
    "$MR_ROOT/tools/pgserver" remove "$MR_SERVER"
    export PGHOST=$MR_PGHOST PGPORT=$MR_PGPORT PGUSER=$MR_PGUSER
    unset MR_SERVER PGPASSWORD
}

# Waits until a command succeeds: wait_until SECONDS COMMAND... Its output is thrown away.
wait_until()
{
    local deadline=$((SECONDS + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        if [ $SECONDS -ge $deadline ]; then
            echo "gave up waiting for: $*" >&2
            return 1
        fi
        sleep 0.05
    done
}

# A snapshot of the current database that a session in the background holds; its psql is $holder, which teardown() is to kill.
# shellcheck disable=SC2034 # holder is for the test
hold_snapshot()
{
    psql -X -q -c 'begin isolation level repeatable read' -c 'select count(*) from pg_class' -c 'select pg_sleep(3600)' >/dev/null 2>&1 3>&- &
    holder=$!
    wait_until 20 snapshot_held
}

snapshot_held()
{
    [ "$(sql "select count(*) from pg_stat_activity where query = 'select pg_sleep(3600)' and backend_xmin is not null and datname = current_database()")" -gt 0 ]
}

# Whether a text is in the $output of `run`, or not.
# shellcheck disable=SC2154 # run sets output
has()
{
    if [[ $output != *"$1"* ]]; then
        printf 'expected: %s\noutput: %s\n' "$1" "$output" >&2
        return 1
    fi
}

# shellcheck disable=SC2154
has_not()
{
    if [[ $output == *"$1"* ]]; then
        printf 'not expected: %s\noutput: %s\n' "$1" "$output" >&2
        return 1
    fi
}

# Prints figures behind the test's name.
show()
{
    echo "# $*" >&3
}

# Sets python to an interpreter that has psycopg2. Debian's module is for Debian's interpreter, which need not be the first one.
need_psycopg2()
{
    for python in python3 /usr/bin/python3; do
        ! "$python" -c 'import psycopg2' 2>/dev/null || return 0
    done
    skip 'psycopg2 is not installed: tools/deps test'
}

# Whether a process has ended. A zombie counts as gone: it has no command line.
is_gone()
{
    [ -z "$({ tr -d '\0' <"/proc/$1/cmdline"; } 2>/dev/null)" ]
}

# Skips a test that needs a pseudo-terminal where none can be had, as in a bare chroot.
need_terminal()
{
    script --quiet --return --command true /dev/null >/dev/null 2>&1 || skip 'no pseudo-terminals here: mount /dev/pts'
}
