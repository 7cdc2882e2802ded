#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# The tools that the other tests stand on.
load ../lib/server

# bats would take a test inside a here-document for one of this file.
at=@
pgserver=$BATS_TEST_DIRNAME/../../tools/pgserver

# Runs tests/run of a copy of the house that holds nothing but what the test put there.
trial_house()
{
    house=$BATS_TEST_TMPDIR/house
    mkdir -p "$house/tests/sql" "$house/tests/integration" "$house/build"
    cp -r "$MR_ROOT/tools" "$house/tools"
    cp -r "$MR_ROOT/tests/run" "$MR_ROOT/tests/lib" "$house/tests/"
    printf '#!/bin/sh\nexit 0\n' >"$house/build/millrace"
    chmod +x "$house/build/millrace"
}

run_trial()
{
    run env MR_BUILD=build MR_JOBS=2 "$house/tests/run" "$@"
}

last_line()
{
    [ "${lines[-1]}" = "$1" ] || { printf '%s\n' "$output"; return 1; }
}

@test "a private server listens on nothing but its socket" {
    private_server quiet
    [ "$(sql 'show listen_addresses')" = '' ]
    [ "$(stat -c %a "$PGHOST")" = 700 ]
    remove_private_server
    [ ! -e "$MR_SCRATCH/quiet" ]
}

@test "a private server on loopback wants its password" {
    private_server loop --listen
    [ "$(psql -X -A -t -h 127.0.0.1 -c 'select 1')" = 1 ]
    run env PGPASSWORD=wrong psql -X -h 127.0.0.1 -c 'select 1'
    [ "$status" -ne 0 ]
    remove_private_server
}

@test "what was committed is there after a crash" {
    private_server crash -o fsync=on -o synchronous_commit=on
    sql 'create table kept as select 1 as one'
    "$pgserver" crash "$MR_SERVER"
    run sql 'select one from kept'
    [ "$status" -ne 0 ]
    "$pgserver" start "$MR_SERVER"
    [ "$(sql 'select one from kept')" = 1 ]
    remove_private_server
}

@test "a private server leaves alone a process that has its old pid" {
    private_server stale
    "$pgserver" stop "$MR_SERVER"
    sleep 60 3>&- &
    bystander=$!
    printf '%s\n' "$bystander" >"$MR_SERVER/data/postmaster.pid"
    "$pgserver" stop "$MR_SERVER"
    run "$pgserver" crash "$MR_SERVER"
    [ "$status" -eq 1 ]
    kill -0 "$bystander"
    kill "$bystander"
    remove_private_server
}

@test "pgserver refuses a directory that holds something else" {
    mkdir "$MR_SCRATCH/full"
    touch "$MR_SCRATCH/full/mine"
    run "$pgserver" start "$MR_SCRATCH/full"
    [ "$status" -eq 1 ]
    "$pgserver" remove "$MR_SCRATCH/full"
    [ -e "$MR_SCRATCH/full/mine" ]
}

@test "the runner counts passed, failed and skipped" {
    trial_house
    cat >"$house/tests/sql/some.sql" <<'SQL'
select plan(3);
select ok(true, 'good');
select skip('a reason', 1);
select ok(false, 'bad');
SQL
    run_trial
    [ "$status" -eq 1 ]
    [[ $output == *'sql/some: test 2: a reason'* ]]
    last_line '1 passed, 1 failed, 1 skipped'
}

@test "the runner takes an error and a missing test for failures" {
    trial_house
    printf "select plan(1);\nselect ok(true);\nselect 1/0;\n" >"$house/tests/sql/error.sql"
    printf "select plan(2);\nselect ok(true);\n" >"$house/tests/sql/short.sql"
    run_trial sql
    [ "$status" -eq 1 ]
    last_line '2 passed, 2 failed, 0 skipped'
}

@test "the runner fails when nothing ran" {
    trial_house
    run_trial
    [ "$status" -eq 1 ]
    last_line '0 passed, 0 failed, 0 skipped'
}

@test "the runner says what to do when there is no program" {
    trial_house
    rm "$house/build/millrace"
    run_trial
    [ "$status" -eq 1 ]
    [[ $output == *'make build'* ]]
}

@test "the runner starts the longest first" {
    local name
    trial_house
    for name in a b c d; do
        printf "select plan(1);\nselect ok(true);\n" >"$house/tests/sql/$name.sql"
    done
    printf '# a word\nsql/c\nsql/none\nsql/b\n' >"$house/tests/lib/longest"
    run env MR_BUILD=build MR_JOBS=1 "$house/tests/run" sql
    [ "$status" -eq 0 ]
    [ "$(awk '$1 == "ok" { print $2 }' <<<"$output" | tr '\n' ' ')" = 'sql/c sql/b sql/a sql/d ' ]
    last_line '4 passed, 0 failed, 0 skipped'
}

@test "the longest are there" {
    local label
    while read -r label; do
        compgen -G "$MR_ROOT/tests/${label%/*}/${label#*/}.*" >/dev/null || compgen -G "$MR_ROOT/tests/${label%/*}/specs/${label#*/}.spec" >/dev/null || { echo "$label"; return 1; }
    done < <(grep -v '^#' "$MR_ROOT/tests/lib/longest")
}

@test "the runner is not disturbed by the caller's environment" {
    trial_house
    printf "select plan(1);\nselect ok(true);\n" >"$house/tests/sql/one.sql"
    run env -u HOME MR_BUILD=build PGHOST=/nowhere PGDATABASE=nothing PGOPTIONS=-cnonsense=1 PGSERVICE=none \
        "$house/tests/run" sql
    [ "$status" -eq 0 ]
    last_line '1 passed, 0 failed, 0 skipped'
}

@test "the runner ends what a test has left running" {
    trial_house
    cat >"$house/tests/integration/leave.bats" <<BATS
${at}test "leaves a process" { sleep 600 3>&- & echo \$! >"$BATS_TEST_TMPDIR/pid"; }
BATS
    run_trial integration
    [ "$status" -eq 0 ]
    [[ $output == *'left running'*'sleep 600'* ]]
    is_gone "$(cat "$BATS_TEST_TMPDIR/pid")"
}

@test "an interrupted runner stops its servers and its tests" {
    trial_house
    cat >"$house/tests/integration/long.bats" <<BATS
load ../lib/server
${at}test "long" {
    private_server own
    head -n 1 "\$MR_SERVER/data/postmaster.pid" >>"$BATS_TEST_TMPDIR/pids"
    echo "\$BASHPID" >>"$BATS_TEST_TMPDIR/pids"
    echo ready >"$BATS_TEST_TMPDIR/ready"
    sleep 600
}
BATS
    MR_BUILD=build "$house/tests/run" integration >/dev/null 2>&1 3>&- &
    runner=$!
    wait_until 60 test -s "$BATS_TEST_TMPDIR/ready"
    kill -TERM "$runner"
    wait "$runner" || status=$?
    [ "$status" -eq 143 ]
    while read -r pid; do
        is_gone "$pid"
    done <"$BATS_TEST_TMPDIR/pids"
}

@test "deps names the packages of a set and refuses an unknown one" {
    run "$MR_ROOT/tools/deps" --list build test
    [ "$status" -eq 0 ]
    [[ $output == *meson* && $output == *pgtap* && $output == *python3-psycopg2* ]]
    run "$MR_ROOT/tools/deps" nonsense
    [ "$status" -eq 2 ]
}

# `make build` has no need of a server; a run of an example has, and of what else its script calls.
@test "an example installs what its run needs" {
    local makefile example sets program
    for makefile in "$MR_ROOT"/examples/*/Makefile; do
        example=${makefile%/Makefile}
        sets=$(env -u MAKEFLAGS -u MAKELEVEL make -n -C "$example" run | sed -n 's,^\.\./\.\./tools/deps ,,p')
        [[ " $sets " == *' run '* || " $sets " == *' test '* ]] || { echo "$example: no server by: $sets"; return 1; }
        for program in redis-server curl jq; do
            # shellcheck disable=SC2086 # one set or several
            ! grep -qE "(^|[^.\"/-])\b$program " "$example/run" || "$MR_ROOT/tools/deps" --list $sets | grep -x "$program" || { echo "$example: no $program by: $sets"; return 1; }
        done
    done
}

# An npm that leaves a mark for each call, and ends with a status.
fake_npm()
{
    mkdir -p "$BATS_TEST_TMPDIR/bin"
    printf '#!/bin/sh\necho called >>"%s"\necho "npm error no way to the registry" >&2\nexit %d\n' \
        "$BATS_TEST_TMPDIR/calls" "$1" >"$BATS_TEST_TMPDIR/bin/npm"
    chmod +x "$BATS_TEST_TMPDIR/bin/npm"
}

@test "npm's packages are installed once, and what cannot be had is named and no error" {
    local npm=(env -u MR_SKIP_DEPS PATH="$BATS_TEST_TMPDIR/bin:$PATH" "$MR_ROOT/tools/npm" "$BATS_TEST_TMPDIR/built")
    fake_npm 1
    run "${npm[@]}"
    [ "$status" -eq 0 ]
    [ "$(grep -c 'not installed: npm error no way to the registry' <<<"$output")" -eq 2 ]
    fake_npm 0
    run "${npm[@]}"
    [ "$status" -eq 0 ]
    [ -z "$output" ]
    "${npm[@]}"
    # two places, each failed once and installed once
    [ "$(wc -l <"$BATS_TEST_TMPDIR/calls")" -eq 4 ]
    # A lock file that has changed is another installation.
    echo >>"$BATS_TEST_TMPDIR/built/examples/transactional/package-lock.json"
    "${npm[@]}"
    [ "$(wc -l <"$BATS_TEST_TMPDIR/calls")" -eq 5 ]
}
