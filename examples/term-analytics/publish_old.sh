#!/bin/sh
# SPDX-License-Identifier: PostgreSQL
#
# A job of the queue old_path, on standard input, becomes entries of the stream term_updates, one a term. Where Redis did not take all of them the job
# fails and is tried again: a term that is there twice is refreshed twice, which changes nothing.
set -eu
case $REDIS_URL in
unix://*) where="-s ${REDIS_URL#unix://}" ;;
*) where="-u $REDIS_URL" ;;
esac
# As Redis's protocol has it, with lengths in bytes: whatever is in an id stays one word.
# shellcheck disable=SC2086 # two words
jq -j 'def bulk: tostring | "$\(utf8bytelength)\r\n\(.)\r\n";
       .args.terms | to_entries[] | ("*10\r\n", (("XADD", "term_updates", "MAXLEN", "~", 1000000, "*", "term_id", .key, "event_ms", .value) | bulk))' |
    redis-cli $where --pipe >&2 || exit 75
