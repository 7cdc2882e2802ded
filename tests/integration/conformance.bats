#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# One interface, two backends: the scripts of tests/conformance give the same transcript on PostgreSQL and on Redis.

# shellcheck disable=SC2154  # redis_port is set by redis_new_tcp
bats_require_minimum_version 1.5.0
load ../lib/server
load ../lib/redis

setup()
{
    scripts=$MR_ROOT/tests/conformance
    conform=$MR_BUILD/tests/conformance/conform
    cd "$BATS_TEST_TMPDIR" || return
}

teardown()
{
    redis_stop
}

# prints SCRIPT EXPECTED: the transcript of a script, with the backend in MILLRACE_DSN.
prints()
{
    "$conform" <"$scripts/$1" >actual || return
    diff -u "$scripts/$2" actual
}

on_redis()
{
    redis_new
    MILLRACE_DSN=$(redis_address)
    export MILLRACE_DSN
}

@test "the toolbox on PostgreSQL" {
    fresh_db
    prints toolbox.script toolbox.expected
    drop_db
}

@test "the toolbox on Redis" {
    on_redis
    prints toolbox.script toolbox.expected
}

@test "the toolbox on a Redis whose keys are laid out for a cluster" {
    on_cluster
    prints toolbox.script toolbox.expected
}

# A cluster refuses a call whose keys lie in different slots, also where one node has all of them.
on_cluster()
{
    redis_new_tcp --cluster-enabled yes
    export MILLRACE_DSN=redis://127.0.0.1:$redis_port
    redis cluster addslotsrange 0 16383
    wait_until 20 cluster_is_up
}

cluster_is_up()
{
    redis cluster info | grep -q '^cluster_state:ok'
}

@test "jobs on PostgreSQL" {
    fresh_db
    prints queue.script queue.expected
    drop_db
}

@test "jobs on Redis" {
    on_redis
    prints queue.script queue.expected
}

@test "jobs on a Redis whose keys are laid out for a cluster" {
    on_cluster
    prints queue.script queue.expected
}

@test "the differences of jobs, on PostgreSQL" {
    fresh_db
    prints queue_differences.script queue_differences.postgresql
    drop_db
}

@test "the differences of jobs, on Redis" {
    on_redis
    prints queue_differences.script queue_differences.redis
}

@test "the differences, on PostgreSQL" {
    fresh_db
    prints differences.script differences.postgresql
    drop_db
}

@test "the differences, on Redis" {
    on_redis
    prints differences.script differences.redis
}

@test "the suite is as large as it says" {
    local cases
    cases=$(cat "$scripts"/*.script | grep -c '^case ')
    echo "$cases cases" >&3
    [ "$cases" -ge 140 ]
    # each word of the program is used by a script
    grep -hoE '^    \{"[a-z_]+"' "$scripts"/*_words.c | tr -d ' {"' | grep -vxE 'shell|lock_in_turn' | while read -r word; do
        grep -qE "^$word( |\$)" "$scripts"/*.script || { echo "no script uses $word"; exit 1; }
    done
}
