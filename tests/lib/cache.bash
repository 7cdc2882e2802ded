# SPDX-License-Identifier: PostgreSQL
# shellcheck shell=bash
# shellcheck disable=SC2154  # run sets stderr_lines
#
# What `millrace cache` prints on an empty backend of either kind, which MILLRACE_DSN names.

cache_speaks()
{
    "$MR_BIN" cache set "it's 100% \"odd\" \\" '{"n": 1}' --ttl 5min
    [ "$("$MR_BIN" cache get "it's 100% \"odd\" \\")" = '{"n": 1}' ]
    [ "$("$MR_BIN" cache get "it's 100% \"odd\" \\" --json)" = '{"key":"it'\''s 100% \"odd\" \\","value":{"n": 1}}' ]
    [ "$("$MR_BIN" cache set b 2 --ttl 1h --json)" = '{"key":"b","value":2}' ]
    [ "$("$MR_BIN" cache delete b)" = 'deleted: 1' ]
    [ "$("$MR_BIN" cache delete b)" = 'deleted: 0' ]
    [ "$("$MR_BIN" cache delete --like 'it%100\%%' --json)" = '{"deleted":1}' ]
    "$MR_BIN" cache set c 3 --ttl 1h
    [ "$("$MR_BIN" cache stats --json | sed 's/"bytes":[0-9]*/"bytes":N/')" = '{"total":1,"valid":1,"expired":0,"bytes":N,"exact":true}' ]
    "$MR_BIN" cache stats | grep -Eq '^ *1 +1 +0 +[0-9]+ +t$'
    run --separate-stderr -1 "$MR_BIN" cache get nothing
    [ "${stderr_lines[0]}" = 'millrace: key "nothing" has no value' ]
    run --separate-stderr -1 "$MR_BIN" cache delete --like "k\\"
    [ "${stderr_lines[0]}" = 'millrace: pattern ends with a lone backslash' ]
}
