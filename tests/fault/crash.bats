#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# Invariant 8: sessions are terminated and the server is killed between any two steps, fifty times, while the stress driver
# writes, claims, finishes and maintains. fsync is on; what a client was told is what it holds the server to.

load ../lib/server

setup()
{
    private_server crash -o fsync=on -o max_connections=60 -o shared_buffers=64MB -o checkpoint_timeout=30s
    "$MR_BIN" migrate >/dev/null
}
teardown() { remove_private_server; }

# Ends some of the driver's sessions in the middle of whatever they do.
terminate_some()
{
    sql "select count(pg_terminate_backend(pid))
           from (select pid from pg_stat_activity where application_name = 'stress' order by random() limit 3) s" >/dev/null
}

crash()
{
    "$MR_ROOT/tools/pgserver" crash "$MR_SERVER"
    "$MR_ROOT/tools/pgserver" restart "$MR_SERVER"
    sql 'select count(*) from millrace.maintain()' >/dev/null
}

jobs_written()
{
    [ "$(sql "select last_value from millrace.pos_seq")" -gt "$1" ]
}

alive()
{
    kill -0 "$driver" 2>/dev/null || { cat "$MR_SCRATCH/driver.log"; return 1; }
}

@test "forty rounds of terminated sessions and ten crashes: nothing lost, nothing finished under a void lease" {
    local round position
    [ "$(sql 'show fsync')" = on ]
    "$MR_BUILD/tests/stress/stress" --dsn "$MILLRACE_DSN application_name=stress" --jobs 1000 --seconds 900 --faults \
        --until "$MR_SCRATCH/enough" --retention-s 3 --lease-ms 2000 --writers 3 --long-writers 1 --claimers 4 --keepers 2 \
        --bulk 20 --backlog 3000 >"$MR_SCRATCH/driver.log" 2>&1 3>&- &
    driver=$!
    wait_until 30 jobs_written 100
    for ((round = 1; round <= 50; round++)); do
        alive
        # Work goes on after the last blow; the next one falls at some moment of it.
        position=$(sql 'select last_value from millrace.pos_seq')
        wait_until 60 jobs_written "$((position + RANDOM % 300))"
        if ((round % 5 == 0)); then
            crash
        else
            terminate_some
        fi
    done
    touch "$MR_SCRATCH/enough"
    wait "$driver" || { cat "$MR_SCRATCH/driver.log"; return 1; }
    cat "$MR_SCRATCH/driver.log"
    grep -q '"reconnects": [1-9]' "$MR_SCRATCH/driver.log"
    [ "$(grep -c 'database system was not properly shut down' "$MR_SERVER/log")" -eq 10 ]
}
