#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# Everything at once on one server: the invariants 1-5 and 9 under load. The driver keeps the accounts, see stress.h.

load ../lib/server

setup() { fresh_db; }
teardown() { drop_db; }

stress()
{
    run "$MR_BUILD/tests/stress/stress" --dsn "$MILLRACE_DSN" "$@"
    echo "$output"
    [ "$status" -eq 0 ]
}

# figure NAME: a number of the summary
figure()
{
    sed -n "s/.*\"$1\": \([0-9]*\).*/\1/p" <<<"$output"
}

@test "half a million jobs: each delivered, finished once, through rotations, truncations and a dump" {
    stress --jobs 500000 --seconds 1200 --retention-s 4 --lease-ms 700 --writers 4 --claimers 5 --bulk 250 --backlog 30000 \
        --dump "pg_dump -d '$MILLRACE_DSN' -f $MR_SCRATCH/dump.sql"
    [ "$(figure jobs)" -ge 500000 ]
    [ "$(figure rotations)" -ge 20 ]
    [ "$(figure truncations)" -ge 10 ]
    [ "$(figure mr001)" -gt 0 ]
    [ "$(figure ordered)" -gt 0 ]
    [ -s "$MR_SCRATCH/dump.sql" ]
}

@test "leases that outlive the log's retention: parked, never lost" {
    stress --jobs 15000 --seconds 300 --retention-s 1 --lease-ms 8000 --writers 2 --long-writers 0 --claimers 3 --patient 2 --bulk 20 \
        --backlog 2000 --quiet-checks 1
    [ "$(figure parked)" -ge 2 ]
    [ "$(figure truncations)" -ge 5 ]
}

@test "single jobs from many sessions" {
    stress --jobs 4000 --seconds 300 --retention-s 3 --lease-ms 300 --writers 12 --claimers 12 --bulk 1 --quiet-checks 1
}
