#!/bin/sh
# SPDX-License-Identifier: PostgreSQL
#
# A handler for exec that writes "ID ATTEMPT" of each job it runs to the file $1.
exec mawk -W interactive -v runs="$1" '
{
    match($0, /"id":[0-9]+/)
    id = substr($0, RSTART + 5, RLENGTH - 5)
    match($0, /"attempt":[0-9]+/)
    print id, substr($0, RSTART + 10, RLENGTH - 10) >> runs
    fflush(runs)
    print "{\"id\":" id "}"
    fflush()
}'
