#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# Jobs by way of a Redis Cluster: MOVED to whoever has the queue's slot, a primary that is killed, a slot that moves.

# shellcheck disable=SC2154  # redis_cluster_ports is set by redis_cluster_new
bats_require_minimum_version 1.5.0
load ../lib/server
load ../lib/daemon
load ../lib/redis
load ../lib/relay

setup()
{
    cd "$BATS_TEST_TMPDIR" || return
    fresh_db
    sql "select millrace.set_queue('hog', '{\"transport\": \"redis\"}')" >/dev/null
    redis_cluster_new
}

teardown()
{
    end_daemons
    cluster_stop
    drop_db
}

jobs_key=$(key jobs)

# A node that has not got the slot: the way there is MOVED.
other_node()
{
    local port owner
    owner=$(cluster_owner "$jobs_key")
    for port in "${redis_cluster_ports[@]:0:3}"; do
        [ "$port" = "$owner" ] || { printf 'redis://127.0.0.1:%s\n' "$port"; return; }
    done
}

start_both()
{
    local address
    address=$(other_node)
    printf '#!/bin/sh\necho "$MILLRACE_JOB_ID" >>"%s/ran"\nsleep 0.05\n' "$BATS_TEST_TMPDIR" >handler.sh
    chmod +x handler.sh
    printf 'maintain = "200ms"\nrelay fleet { queue = "hog" redis = "%s" in_flight = 50 }\n' "$address" >fleet.conf
    printf 'worker w { queue = "hog" redis = "%s" run = "./handler.sh" concurrency = 4 batch = 10 }\n' "$address" >w.conf
    daemon fleet serve -c fleet.conf --roles relay,maintain
    daemon w serve -c w.conf --roles work
}

@test "a primary is killed in the middle of a batch: its replica goes on, nothing is lost" {
    enqueue 200 hog
    start_both
    wait_until 60 ran_are 40
    owner=$(cluster_owner "$jobs_key")
    cluster_kill "$owner"
    wait_until 90 jobs_are hog completed 200 || { show_log fleet; show_log w; return 1; }
    ran_again 200 50
    dead_are 0
    [ "$(cluster_owner "$jobs_key")" != "$owner" ]
}

@test "a failover by hand: the old primary sends everybody on, with MOVED" {
    enqueue 200 hog
    start_both
    wait_until 60 ran_are 40
    owner=$(cluster_owner "$jobs_key")
    id=$(cluster "$owner" cluster myid)
    replica=$(cluster "$owner" cluster nodes | awk -v id="$id" '$4 == id { split($2, at, "[:@]"); print at[2] }')
    cluster "$replica" cluster failover >/dev/null
    wait_until 60 jobs_are hog completed 200 || { show_log fleet; show_log w; return 1; }
    ran_again 200 50
    dead_are 0
    [ "$(cluster_owner "$jobs_key")" = "$replica" ]
}

# Moves the keys of the queue's slot while the slot itself stays: every command is sent on with ASK.
@test "a slot that moves: ASK while it does, MOVED when it has" {
    enqueue 100 hog
    start_both
    wait_until 60 ran_are 20
    from=$(cluster_owner "$jobs_key")
    to=$(other_node) to=${to##*:}
    slot=$(cluster "$from" cluster keyslot "$jobs_key")
    from_id=$(cluster "$from" cluster myid)
    to_id=$(cluster "$to" cluster myid)
    cluster "$to" cluster setslot "$slot" importing "$from_id" >/dev/null
    cluster "$from" cluster setslot "$slot" migrating "$to_id" >/dev/null
    wait_until 60 slot_is_empty
    cluster "$to" cluster setslot "$slot" node "$to_id" >/dev/null
    cluster "$from" cluster setslot "$slot" node "$to_id" >/dev/null
    wait_until 60 jobs_are hog completed 100 || { show_log fleet; show_log w; return 1; }
    ran_again 100 50
    dead_are 0
    [ "$(cluster_owner "$jobs_key")" = "$to" ]
}

slot_is_empty()
{
    local key
    while read -r key; do
        [ -z "$key" ] || cluster "$from" migrate 127.0.0.1 "$to" "$key" 0 5000 >/dev/null
    done < <(cluster "$from" cluster getkeysinslot "$slot" 100)
    [ -z "$(cluster "$from" cluster getkeysinslot "$slot" 1)" ]
}
