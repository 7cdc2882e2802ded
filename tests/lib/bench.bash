# SPDX-License-Identifier: PostgreSQL
# shellcheck shell=bash
# shellcheck disable=SC2154  # run sets output, status and stderr
#
# Runs `millrace bench` and looks at its report.

# Whether a JSON document in $output fulfils a condition.
holds()
{
    if ! jq -e "$1" <<<"$output" >/dev/null; then
        printf 'not so: %s\noutput: %s\n' "$1" "$output" >&2
        return 1
    fi
}

# Runs it; its report is in $output.
bench()
{
    run --separate-stderr "$MR_BIN" bench "$@" --json
    echo "$stderr"
    [ "$status" -eq 0 ]
}
