#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# The tests of the library under valgrind: no invalid access, no use of what was never set, no
# leak.

bats_require_minimum_version 1.5.0
load ../lib/server

setup_file()
{
    fresh_db
    export DRIVER=$MR_BUILD/tests/integration/library/driver
    export MR_TEST_BARE_DSN="host=$PGHOST port=$PGPORT user=$PGUSER dbname=postgres"
}

teardown_file()
{
    drop_db
}

setup()
{
    ! ldd "$DRIVER" | grep -q libasan || skip 'a build with sanitizers, which valgrind cannot run: run it without SANITIZE'
    command -v valgrind >/dev/null || skip 'valgrind is not installed: tools/deps test'
}

watched()
{
    valgrind --quiet --error-exitcode=99 --leak-check=full --show-leak-kinds=definite,indirect,possible \
        --errors-for-leak-kinds=definite,indirect,possible --fair-sched=yes "$@"
}

# All but those that want a server of their own, or do the same thing very often.
cases()
{
    "$DRIVER" --list | grep -vxE 'wrong_password|server_restarts|waits_for_the_server|worker_health|has_a_limit|huge'
}

@test "valgrind tells a bad program from a good one" {
    run ! watched "$(command -v bash)" -c 'exit 3'
    printf '#include <stdlib.h>\nint main(void) { char *p = malloc(1); return p[1] + (malloc(2) == NULL); }\n' >"$BATS_TEST_TMPDIR/bad.c"
    cc -g -O0 -o "$BATS_TEST_TMPDIR/bad" "$BATS_TEST_TMPDIR/bad.c"
    run -99 watched "$BATS_TEST_TMPDIR/bad"
}

@test "calls and replies" {
    mapfile -t names < <(cases | grep -v worker)
    [ ${#names[@]} -gt 25 ]
    watched "$DRIVER" "${names[@]}"
}

@test "workers" {
    mapfile -t names < <(cases | grep worker)
    [ ${#names[@]} -gt 10 ]
    watched "$DRIVER" "${names[@]}"
}

@test "the parts of the library" {
    local name
    for name in base64 batch buf call json outcome pool sized str; do
        watched "$MR_BUILD/tests/unit/test_$name"
    done
}
