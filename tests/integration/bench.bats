#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# The benchmarks, scaled down: that they run, and that what does not depend on time holds.
# No test here looks at a time or a rate.

bats_require_minimum_version 1.5.0
load ../lib/server

# One run for all tests: starting the server costs more than the items.
setup_file()
{
    [ -x "${MR_BIN%/*}/bench/cost" ] || skip 'libpq is older than 14, and the benchmarks need its pipelines: install a newer libpq-dev and build again'
    export OUT=$MR_SCRATCH/out ERR=$MR_SCRATCH/err
    local status=0
    "$MR_ROOT/bench/run" --small wal disk plans depth capture >"$OUT" 2>"$ERR" || status=$?
    echo "$status" >"$MR_SCRATCH/status"
}

setup()
{
    cat "$OUT"
    tail -n 5 "$ERR"
}

# The object of a check is there and its bar was kept.
kept()
{
    grep -F "\"name\": \"$1\"" "$OUT" | grep -F '"ok": true' >/dev/null
}

# The object of a check is there, whatever its value.
told()
{
    grep -E "\"name\": \"$1\".*\"bar\": .*\"ok\": (true|false)" "$OUT" >/dev/null
}

# A number in the object of a check: figure NAME KEY
figure()
{
    grep -F "\"name\": \"$1\"" "$OUT" | sed -n "s/.*\"$2\": \([-+.e0-9]*\).*/\1/p"
}

@test "WAL bytes a job stay below their bars, and below the textbook's" {
    kept wal.claim_complete
    kept wal.life
    kept wal.one_by_one
    awk -v ours="$(figure wal.life bytes_a_job)" -v theirs="$(figure wal.life textbook_bytes_a_job)" \
        'BEGIN { exit !(ours > 0 && ours * 2 < theirs) }'
}

@test "a captured table has a job for each row" {
    kept capture.counts
    told capture.rows
    told capture.unique
}

@test "the disk is given back, and what is held bounds what stays" {
    kept disk.returns
    kept disk.holders
    kept disk.archived
    awk -v n="$(figure disk.returns retired)" 'BEGIN { exit !(n > 0) }'
}

@test "no inner statement scans a leaf as a whole" {
    kept plans
    awk -v n="$(figure plans statements)" 'BEGIN { exit !(n > 20) }'
    for title in claim complete promote rescue; do
        grep -q "^==== $title\$" "${MR_BIN%/*}/bench/plans.txt"
    done
}

@test "an item that measures time tells its figures and is not judged" {
    told depth
    grep -q '"kind": "time"' "$OUT"
}

@test "a smoke run succeeds when every bar of structure is kept" {
    [ "$(cat "$MR_SCRATCH/status")" -eq 0 ]
}

@test "an unknown item is refused" {
    run "${MR_BIN%/*}/bench/cost" no_such_item
    [ "$status" -eq 2 ]
    [[ $output == *usage* ]]
}

@test "the toolbox beside Redis: every part of it has a rate" {
    command -v redis-benchmark >/dev/null || skip 'redis-benchmark is missing: apt-get install redis-tools'
    run "$MR_ROOT/bench/run" toolbox --small 3>&-
    [ "$status" -eq 0 ]
    [ "$(grep -cE '^Millrace (cache_get|cache_set|rate_limit|lock_lease).* [1-9][0-9]* a second, [18] clients$' <<<"$output")" -eq 14 ]
    [ "$(grep -cE '^Redis (GET|SET).* [1-9][0-9]* a second, [18] clients$' <<<"$output")" -eq 6 ]
    # what the cache holds, by estimate
    grep -qE '^ *[1-9][0-9]* \| *[1-9][0-9]* \| *0 \| *[1-9][0-9]*$' <<<"$output"
}

@test "a soak of seconds: each job is completed, there are samples and a chart" {
    run "$MR_ROOT/bench/run" soak --seconds 8 --sample 1 --rate 300
    [ "$status" -le 1 ]
    [[ $output == *'jobs, each completed'* ]]
    [[ $output == *'Disk, the whole database'* ]]
    [ "$(wc -l <"$MR_BUILD/bench/soak.ndjson")" -eq 8 ]
    python3 -c 'import json, sys
for line in open(sys.argv[1]):
    sample = json.loads(line)
    assert sample["disk_bytes"] > 0 and sample["wal_bytes_s"] > 0 and sample["client_bytes"] > 0 and sample["commit_p99_ms"] > 0, sample' "$MR_BUILD/bench/soak.ndjson"
    python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' "$MR_BUILD/bench/soak.svg"
}

@test "a soak is judged: flat or not, or too short" {
    flat=$MR_SCRATCH/flat rising=$MR_SCRATCH/rising
    for ((i = 1; i <= 30; i++)); do
        sample="{\"at_s\": $i, \"depth\": 0, \"p99_ms\": $((5 + i % 2)), \"commit_p99_ms\": $((3 + i % 2)), \"disk_bytes\": %d, \"wal_bytes_s\": 1, \"server_cores\": 1, \"completed_s\": 1, \"client_bytes\": 1}\n"
        # shellcheck disable=SC2059  # the format is the sample
        printf "$sample" 1000000 >>"$flat"
        # shellcheck disable=SC2059
        printf "$sample" $((1000000 + i * 10000)) >>"$rising"
    done
    run python3 -B "$MR_ROOT/bench/soak.py" "$flat" "$MR_SCRATCH/flat.svg"
    [ "$status" -eq 0 ]
    [[ $output == *'correlation 1.00'* ]]
    run python3 -B "$MR_ROOT/bench/soak.py" "$rising" "$MR_SCRATCH/rising.svg"
    [ "$status" -eq 1 ]
    [[ $output == *'NOT FLAT'* ]]
    head -n 3 "$flat" >"$MR_SCRATCH/short"
    run python3 -B "$MR_ROOT/bench/soak.py" "$MR_SCRATCH/short" "$MR_SCRATCH/short.svg"
    [ "$status" -eq 2 ]
}
