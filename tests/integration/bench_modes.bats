#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# Every mode of `millrace bench` at once, and that the numbers fit each other. Nothing here looks at
# how large a figure is.

bats_require_minimum_version 1.5.0
load ../lib/server
load ../lib/bench

setup_file()
{
    fresh_db
}

teardown_file()
{
    drop_db
}

@test "every mode, beside the textbook" {
    bench --jobs 2000 --batch 100 --seconds 1 --depth 20000 --compare textbook
    holds '[.runs[].mode] | unique == ["depth","drain","enqueue","history","latency","single","snapshot","steady","wal"]'
    # The textbook takes part in all but latency.
    holds '[.runs[] | select(.contender == "textbook") | .mode] | unique | length == 8'
    holds '[.ratios[] | select(.against == "textbook" and .contender == "millrace") | .mode] | unique | length == 8'
    holds 'all(.runs[] | select(.rate and .seconds); (.rate * .seconds / .jobs - 1 | fabs) < 1e-6)'
    holds '[.runs[] | select(.mode == "steady")] | length == 2 and all(.[]; .p50_ms <= .p99_ms and .p99_ms <= .max_ms and .enqueued > 0)'
    holds '.runs[] | select(.mode == "latency") | .jobs > 0 and .p50_ms <= .p99_ms and .p99_ms <= .max_ms and .notify_p50_ms > 0'
    holds 'all(.runs[] | select(.mode == "depth"); .shallow == 10000 and .depth == 20000 and .deep_rate > 0)'
    holds 'all(.runs[] | select(.mode == "wal"); (.wal_enqueue_bytes + .wal_drain_bytes - .wal_bytes | fabs) < 0.01 and .table_bytes > 0)'
    holds 'all(.runs[] | select(.mode == "history"); .claim_us > 0 and .fresh_claim_us > 0 and .empty_claim_us > 0)'
    # Ratios within a mode, of both contenders.
    holds '[.ratios[] | select(.against != "textbook") | [.mode, .against]] | unique
           == [["depth","shallow"],["history","fresh"],["latency","notify"],["snapshot","first fifth"]]'
    # A ratio is made of the runs.
    holds '(.runs | map(select(.mode == "drain")) | map({(.contender): .rate}) | add) as $r
           | .ratios[] | select(.mode == "drain" and .figure == "rate") | .median / ($r.millrace / $r.textbook) - 1 | fabs < 1e-6'
}
