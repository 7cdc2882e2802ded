#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# Pages are run as they stand, each in a fresh database, and have to print what they say.

bats_require_minimum_version 1.5.0
load ../lib/server

setup()
{
    fresh_db
}

teardown()
{
    drop_db
}

# What is not compared: the token of a lease, blanks at the end of a line, empty lines at the
# end of a block. Everything else is, also ids, counts and the texts of errors.
normalise()
{
    sed -E -e 's/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/TOKEN/g' -e 's/[[:space:]]+$//' |
        awk '/^$/ { empty++; next } /^@@/ { empty = 0 } { for (; empty > 0; empty--) print ""; print }'
}

parts()
{
    awk -v part="$1" -f "$MR_ROOT/tests/lib/transcript.awk" "$2"
}

page_matches()
{
    parts commands "$1" | psql -X >"$BATS_TEST_TMPDIR/raw" 2>&1 || return
    normalise <"$BATS_TEST_TMPDIR/raw" >"$BATS_TEST_TMPDIR/actual"
    parts output "$1" | normalise >"$BATS_TEST_TMPDIR/expected"
    diff -u "$BATS_TEST_TMPDIR/expected" "$BATS_TEST_TMPDIR/actual"
}

@test "docs/sql.md prints what it says" {
    page_matches "$MR_ROOT/docs/sql.md"
}

@test "docs/cancel.md prints what it says" {
    page_matches "$MR_ROOT/docs/cancel.md"
    local word
    for word in cancel pause_job resume_job run_now change_job heartbeat; do
        parts commands "$MR_ROOT/docs/cancel.md" | grep -q "millrace\.$word"
    done
}

@test "docs/routes.md prints what it says" {
    page_matches "$MR_ROOT/docs/routes.md"
}

@test "docs/cache.md, docs/limiter.md and docs/locks.md print what they say" {
    page_matches "$MR_ROOT/docs/cache.md"
    drop_db
    fresh_db
    page_matches "$MR_ROOT/docs/limiter.md"
    drop_db
    fresh_db
    page_matches "$MR_ROOT/docs/locks.md"
}

@test "docs/limits.md prints what it says" {
    page_matches "$MR_ROOT/docs/limits.md"
}

@test "docs/fair.md prints what it says" {
    page_matches "$MR_ROOT/docs/fair.md"
    local word
    for word in set_queue pause resume depth purge tenant_stats; do
        parts commands "$MR_ROOT/docs/fair.md" | grep -q "millrace\.$word"
    done
}

@test "docs/backpressure.md prints what it says" {
    page_matches "$MR_ROOT/docs/backpressure.md"
}

@test "docs/progress.md prints what it says" {
    page_matches "$MR_ROOT/docs/progress.md"
    local word
    for word in progress outcome complete job; do
        parts commands "$MR_ROOT/docs/progress.md" | grep -q "millrace\.$word("
    done
}

@test "docs/schedules.md prints what it says" {
    page_matches "$MR_ROOT/docs/schedules.md"
}

@test "docs/ordered.md prints what it says" {
    page_matches "$MR_ROOT/docs/ordered.md"
    local word
    for word in ordered ordering_key on_failure waits_for; do
        parts commands "$MR_ROOT/docs/ordered.md" | grep -q "$word"
    done
}

@test "docs/compression.md prints what it says" {
    page_matches "$MR_ROOT/docs/compression.md"
    local word
    for word in set_queue payload_policy part_coding part_size; do
        parts commands "$MR_ROOT/docs/compression.md" | grep -q "millrace\.$word"
    done
}

@test "docs/unique.md prints what it says" {
    page_matches "$MR_ROOT/docs/unique.md"
    local word
    for word in unique_key on_conflict unique_for enqueue_jobs; do
        parts commands "$MR_ROOT/docs/unique.md" | grep -q "$word"
    done
}

@test "docs/capture.md prints what it says" {
    page_matches "$MR_ROOT/docs/capture.md"
    local word
    for word in capture capture_enable capture_disable uncapture captures health; do
        parts commands "$MR_ROOT/docs/capture.md" | grep -q "millrace\.$word"
    done
}

@test "docs/batches.md prints what it says" {
    page_matches "$MR_ROOT/docs/batches.md"
    local word
    for word in batch_begin batch_add batch_seal on_complete on_death on_end depends_on depend; do
        parts commands "$MR_ROOT/docs/batches.md" | grep -q "$word"
    done
}

@test "docs/transactional.md prints what it says" {
    page_matches "$MR_ROOT/docs/transactional.md"
}

@test "the page shows what a newcomer looks for" {
    local word
    for word in enqueue claim complete fail replay dead_letters maintain stats health; do
        parts commands "$MR_ROOT/docs/sql.md" | grep -q "millrace\.$word"
    done
}

@test "a page with a wrong output is noticed" {
    printf '```sql\nselect 1 as one;\n```\n\n```text\n one\n-----\n   2\n(1 row)\n```\n' >"$BATS_TEST_TMPDIR/page.md"
    run -1 page_matches "$BATS_TEST_TMPDIR/page.md"
    printf '```sql\nselect 1;\n' >"$BATS_TEST_TMPDIR/open.md"
    run -1 parts commands "$BATS_TEST_TMPDIR/open.md"
}

@test "docs/bridge.md prints what it says" {
    page_matches "$MR_ROOT/docs/bridge.md"
}
