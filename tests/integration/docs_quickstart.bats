#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# docs/quickstart.md and the quick start of the README do what they say.

bats_require_minimum_version 1.5.0
load ../lib/server

setup()
{
    place=$MR_SCRATCH/$BATS_TEST_NUMBER
    mkdir "$place"
    cd "$place" || return
    unset MILLRACE_DSN PGHOST PGPORT PGUSER PGPASSWORD PGDATABASE
}

teardown()
{
    [ ! -s "$place/mill/pid" ] || kill "$(head -n 1 "$place/mill/pid")"
    wait_until 60 test ! -s "$place/mill/pid"
    rm -rf "$place"
}

# The blocks marked as sh, of the page $1 from the heading $2 on.
blocks()
{
    awk -v heading="$2" '
        $0 == heading { on = 1 }
        /^```/ { shown = on && $0 == "```sh"; next }
        shown' "$MR_ROOT/$1"
}

# To a file: `up` stays behind with the script's output, and `run` would wait for its end.
do_script()
{
    PATH=${MR_BIN%/*}:$PATH bash -euo pipefail script >out 2>&1 3>&- || { cat out >&2; return 1; }
}

has_lines()
{
    [ "$(wc -l <"$1")" -ge "$2" ]
}

@test "the quick start, up to its end" {
    blocks docs/quickstart.md '## A worker of your own' | sed '/^kill /d' >script
    grep -q 'millrace up' script
    do_script
    grep -q '^job 1: greet' out
    wait_until 30 has_lines greetings 3
    grep -qx 'hello eve (job 65)' greetings
    blocks docs/quickstart.md '## A worker of your own' | grep '^kill ' >end
    bash -eu end
}

@test "the example of the README" {
    blocks README.md '## Quick start' | sed '/^make /d' | sed 's|build/millrace|millrace|g' >script
    grep -q 'millrace up' script
    [ "$(grep -c . script)" -le 10 ]
    do_script
    grep -q 'QUEUE .* AVAIL' out
    grep -q '^hello ' out
}
