#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# `millrace dead`: list, show, replay, purge.

bats_require_minimum_version 1.5.0
load ../lib/server

setup()
{
    fresh_db
}

teardown()
{
    drop_db
}

json()
{
    jq -rc "$1" <<<"$output"
}

# A dead letter of queue $1 and kind $2 with the error $3; prints its id.
dead()
{
    local id
    id=$("$MR_BIN" enqueue "$2" '{"n": 1}' --queue "$1")
    sql "select millrace.fail(c.lease, c.id, '$3', retry => false) from millrace.claim('$1', 'w') c" >/dev/null
    printf '%s\n' "$id"
}

@test "list: the newest first, by queue, kind and error" {
    local a b c d
    a=$(dead mail letter 'no route to host')
    b=$(dead mail card 'time out')
    c=$(dead mail letter $'two\nlines')
    d=$(dead sms text 'time out')
    run "$MR_BIN" dead list
    [ "$status" -eq 0 ]
    [ "$(awk 'NR > 1 { print $1 }' <<<"$output" | xargs)" = "$d $c $b $a" ]
    has 'two lines'
    run "$MR_BIN" dead list mail --json
    [ "$(json '[.dead_letters[].id]')" = "[$c,$b,$a]" ]
    run "$MR_BIN" dead list mail --kind letter --json
    [ "$(json '[.dead_letters[].id]')" = "[$c,$a]" ]
    run "$MR_BIN" dead list --error-like 'time%' --json
    [ "$(json '[.dead_letters[].id]')" = "[$d,$b]" ]
    run "$MR_BIN" dead list --limit 1 --json
    [ "$(json '[.dead_letters[].id]')" = "[$d]" ]
    run "$MR_BIN" dead list --limit 0 --json
    [ "$(json '.dead_letters | length')" = 4 ]
}

@test "show one, with its history" {
    local id
    id=$(dead mail letter 'no route to host')
    run "$MR_BIN" dead show "$id"
    [ "$status" -eq 0 ]
    has 'error         no route to host'
    has 'max_attempts  3'
    has 'attempt 1 failed: no route to host'
    run "$MR_BIN" dead show "$id" --json
    [ "$(json '.history[0].error')" = 'no route to host' ]
    [ "$(json .args.n)" = 1 ]
    [ "$(json '.died_at[10:11]')" = T ]
    run "$MR_BIN" dead show 999999
    [ "$status" -eq 1 ]
    [ "${lines[0]}" = 'millrace: there is no dead letter 999999' ]
}

@test "replay one" {
    local id
    id=$(dead mail letter 'no route')
    run "$MR_BIN" dead replay "$id"
    [ "$output" = "replayed: job $id" ]
    [ "$(sql "select status from millrace.jobs where id = $id and status = 'available'")" = available ]
    run "$MR_BIN" dead replay "$id"
    [ "$status" -eq 1 ]
    has "there is no dead letter $id"
    id=$(dead mail2 letter 'no route')
    run "$MR_BIN" dead replay "$id" --json
    [ "$output" = "{\"replayed\":1,\"id\":$id}" ]
}

@test "replay many: by queue, kind, error, number" {
    dead mail letter 'time out'
    dead mail letter 'no route'
    dead mail card 'time out'
    dead mail card 'time out'
    run "$MR_BIN" dead replay --queue mail --kind letter --error-like 'time%'
    [ "$output" = 'replayed: 1 jobs' ]
    run "$MR_BIN" dead replay --queue mail --max-jobs 2 --json
    [ "$output" = '{"replayed":2}' ]
    [ "$(sql "select millrace.depth('mail')")" = 3 ]
    run "$MR_BIN" dead replay --queue mail
    [ "$output" = 'replayed: 1 jobs' ]
}

@test "purge needs consent where it cannot ask" {
    dead mail letter 'no route'
    run "$MR_BIN" dead purge mail </dev/null
    [ "$status" -eq 2 ]
    has 'cannot ask without a terminal'
    has 'hint: Add --yes'
    [ "$(sql 'select count(*) from millrace.dead_letters')" = 1 ]
    run "$MR_BIN" dead purge mail --older-than 7d --yes
    [ "$output" = 'removed: 0 dead letters' ]
    run "$MR_BIN" dead purge mail --older-than 1ms --yes --json
    [ "$output" = '{"purged":1}' ]
    [ "$(sql 'select count(*) from millrace.dead_letters')" = 0 ]
}

# script(1) gives the command a terminal.
on_terminal()
{
    local answer=$1
    shift
    printf '%s\n' "$answer" | script --quiet --return --echo never --command "$*" /dev/null
}

@test "purge asks on a terminal" {
    need_terminal
    dead mail letter 'no route'
    dead mail letter 'no route'
    run on_terminal n "$MR_BIN" dead purge mail
    [ "$status" -eq 1 ]
    has 'Remove 2 dead letters of queue mail for good? [y/N]'
    has 'not confirmed, nothing was removed'
    [ "$(sql 'select count(*) from millrace.dead_letters')" = 2 ]
    run on_terminal y "$MR_BIN" dead purge mail
    [ "$status" -eq 0 ]
    has 'removed: 2 dead letters'
    [ "$(sql 'select count(*) from millrace.dead_letters')" = 0 ]
}
