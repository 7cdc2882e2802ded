#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# A fair queue with producers and claimers side by side, transactions that are rolled back, tenants that come all the time, and the setting switched
# off and on: every job is served once, as a job of its own tenant.

bats_require_minimum_version 1.5.0
load ../lib/server

setup()
{
    fresh_db
    psql -X -q -v ON_ERROR_STOP=1 -f "$MR_ROOT/tests/stress/fair/app.sql"
    sql "select millrace.set_queue('fair', '{\"fair\": true}')"
}

teardown() { drop_db; }

# pgbench for $2 seconds with $3 clients, in the background.
load_with()
{
    pgbench -n -T "$2" -c "$3" -f "$MR_ROOT/tests/stress/fair/$1.pgbench" >"$MR_SCRATCH/$1.log" 2>&1 3>&- &
    pids+=($!)
}

has_served()
{
    [ "$(sql 'select count(*) from app.got')" -ge "$1" ]
}

# Until so many jobs more were served.
served_more()
{
    wait_until 60 has_served $(($(sql 'select count(*) from app.got') + $1))
}

drained()
{
    pgbench -n -T 2 -c 4 -f "$MR_ROOT/tests/stress/fair/work.pgbench" >"$MR_SCRATCH/rest.log" 2>&1
    queue_is_done fair
}

@test "every job is served once, as a job of its tenant" {
    local pids=() fair
    load_with produce 20 4
    load_with work 25 4
    load_with upkeep 25 1
    for fair in false true false true; do
        served_more 100
        sql "select millrace.set_queue('fair', '{\"fair\": $fair}')"
    done
    wait "${pids[@]}"
    run ! grep -i 'error\|aborted' "$MR_SCRATCH"/{produce,work,upkeep}.log
    wait_until 120 drained
    [ "$(sql 'select count(*) > 500 and count(distinct tenant) > 50 from app.sent')" = t ]
    [ "$(sql 'select (select count(*) from app.sent) = count(*) and count(*) = count(distinct id) from app.got')" = t ]
    [ "$(sql 'select count(*) from (select id, tenant from app.sent except all select id, tenant from app.got) d')" -eq 0 ]
    [ "$(sql "select sum(available) + sum(running) from millrace.tenant_stats('fair')")" -eq 0 ]
}
