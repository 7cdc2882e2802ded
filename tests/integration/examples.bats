#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# examples/handlers: the same logic in every language, with the same fate for the same job. A
# language is a row in `languages` below.

bats_require_minimum_version 1.5.0
load ../lib/server

setup_file()
{
    fresh_db
    sql "select millrace.set_retry('charge', max_attempts => 2, base => '300 ms', jitter => 0)"
}

teardown_file()
{
    drop_db
}

setup()
{
    handlers=$MR_ROOT/examples/handlers
    cd "$BATS_TEST_TMPDIR" || return
}

# Options of `millrace work` for a language.
handler_of()
{
    case $1 in
    bash) handler=(--run "$handlers/bash/charge.sh {id} --amount={args.amount}") ;;
    python) handler=(--exec "$handlers/python/charge.py") ;;
    sql) handler=(--sql shop.charge) ;;
    c) handler=(--plugin ./charge.so) ;;
    esac
}

# work_off QUEUE: until nothing is left, not even for later.
work_off()
{
    wait_until 60 worked_off "$1"
}

worked_off()
{
    "$MR_BIN" work "$1" "${handler[@]}" --timeout "$time" --concurrency 2 --until-empty --breaker-failures 0 \
        2>>"$BATS_TEST_TMPDIR/log" || return
    [ "$(sql "select count(*) from millrace.jobs where queue = '$1' and status not in ('completed', 'dead')")" -eq 0 ]
}

enqueue()
{
    sql "select millrace.enqueue('charge', '$1', queue => '$q')"
}

# The outcomes of a job's attempts in order, and what its last error was like.
story_is()
{
    local story
    story=$(sql "select string_agg(a ->> 'outcome', ' '), millrace.job($1) ->> 'status', millrace.job($1) ->> 'error'
                   from jsonb_array_elements(millrace.job($1) -> 'attempts') a")
    # shellcheck disable=SC2053 # a pattern
    [[ $story == $2 ]] || { echo "job $1: $story"; cat "$BATS_TEST_TMPDIR/log"; return 1; }
}

# All of it for one language.
same_fates()
{
    local paid refused slow waited
    q=$1
    time=${2:-2s}
    handler_of "$1"
    paid=$(enqueue '{"amount": 5}')
    refused=$(enqueue '{"amount": -1}')
    slow=$(enqueue "{\"amount\": 5, \"sleep\": ${slow_for:-600}}")
    waited=$(enqueue '{"amount": 7, "wait_once": true}')
    work_off "$q"
    story_is "$paid" 'completed|completed|'
    story_is "$refused" 'failed dead|dead|*amount must be positive, not -1*'
    story_is "$slow" "${slow_story:-failed dead|dead|*timed out*}"
    story_is "$waited" 'requeued completed|completed|'
    [ "$(sql "select millrace.job($paid) -> 'result' ->> 'charged'")" = 5 ]
    [ "$(sql "select millrace.job($waited) ->> 'attempt'")" = 1 ]
    # The second attempt came after the backoff, not at once.
    [ "$(sql "select (a -> 1 ->> 'claimed_at')::timestamptz - (a -> 0 ->> 'finished_at')::timestamptz >= interval '250 ms'
                from (select millrace.job($refused) -> 'attempts' as a) x")" = t ]
}

@test "Bash, a process per job" {
    same_fates bash
}

@test "Python, a child that stays" {
    same_fates python
}

@test "SQL, a function in the transaction that completes" {
    psql -X -q -v ON_ERROR_STOP=1 -f "$handlers/sql/charge.sql"
    same_fates sql
    # one row for each job that completed, none for the others
    [ "$(sql "select string_agg(amount::text, ',' order by job) from shop.charge_log")" = 5,7 ]
}

# As users build it; -Werror because they would see the warnings.
@test "C, a function in a shared object" {
    ${CC:-cc} -shared -fPIC -Wall -Wextra -Werror -I "$MR_ROOT/include" -o charge.so "$handlers/c/charge.c" -ljansson
    # which nobody can stop: it is told of, and ends by itself
    slow_for=4 slow_story='completed|completed|'
    same_fates c
    grep -q plugin.overdue "$BATS_TEST_TMPDIR/log"
}
