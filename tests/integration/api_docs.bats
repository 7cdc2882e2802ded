#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# The pages about HTTP and the program say the same: routes, metrics, keys; and the examples print what
# they say.

# shellcheck disable=SC2034,SC2154 # variables go to and come from lib/api

bats_require_minimum_version 1.5.0
load ../lib/server
load ../lib/daemon
load ../lib/api

teardown()
{
    end_daemons
    [ -z "${PGDATABASE:-}" ] || drop_db
}

@test "docs/http.md names every route with its role, and no other" {
    jq -r '.paths | to_entries[] | .key as $path | .value | to_entries[] | "\(.key | ascii_upcase) \($path) \(.value["x-role"])"' \
        "$MR_ROOT/web/openapi.json" | sort >"$BATS_TEST_TMPDIR/described"
    sed -nE 's/^\| `([A-Z]+ \/[^`]*)` \| ([a-z]+) \|.*/\1 \2/p' "$MR_ROOT/docs/http.md" | sort >"$BATS_TEST_TMPDIR/written"
    diff -u "$BATS_TEST_TMPDIR/described" "$BATS_TEST_TMPDIR/written"
}

@test "docs/http.md names every code of an error, and no other" {
    jq -r '.components.schemas.Error.properties.error.properties.code.enum[]' "$MR_ROOT/web/openapi.json" | sort >"$BATS_TEST_TMPDIR/described"
    sed -nE 's/^\| [45][0-9]{2} \| `([a-z_]+)` \|.*/\1/p' "$MR_ROOT/docs/http.md" | sort >"$BATS_TEST_TMPDIR/written"
    diff -u "$BATS_TEST_TMPDIR/described" "$BATS_TEST_TMPDIR/written"
}

@test "docs/metrics.md names every metric with its type, and no other" {
    fresh_db
    api_up
    api GET /metrics
    says 200
    sed -nE 's/^# TYPE ([a-z_]+) ([a-z]+)$/\1 \2/p' <<<"$body" | sort >"$BATS_TEST_TMPDIR/served"
    sed -nE 's/^\| `([a-z_]+)` \| (gauge|counter|histogram) \|.*/\1 \2/p' "$MR_ROOT/docs/metrics.md" | sort >"$BATS_TEST_TMPDIR/written"
    diff -u "$BATS_TEST_TMPDIR/served" "$BATS_TEST_TMPDIR/written"
}

# The commands of the blocks marked console, and what stands below each.
console()
{
    awk '/^```console$/ { on = 1; next } /^```$/ { on = 0 } on' "$1"
}

@test "the examples of docs/http.md print what they say" {
    local line auth='Authorization: Bearer admin-token' json='Content-Type: application/json'
    fresh_db
    api_up
    export api auth json
    console "$MR_ROOT/docs/http.md" >"$BATS_TEST_TMPDIR/expected"
    [ "$(grep -c '^\$ ' "$BATS_TEST_TMPDIR/expected")" -ge 9 ]
    while IFS= read -r line; do
        [[ $line == '$ '* ]] || continue
        printf '%s\n' "$line"
        bash -c "${line#\$ }" </dev/null | awk 1
    done <"$BATS_TEST_TMPDIR/expected" >"$BATS_TEST_TMPDIR/actual"
    diff -u "$BATS_TEST_TMPDIR/expected" "$BATS_TEST_TMPDIR/actual"
}
