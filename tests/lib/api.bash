# SPDX-License-Identifier: PostgreSQL
# shellcheck shell=bash
#
# The HTTP API in a bats test, after lib/server and lib/daemon:
#
#   api_up [LINE...]           a daemon with HTTP on a free port, tokens admin, worker, producer, reader, and
#                              these lines beside them in its http section; leaves $api and $api_conf
#   api METHOD PATH [CURL...]  as admin, or as $as; leaves the status in $code, the body in $body
#   post PATH JSON             a POST of JSON

api_conf=
api=

api_write_conf()
{
    local role
    api_conf=$BATS_TEST_TMPDIR/api.conf
    {
        printf 'http {\n  listen = "127.0.0.1:%s"\n' "${api_port:-0}"
        for role in admin worker producer reader; do
            printf '  token %s { role = "%s"  hash = "%s" }\n' "$role" "$role" \
                "$(printf '%s-token\n' "$role" | "$MR_BIN" token --hash)"
        done
        printf '  %s\n' "$@"
        printf '}\n'
    } >"$api_conf"
}

api_up()
{
    api_write_conf "$@"
    printf '%s\n' "${api_more:-}" >>"$api_conf"
    daemon api serve -c "$api_conf"
    wait_until 20 logged api 'serve.ready'
    api=http://127.0.0.1:$(sed -n 's/.*http.listening.*port=\([0-9]*\).*/\1/p' "$BATS_TEST_TMPDIR/api.log")
}

# shellcheck disable=SC2034 # code and body are for the test
api()
{
    local method=$1 path=$2
    shift 2
    code=$(curl -s -o "$BATS_TEST_TMPDIR/body" -D "$BATS_TEST_TMPDIR/head" -w '%{http_code}' -X "$method" \
        -H "Authorization: Bearer ${as:-admin}-token" "$@" "$api$path")
    body=$(<"$BATS_TEST_TMPDIR/body")
}

post()
{
    api POST "$1" -H 'Content-Type: application/json' --data-binary "$2"
}

# says STATUS [JQ-FILTER VALUE]: the last reply had this status, and this value in its body.
says()
{
    if [ "$code" != "$1" ] || { [ $# -eq 3 ] && [ "$(jq -c "$2" <<<"$body")" != "$3" ]; }; then
        printf 'expected: %s\ngot: %s %s\n' "$*" "$code" "$body" >&2
        return 1
    fi
}
