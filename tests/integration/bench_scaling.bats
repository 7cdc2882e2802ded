#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# bench/run scaling, scaled down: that every lever is measured, and what does not depend on time. No test here looks at a time or a rate.

bats_require_minimum_version 1.5.0
load ../lib/server
load ../lib/s3

setup_file()
{
    [ -x "${MR_BIN%/*}/bench/feed" ] || skip 'libpq is older than 14, and the benchmarks need its pipelines: install a newer libpq-dev and build again'
    export OUT=$MR_SCRATCH/out ERR=$MR_SCRATCH/err
    local status=0
    "$MR_ROOT/bench/run" scaling --small >"$OUT" 2>"$ERR" 3>&- || status=$?
    echo "$status" >"$MR_SCRATCH/status"
}

setup()
{
    cat "$OUT"
    tail -n 5 "$ERR"
}

# A figure of a check: figure CHECK CONDITION KEY
figure()
{
    grep '^{' "$OUT" | jq -r "select(.check == \"scaling.$1\" and ($2)) | .$3"
}

less()
{
    awk -v a="$1" -v b="$2" 'BEGIN { exit !(a > 0 && a < b) }'
}

@test "it succeeds, and has a table for each part" {
    [ "$(cat "$MR_SCRATCH/status")" -eq 0 ]
    [ "$(grep -c '^### ' "$OUT")" -eq 3 ]
    [ "$(grep -c '^|---' "$OUT")" -eq 3 ]
}

@test "compression takes bytes away from JSON, and none from noise" {
    at_once='.jobs == "at once"'
    less "$(figure payload ".content == \"json\" and .kept == \"compressed\" and $at_once" wal_enqueue)" \
        "$(figure payload ".content == \"json\" and .kept == \"inline\" and $at_once" wal_enqueue)"
    less "$(figure payload ".content == \"json\" and .kept == \"compressed\" and $at_once" disk)" \
        "$(figure payload ".content == \"json\" and .kept == \"inline\" and $at_once" disk)"
    # the same bytes but for what pages hold by chance
    less "$(figure payload ".content == \"noise\" and .kept == \"inline\" and $at_once" wal_enqueue)" 7000
    less 4500 "$(figure payload ".content == \"noise\" and .kept == \"compressed\" and $at_once" wal_enqueue)"
}

@test "payloads in S3 were measured" {
    need_s3
    [ "$(figure payload '.kept == "S3" or .kept == "compressed, S3"' kept | wc -l)" -eq 2 ]
}

@test "one serve and a relay have fewer connections than workers that claim for themselves" {
    for way in 'one serve' Redis; do
        less "$(figure delivery ".way == \"$way\"" connections)" "$(figure delivery '.way == "direct"' connections)"
    done
}

@test "three shards share the jobs" {
    [ "$(figure shards '.shards == 3' 'share | length')" -eq 3 ]
    [ "$(figure shards '.shards == 3' 'share | min > 0.2')" = true ]
}

@test "a part that there is not is refused" {
    run "$MR_ROOT/bench/run" scaling elsewhere 3>&-
    [ "$status" -ne 0 ]
    [[ $output == *'usage: bench/run scaling'* ]]
}
