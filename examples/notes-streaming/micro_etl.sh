#!/bin/sh
# SPDX-License-Identifier: PostgreSQL
#
# The processor as a program: loads the fact of one action. Connects with DWH_DSN, which may be another database
# than the one that has the queue; here it is the same.
#
#   micro_etl.sh --note-id NUMBER --sequence NUMBER
set -eu

note='' sequence=''
while [ $# -gt 1 ]; do
    case $1 in
    --note-id) note=$2 ;;
    --sequence) sequence=$2 ;;
    *) break ;;
    esac
    shift 2
done
case $#:$note:$sequence in
0:*[!0-9:]*:* | 0:*:*[!0-9:]* | 0::* | 0:*: | [!0]*)
    echo 'usage: micro_etl.sh --note-id NUMBER --sequence NUMBER' >&2
    exit 64
    ;;
esac
psql -X -q -A -t -v ON_ERROR_STOP=1 -d "${DWH_DSN:-$MILLRACE_DSN}" -c "select dwh.load(array[$note], array[$sequence])" >/dev/null
