# SPDX-License-Identifier: PostgreSQL
# shellcheck shell=bash
#
# A second server, after lib/server: the database of a test is on the shared one, and $to is another, on a server of its own.
#
#   there_up, there_down   in setup_file(), teardown_file()
#   there_db               in setup(): a database with the schema, $to_db there, and $to, its dsn
#   there SQL [DATABASE]   runs SQL in it

there_up()
{
    private_server there
    "$MR_BIN" migrate >/dev/null
    export THERE=$MR_SERVER THERE_HOST=$PGHOST THERE_PORT=$PGPORT THERE_USER=$PGUSER
    export PGHOST=$MR_PGHOST PGPORT=$MR_PGPORT PGUSER=$MR_PGUSER
    unset PGDATABASE MILLRACE_DSN
}

there_down()
{
    "$MR_ROOT/tools/pgserver" remove "$THERE"
}

# shellcheck disable=SC2034 # to is for the test
there_db()
{
    to_db=to_${BASHPID}_$RANDOM
    there "create database $to_db template postgres" template1
    to="host=$THERE_HOST port=$THERE_PORT user=$THERE_USER dbname=$to_db"
}

there()
{
    PGHOST=$THERE_HOST PGPORT=$THERE_PORT PGUSER=$THERE_USER psql -X -q -A -t -v ON_ERROR_STOP=1 -d "${2:-$to_db}" -c "$1"
}
