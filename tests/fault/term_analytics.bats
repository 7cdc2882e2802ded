#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# examples/term-analytics, shorter: everything it proves, with each part killed once. How late it is on a machine that runs other tests proves nothing
# and decides nothing.

bats_require_minimum_version 1.5.0
load ../lib/server
load ../lib/example

@test "counts in are counts out after each part was killed, by the old path too, and a term is replayed" {
    TMPDIR=$MR_SCRATCH DURATION=6 RATE=500 KILLS=1 LIMITS=0 run "$MR_ROOT/examples/term-analytics/run" 3>&-
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$(grep -c '^ok ' <<<"$output")" -eq 24 ]
    [[ $output != *WRONG* ]]
    grep -qE '^ok +metrics of dashboard.json that nobody answers +expected none +got none$' <<<"$output"
    [[ $output == *'term_queue_pending_count '*'term_queue_retry_count '*'term_queue_oldest_pending_age_seconds '* ]]
    [[ $output == *'{"retention": "24:00:00", "max_attempts": 3}'* ]]
    [[ $output == *'lag of analytics in all, p99'*'depth of term_queue in all'* ]]
}

@test "numbers that are none are refused" {
    local settings
    for settings in 'DURATION=x' 'DURATION=3' 'DURATION=09' 'RATE=0' 'RATE=-1' 'KILLS=1.5' 'LIMITS=yes'; do
        run env TMPDIR="$MR_SCRATCH" "$settings" "$MR_ROOT/examples/term-analytics/run"
        [ "$status" -eq 2 ] || { echo "$settings: $status $output"; return 1; }
    done
}

@test "the dashboard asks for metrics that are there" {
    run jq -r '.panels[].targets[].expr' "$MR_ROOT/examples/term-analytics/dashboard.json"
    [ "$status" -eq 0 ]
    while read -r name; do
        grep -qE "$name( |\`)" "$MR_ROOT/examples/term-analytics/analytics.conf" "$MR_ROOT/docs/metrics.md"
    done < <(grep -oE '(term_queue|millrace)_[a-z_]+' <<<"$output" | sort -u)
}

@test "it leaves nothing behind when it fails" {
    mkdir -m 711 "$MR_SCRATCH/left"
    TMPDIR=$MR_SCRATCH/left MR_BIN=/bin/false run "$MR_ROOT/examples/term-analytics/run" 3>&-
    [ "$status" -eq 1 ]
    wait_until 20 nothing_left
}

@test "... nor when it is ended in the middle" {
    local status=0
    rm -rf "$MR_SCRATCH/left"
    mkdir -m 711 "$MR_SCRATCH/left"
    TMPDIR=$MR_SCRATCH/left DURATION=8 RATE=100 KILLS=1 "$MR_ROOT/examples/term-analytics/run" >"$BATS_TEST_TMPDIR/out" 2>&1 3>&- &
    wait_until 60 grep -q 'events a second for' "$BATS_TEST_TMPDIR/out"
    [ -n "$(started_by_run)" ]
    kill $!
    wait $! || status=$?
    cat "$BATS_TEST_TMPDIR/out"
    [ "$status" -eq 143 ]
    wait_until 20 nothing_left
}
