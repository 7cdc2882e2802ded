#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# `millrace bench`: that it measures and says what, and that its numbers fit each other. No test
# here looks at how large a figure is. All modes, and how it ends, have files of their own.

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

@test "enqueue and drain: runs and figures, and rate is jobs by seconds" {
    bench enqueue drain --jobs 3000 --batch 50 --repeat 2
    holds '.version and .server and .cores >= 1 and .payload_bytes == 200'
    holds '.settings | has("fsync") and has("synchronous_commit") and has("full_page_writes") and has("shared_buffers") and has("wal_level")'
    holds '[.runs[] | [.mode, .contender, .repeat]] == [["enqueue","millrace",1],["enqueue","millrace",2],["drain","millrace",1],["drain","millrace",2]]'
    holds 'all(.runs[]; .jobs == 3000 and .seconds > 0 and (.rate * .seconds / .jobs - 1 | fabs) < 1e-6)'
    holds 'all(.runs[]; .wal_bytes > 0)'
    holds 'all(.runs[] | select(.mode == "drain"); .batch == 50 and .workers == 1)'
    holds '[.figures[] | select(.figure == "rate") | [.mode, .unit, .better]] == [["enqueue","jobs/s","more"],["drain","jobs/s","more"]]'
    holds 'all(.figures[]; .least <= .median and .median <= .most)'
    holds '.ratios == []'
    # A figure is made of its runs.
    holds '([.runs[] | select(.mode == "drain") | .rate] | add / 2) as $mean
           | .figures[] | select(.mode == "drain" and .figure == "rate") | .median / $mean - 1 | fabs < 1e-6'
}

@test "workers, parts, a rate and a held snapshot" {
    bench drain --jobs 2000 --batch 1 --workers 4 --parts 4 --hold-snapshot --upkeep
    holds '.runs[0] | .workers == 4 and .batch == 1 and .jobs == 2000'
    bench steady --rate 200 --seconds 2 --hold-snapshot
    # It produces what was asked for, not what it could.
    holds '.runs[0] | .asked_rate == 200 and .enqueued > 200 and .enqueued <= 400'
    bench enqueue --jobs 20 --payload 1000000 --dsn "postgresql://$PGUSER@/postgres?host=$PGHOST&port=$PGPORT"
    holds '.payload_bytes == 1000000 and .runs[0].wal_bytes > 500000'
}

@test "the report for people states what it was measured on" {
    run --separate-stderr "$MR_BIN" bench drain --jobs 2000 --compare textbook
    echo "$stderr"
    [ "$status" -eq 0 ]
    [ -z "$stderr" ]
    has "$("$MR_BIN" --version)"
    has "PostgreSQL $(sql 'show server_version' | cut -d' ' -f1)"
    has 'payload 200 bytes'
    has "fsync=$(sql 'show fsync')"
    has "synchronous_commit=$(sql 'show synchronous_commit')"
    grep -qE '^drain +textbook +rate +[0-9,]+ +[0-9,]+ +[0-9,]+ +jobs/s$' <<<"$output"
    grep -qE '^drain +millrace +rate +textbook +[0-9.,]+ +[0-9.,]+ +[0-9.,]+$' <<<"$output"
    grep -qE '^  (millrace|textbook)  #{50}  [0-9]+$' <<<"$output"
}

@test "a terminal has a progress bar" {
    need_terminal
    run script --quiet --return --command "'$MR_BIN' bench drain --jobs 5000" /dev/null
    [ "$status" -eq 0 ]
    has 'jobs (drain, millrace, 1 of 1)'
    has '[====='
}

@test "wrong usage exits 2 before anything is connected" {
    local usage
    export MILLRACE_DSN='host=/nonexistent dbname=x'
    for usage in drian 'drain --jobs 0' 'drain --payload 0' 'drain --payload 31' 'drain --payload 1000001' \
        'drain --batch 0' 'drain --batch 10001' 'drain --workers 0' 'drain --workers 65' 'enqueue --chunk 0' \
        'drain --repeat 0' 'steady --seconds 0' 'steady --rate -1' 'drain --parts 33' 'drain --jobs many' \
        'drain --compare river' 'drain --here' 'depth --here --yes' 'wal --here --yes' 'history --here --yes' \
        'drain --here --yes --compare textbook'; do
        # shellcheck disable=SC2086  # several arguments
        run "$MR_BIN" bench $usage </dev/null
        echo "$usage: $status: $output"
        [ "$status" -eq 2 ]
        [[ ${lines[0]} == 'millrace: '* ]]
    done
    run "$MR_BIN" bench drian
    has 'millrace: bench: unknown mode: drian'
    has 'hint: The modes are enqueue, single, drain,'
    run "$MR_BIN" bench drain
    [ "$status" -eq 3 ]
}

@test "without the right to create a database it says what to do" {
    local role=bench_$$
    sql "create role $role login"
    run "$MR_BIN" bench drain --dsn "host=$PGHOST port=$PGPORT user=$role dbname=$PGDATABASE"
    sql "drop role $role"
    [ "$status" -eq 1 ]
    has 'permission denied to create database'
    has "alter role $role createdb"
    has '--here'
}

# The statements of SQL files, one a line, whatever their layout.
statements()
{
    cat "$@" | sed -e 's/--.*//' -e 's/ if not exists//' | tr -s ' \n' ' ' | tr ';' '\n' | sed -e 's/^ *//' -e '/^$/d' | sort
}

@test "the textbook is the same here and in bench/" {
    statements "$MR_ROOT/bench/TEXTBOOK.sql" >"$BATS_TEST_TMPDIR/theirs"
    statements "$MR_ROOT"/sql/bench/textbook.sql "$MR_ROOT"/sql/bench/textbook_session.sql >"$BATS_TEST_TMPDIR/ours"
    [ "$(wc -l <"$BATS_TEST_TMPDIR/theirs")" -ge 6 ]
    run comm -23 "$BATS_TEST_TMPDIR/theirs" "$BATS_TEST_TMPDIR/ours"
    [ -z "$output" ]
}
