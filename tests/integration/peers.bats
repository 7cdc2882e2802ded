#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# The benchmark's peers, with few jobs: that those which need no npm run, that what cannot run is
# named, and what the report makes of it. No test here looks at a time or a rate.

bats_require_minimum_version 1.5.0
load ../lib/server

everybody='millrace textbook visibility delete-returning pgq graphile-worker pg-boss bullmq beanstalkd'

# One run for all tests.
setup_file()
{
    [ -x "${MR_BIN%/*}/bench/peers/drive" ] || skip 'libpq is older than 14, and the benchmarks need its pipelines: install a newer libpq-dev and build again'
    export OUT=$MR_SCRATCH/out ERR=$MR_SCRATCH/err PEERS=$MR_SCRATCH/peers.json
    export MR_BENCH_DIR=$MR_SCRATCH/p
    mkdir "$MR_BENCH_DIR"
    chmod 711 "$MR_BENCH_DIR"
    local status=0
    "$MR_ROOT/bench/run" peers --quick --output "$PEERS" textbook delete-returning pgq beanstalkd \
        >"$OUT" 2>"$ERR" || status=$?
    echo "$status" >"$MR_SCRATCH/status"
}

setup()
{
    cat "$OUT"
    tail -n 5 "$ERR"
    cd "$MR_ROOT" || return
}

report()
{
    run python3 -B bench/peers/report.py "$@"
}

# A contender's figures are there, and more than nothing; only a latency may be that, where a worker has
# begun before its producer has the answer: has_figures NAME FIGURE...
has_figures()
{
    local name=$1 figure
    shift
    for figure in "$@"; do
        jq -e --arg name "$name" --arg figure "$figure" \
            '.contenders[] | select(.name == $name) | .status == "ran" and (.figures[$figure].median |
               type == "number" and (. > 0 or (. == 0 and ($figure | endswith("_ms")))))' "$PEERS" >/dev/null ||
            { echo "$name has no $figure"; return 1; }
    done
}

skip_unless_installed()
{
    local reason
    reason=$(jq -r --arg name "$1" '.contenders[] | select(.name == $name) | .reason' "$PEERS")
    case $reason in
    *'not installed'*) skip "$reason: tools/deps --optional peers installs what can be had" ;;
    esac
}

@test "tables of rows are measured in every way" {
    has_figures textbook enqueue drain drain_best single single_held steady wal_bytes p99_ms held depth
    has_figures delete-returning enqueue drain drain_best single steady wal_bytes p99_ms held depth
}

@test "PgQ is measured" {
    skip_unless_installed pgq
    has_figures pgq enqueue drain drain_best steady wal_bytes p50_ms held depth
}

@test "beanstalkd is measured" {
    skip_unless_installed beanstalkd
    has_figures beanstalkd enqueue drain drain_best single steady p50_ms depth
}

@test "a row that is written, updated twice and kept costs more WAL than one that is deleted" {
    jq -e '[.contenders[] | {(.name): .figures.wal_bytes.median}] | add
           | .textbook > ."delete-returning" and ."delete-returning" > 200' "$PEERS"
}

@test "the run succeeds and leaves neither servers nor files" {
    [ "$(cat "$MR_SCRATCH/status")" -eq 0 ]
    [ -z "$(ls -A "$MR_BENCH_DIR")" ]
}

@test "the results name the machine and no path" {
    jq -e '.machine.cores > 0 and .machine.settings.synchronous_commit == "on" and .payload_bytes == 200' "$PEERS"
    run ! grep -F "$MR_SCRATCH" "$PEERS"
}

@test "every contender is in the results, those that were not run with the reason" {
    for name in $everybody; do
        jq -e --arg name "$name" '[.contenders[] | select(.name == $name)] | length == 1' "$PEERS"
    done
    jq -e '.contenders[] | select(.name == "millrace") | .status == "not run" and .reason == "not asked for"' "$PEERS"
}

@test "what cannot be run is named, and no error" {
    MR_BUILD=$MR_SCRATCH/nothing run "$MR_ROOT/bench/run" peers --quick --output "$BATS_TEST_TMPDIR/none.json" textbook
    [ "$status" -eq 0 ]
    [[ $output == *'textbook table: not run: its driver is not built'* ]]
}

@test "the page has a row for every contender, and every target" {
    report "$PEERS" --docs "$BATS_TEST_TMPDIR/docs"
    [ "$status" -eq 0 ]
    page=$BATS_TEST_TMPDIR/docs/benchmarks.md
    grep -q '^| textbook table | [0-9]' "$page"
    grep -q '^| pg-boss | not run: not asked for' "$page"
    for title in Millrace 'pgmq-like, read and delete' 'PgQ (event log)' graphile-worker 'BullMQ on Redis' beanstalkd; do
        grep -qF "| $title" "$page"
        grep -qF -- "- **$title" "$page"
    done
    [ "$(sed -n '/^## Targets/,/^## Conf/p' "$page" | grep -c '^| .* at \(least\|most\) ')" -eq 15 ]
    run ! grep -E '/(tmp|home|work|root)/' "$page"
}

@test "every picture of the page is there and is valid SVG with a label for every contender" {
    report "$PEERS" --docs "$BATS_TEST_TMPDIR/docs"
    cd "$BATS_TEST_TMPDIR/docs" || return
    mapfile -t pictures < <(sed -n 's/^!\[.*](\(.*\))$/\1/p' benchmarks.md)
    for picture in "${pictures[@]}"; do
        python3 - "$picture" <<'PYTHON'
import sys
import xml.etree.ElementTree as tree
root = tree.parse(sys.argv[1]).getroot()
svg = "{http://www.w3.org/2000/svg}"
assert root.tag == svg + "svg", root.tag
texts = [text.text for text in root.iter(svg + "text")]
for label in ("Millrace", "textbook table", "pg-boss", "beanstalkd", "not run"):
    assert label in texts, (label, texts)
width = float(root.get("width"))
for bar in root.iter(svg + "rect"):
    assert float(bar.get("x", 0)) + float(bar.get("width")) <= width, bar.attrib
PYTHON
    done
    [ "$(find img -name 'bench-*.svg' | wc -l)" -eq 4 ]
}

# Two rounds of Millrace beside PgQ and textbook: with_rates DRAIN WAL
with_rates()
{
    jq --argjson drain "$1" --argjson wal "$2" '
        def runs(d; w): [{drain_best: d, wal_bytes: w, held: 1}, {drain_best: (d * 1.1), wal_bytes: w, held: 1}];
        .quick = false | .repeat = 2 | .contenders |= map(
            if .name == "millrace" then .status = "ran" | .runs = runs($drain; $wal)
            elif .name == "pgq" then .status = "ran" | .runs = runs(100000; 300)
            else .status = "not run" | .reason = "away" end)' "$PEERS" >"$BATS_TEST_TMPDIR/made.json"
}

@test "targets that are kept are said to be kept, and what is missing is not judged" {
    with_rates 80000 330
    report "$BATS_TEST_TMPDIR/made.json"
    [ "$status" -eq 0 ]
    [[ $output == *"PgQ's read rate"*'at least 0.75'*'0.80 (0.80 to 0.80)'*kept* ]]
    [[ $output == *'not measured: graphile-worker was not run'* ]]
    [[ $output != *MISSED* ]]
}

@test "a missed target is printed as MISSED and is the exit status" {
    with_rates 70000 400
    report "$BATS_TEST_TMPDIR/made.json" --docs "$BATS_TEST_TMPDIR/docs"
    [ "$status" -eq 1 ]
    grep -q "PgQ's read rate | at least 0.75 | 0.70 .* | \*\*MISSED\*\* |" "$BATS_TEST_TMPDIR/docs/benchmarks.md"
    grep -q "of PgQ's | at most 1.25 | 1.33 .* | \*\*MISSED\*\* |" "$BATS_TEST_TMPDIR/docs/benchmarks.md"
}

@test "a quick run is not written to the documentation" {
    before=$(cat docs/benchmarks.md docs/img/bench-*.svg 2>/dev/null | cksum)
    report "$PEERS" --write
    [[ $output == *'a quick run is not written'* ]]
    [ "$(cat docs/benchmarks.md docs/img/bench-*.svg 2>/dev/null | cksum)" = "$before" ]
}

@test "an unknown contender and an unknown mode are refused" {
    run bench/run peers nobody
    [ "$status" -eq 2 ]
    [[ $output == *'unknown contender: nobody'* ]]
    run "${MR_BIN%/*}/bench/peers/drive" textbook nothing
    [ "$status" -eq 2 ]
}

@test "Millrace's functions are driven as the textbook's are" {
    drive=${MR_BIN%/*}/bench/peers/drive
    fresh_db
    "$drive" millrace setup
    "$drive" millrace enqueue jobs=60 chunk=20
    [ "$(sql "select millrace.depth('default')")" -eq 60 ]
    "$drive" millrace drain jobs=60 batch=1 workers=4
    [ "$(sql "select millrace.depth('default')")" -eq 0 ]
    run "$drive" millrace drain jobs=1
    [ "$status" -eq 2 ]
    [[ $output == *'ran out of jobs after 0 of 1'* ]]
    drop_db
}

@test "the lock file of the peers names no registry" {
    jq -e '[.packages[] | select(.resolved)] | length == 0' bench/peers/node/package-lock.json
    jq -e '[.packages[] | select(.integrity)] | length > 10' bench/peers/node/package-lock.json
}
