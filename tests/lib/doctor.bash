# SPDX-License-Identifier: PostgreSQL
# shellcheck shell=bash
#
# What `millrace doctor` says of the current database, one check at a time:
#
#   load ../lib/server
#   load ../lib/doctor
#   says fsync critical 'off: *' 'alter system*'    verdict, evidence, remedy; * is anything
#   follow fsync                                    runs the remedy as it is printed
#   well fsync                                      it is ok again, within some seconds
#
# Each verdict that was seen is written down in $MR_SEEN, if that is set.

# The check $1 as "verdict: evidence -> remedy", as the program has it; with $2 as the SQL function
# has it so much later, by the clock that it is given.
check()
{
    if [ $# -lt 2 ]; then
        "$MR_BIN" doctor --json | jq -r --arg topic "$1" '.checks[] | select(.topic == $topic) | "\(.verdict): \(.evidence) -> \(.remedy)"'
    else
        sql "select d.verdict || ': ' || d.evidence || ' -> ' || coalesce(d.remedy, 'null') from millrace.doctor_at(clock_timestamp() + interval '$2') d where d.topic = '$1'"
    fi
}

# is_said FOUND PATTERN
is_said()
{
    # shellcheck disable=SC2053  # a pattern
    [[ $1 == $2 ]] || { printf 'expected: %s\nfound:    %s\n' "$2" "$1" >&2; return 1; }
}

# check_is TOPIC PATTERN, later_is TOPIC INTERVAL PATTERN
check_is()
{
    is_said "$(check "$1")" "$2"
}

later_is()
{
    is_said "$(check "$1" "$2")" "$3"
}

seen()
{
    [ -z "${MR_SEEN:-}" ] || printf '%s: %s\n' "$1" "$2" >>"$MR_SEEN"
}

# says TOPIC VERDICT EVIDENCE [REMEDY], says_later the same with an interval before the evidence
says()
{
    check_is "$1" "$2: $3 -> ${4:-*}" && seen "$1" "$2"
}

says_later()
{
    later_is "$1" "$3" "$2: $4 -> ${5:-*}" && seen "$1" "$2"
}

well()
{
    wait_until 30 check_is "$1" "ok: ${2:-*} -> null" || { check "$1" >&2; return 1; }
    seen "$1" ok
}

# The remedy as somebody pastes it into psql: what is not SQL in it stands behind two dashes.
follow()
{
    local remedy
    remedy=$(check "$1")
    remedy=${remedy##* -> }
    printf '%s\n;\n' "$remedy" | psql -X -q -v ON_ERROR_STOP=1 >/dev/null || { echo "the remedy of $1 is no SQL: $remedy" >&2; return 1; }
}

# set_system NAME VALUE, and until a new session has it
set_system()
{
    sql "alter system set $1 = $2" && sql 'select pg_reload_conf()' >/dev/null
    wait_until 10 eval "[ \"\$(sql \"select reset_val from pg_settings where name = '$1'\")\" = '${2//\'/}' ]"
}

# A session with an open transaction that has run $1, until close_transaction; $backend is its pid.
open_transaction()
{
    local name=held_$RANDOM
    mkfifo "$BATS_TEST_TMPDIR/$name"
    PGAPPNAME=$name psql -X -q -v ON_ERROR_STOP=1 3>&- >/dev/null 2>&1 <"$BATS_TEST_TMPDIR/$name" &
    session=$!
    exec 7>"$BATS_TEST_TMPDIR/$name"
    printf 'begin;\n%s;\n' "$1" >&7
    wait_until 10 eval "[ \"\$(sql \"select count(*) from pg_stat_activity where application_name = '$name' and state = 'idle in transaction'\")\" = 1 ]"
    backend=$(sql "select pid from pg_stat_activity where application_name = '$name'")
}

# Ends it, also when its server has done so.
close_transaction()
{
    exec 7>&-
    wait "$session" || true
    wait_until 10 eval "[ \"\$(sql \"select count(*) from pg_stat_activity where pid = $backend\")\" = 0 ]"
}
