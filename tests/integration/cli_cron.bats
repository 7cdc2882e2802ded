#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# `millrace cron`: list, set, remove, next, enable, disable, run.

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

is()
{
    if [ "$output" != "$1" ]; then
        printf 'expected: %s\noutput: %s\n' "$1" "$output" >&2
        return 1
    fi
}

json()
{
    jq -rc "$1" <<<"$output"
}

# What `set` can say of the schedule $1.
row()
{
    sql "select cron, timezone, kind, args, queue, priority, catch_up, active from millrace.schedules where name = '$1'"
}

@test "set says everything, or leaves it to the defaults" {
    run "$MR_BIN" cron set nightly '0 2 * * *' report '{"day": "yesterday"}' --queue reports --timezone Europe/Berlin \
        --catch-up all --priority 7
    [ "$status" -eq 0 ]
    [[ ${lines[0]} =~ ^NAME\ +CRON\ +ZONE\ +QUEUE\ +KIND\ +NEXT\ +LAST\ +STATE$ ]]
    [[ ${lines[1]} =~ ^nightly\ +0\ 2\ \*\ \*\ \*\ +Europe/Berlin\ +reports\ +report\ +[0-9-]+\ [0-9:+-]+\ +-\ +active$ ]]
    [ "$(row nightly)" = '0 2 * * *|Europe/Berlin|report|{"day": "yesterday"}|reports|7|all|t' ]
    "$MR_BIN" cron set plain @daily k
    [ "$(row plain)" = '@daily|UTC|k|{}|default|50|last|t' ]
    # What is not given is the default again.
    "$MR_BIN" cron set nightly '0 3 * * *' report --inactive
    [ "$(row nightly)" = '0 3 * * *|UTC|report|{}|default|50|last|f' ]
}

@test "set prints the schedule as JSON" {
    run --separate-stderr "$MR_BIN" cron set 'two "words" ü' '*/5 * * * * *' k '[1, null]' --json
    [ "$status" -eq 0 ]
    [ "$(json .name)" = 'two "words" ü' ]
    [ "$(json .args)" = '[1,null]' ]
    [ "$(json .priority)" = 50 ]
    [ "$(json .active)" = true ]
    [ "$(json '.next_at[10:11]')" = T ]
    [ "$(json '[.last_at, .last_job_id, .last_error]')" = '[null,null,null]' ]
}

@test "list: as a table, as names, as JSON with every column of the view" {
    run "$MR_BIN" cron list
    [ "$status" -eq 0 ]
    [ "${#lines[@]}" -eq 1 ]
    "$MR_BIN" cron set b @daily k
    "$MR_BIN" cron set a @hourly k --inactive
    "$MR_BIN" cron set $'c\033[31m' @hourly k
    run "$MR_BIN" cron list
    [ "$(awk '{ print $1, $NF }' <<<"$output" | xargs)" = 'NAME STATE a off b active c active' ]
    [[ ${lines[1]} =~ ^a\ .*\ k\ +-\ +-\ +off$ ]]
    [[ $output != *$'\033'* ]]
    run "$MR_BIN" cron list --names
    is $'a\nb\nc [31m'
    run --separate-stderr "$MR_BIN" cron list --json
    [ "$(json '[.schedules[].active]')" = '[false,true,true]' ]
    [ "$(json '.schedules[0] | keys_unsorted | join(" ")')" = \
        "$(sql "select string_agg(a.attname, ' ' order by a.attnum) from pg_attribute a where a.attrelid = 'millrace.schedules'::regclass")" ]
}

has_failed()
{
    sql 'select count(*) from millrace.maintain()'
    [ "$(sql "select last_error is not null from millrace.schedules where name = 'large'")" = t ]
}

@test "list says why a schedule cannot enqueue" {
    "$MR_BIN" cron set fine @yearly k
    "$MR_BIN" cron set large '* * * * * *' k "\"$(printf 'x%.0s' {1..200})\"" --queue narrow
    "$MR_BIN" queue set narrow max_args=100
    wait_until 30 has_failed
    run "$MR_BIN" cron list
    [ "$status" -eq 0 ]
    [[ $(grep '^fine ' <<<"$output") == *' active' ]]
    [[ $(grep '^large ' <<<"$output") == *' error' ]]
    has $'\n\nerror: large: args is '
    # One that rests has no trouble.
    "$MR_BIN" cron disable large
    run "$MR_BIN" cron list
    [[ $(grep '^large ' <<<"$output") == *' off' ]]
    [[ $output != *'error: '* ]]
}

@test "disable, enable, run, remove" {
    local id
    "$MR_BIN" cron set nightly '0 2 * * *' report '{"n": 1}' --queue reports
    run "$MR_BIN" cron disable nightly
    is 'disabled: nightly'
    [ "$(sql "select active, next_at from millrace.schedules")" = 'f|' ]
    run "$MR_BIN" cron run nightly
    [ "$status" -eq 0 ]
    [ "$(sql "select kind, queue, args, source, meta ->> 'schedule' from millrace.jobs where queue = 'reports' and id = $output")" = \
        'report|reports|{"n": 1}|cron|nightly' ]
    run "$MR_BIN" cron enable nightly
    is 'enabled: nightly'
    [ "$(sql 'select active and next_at > now() from millrace.schedules')" = t ]
    run "$MR_BIN" cron disable nightly --json
    is '{"name":"nightly","active":false}'
    run "$MR_BIN" cron enable nightly --json
    is '{"name":"nightly","active":true}'
    run "$MR_BIN" cron run nightly --json
    id=$(sql "select max(id) from millrace.jobs where queue = 'reports'")
    is "{\"name\":\"nightly\",\"id\":$id}"
    run "$MR_BIN" cron remove nightly
    is 'removed: nightly'
    "$MR_BIN" cron set 'a "b"' @daily k
    run "$MR_BIN" cron remove 'a "b"' --json
    is '{"name":"a \"b\"","removed":true}'
    [ "$(sql 'select count(*) from millrace.schedules')" = 0 ]
    # The jobs stay.
    [ "$(sql "select millrace.depth('reports')")" = 2 ]
}

@test "an unknown schedule is answered with the nearest one" {
    local verb
    run "$MR_BIN" cron run nigthly
    [ "$status" -eq 1 ]
    [ "${lines[0]}" = "millrace: there is no schedule 'nigthly'" ]
    has 'hint: See them all with `millrace cron list`; `millrace cron set` makes one.'
    "$MR_BIN" cron set nightly @daily report
    for verb in remove enable disable run next; do
        run "$MR_BIN" cron $verb nigthly
        echo "$verb: $status: $output"
        [ "$status" -eq 1 ]
        [ "${lines[0]}" = "millrace: there is no schedule 'nigthly'" ]
        has "hint: The nearest is 'nightly'; see them all with \`millrace cron list\`."
        [[ $output != *PL/pgSQL* ]]
    done
    has 'An expression has blanks or begins with @.'
}

@test "next times of an expression, by the clocks of its zone and in UTC" {
    run "$MR_BIN" cron next '0 2 * * *' --after '2030-01-01 00:00Z' --count 2
    [ "$status" -eq 0 ]
    is 'UTC
2030-01-01 02:00:00
2030-01-02 02:00:00'
    run "$MR_BIN" cron next '30 2 * * *' --timezone Europe/Berlin --after '2030-03-30 00:00Z' --count 3
    is 'Europe/Berlin        UTC
2030-03-30 02:30:00  2030-03-30 01:30:00Z
2030-03-31 03:00:00  2030-03-31 01:00:00Z
2030-04-01 02:30:00  2030-04-01 00:30:00Z'
    run "$MR_BIN" cron next @hourly
    [ "${#lines[@]}" -eq 6 ]
    # Days and months must not change places on the way from one call to the next.
    PGDATESTYLE='German, DMY' run "$MR_BIN" cron next '0 2 * * *' --after '2030-04-05 00:00Z' --count 3
    is 'UTC
2030-04-05 02:00:00
2030-04-06 02:00:00
2030-04-07 02:00:00'
}

@test "next times of a schedule, with its zone" {
    "$MR_BIN" cron set nightly '30 2 * * *' report --timezone Europe/Berlin --inactive
    run "$MR_BIN" cron next nightly --after '2030-06-01 00:00Z' --count 1
    is 'Europe/Berlin        UTC
2030-06-01 02:30:00  2030-06-01 00:30:00Z'
    run "$MR_BIN" cron next nightly --timezone UTC
    [ "$status" -eq 2 ]
    has 'a schedule has a time zone of its own'
}

@test "next times as JSON" {
    export PGTZ=UTC
    "$MR_BIN" cron set nightly '30 2 * * *' report --timezone Europe/Berlin
    run --separate-stderr "$MR_BIN" cron next nightly --after '2030-06-01 00:00Z' --count 2 --json
    is '{"name":"nightly","cron":"30 2 * * *","timezone":"Europe/Berlin","next":["2030-06-01T00:30:00+00:00","2030-06-02T00:30:00+00:00"]}'
    run --separate-stderr "$MR_BIN" cron next @daily --json
    [ "$(json '[.name, .cron, .timezone]')" = '[null,"@daily","UTC"]' ]
    [ "$(json '.next | length')" = 5 ]
    [ "$(json '.next == (.next | unique)')" = true ]
}

# refuses MESSAGE HINT ARGUMENT...
refuses()
{
    run "$MR_BIN" cron "${@:3}"
    if [ "$status" -ne 1 ] || [ "$output" != "millrace: $1"$'\n'"hint: $2" ]; then
        printf '%s\n' "$status" "$output" >&2
        return 1
    fi
}

@test "what the database refuses exits 1, with its reason and remedy" {
    refuses "cron '0 25 * * *': hour '25' is wrong" 'A value must be from 0 to 23.' set n '0 25 * * *' k
    refuses "cron '0 25 * * *': hour '25' is wrong" 'A value must be from 0 to 23.' next '0 25 * * *'
    refuses "cron '0 0 30 2 *' never fires" 'No month it names has such a day.' set n '0 0 30 2 *' k
    refuses "cron '@reboot' is not a known name" \
        'Names are @yearly, @annually, @monthly, @weekly, @daily, @midnight and @hourly.' next @reboot
    refuses "cron 'two words' has 2 fields" \
        'Write minute, hour, day of the month, month and day of the week; a field for the second may stand before them.' next 'two words'
    refuses "time zone 'Mars/Olympus' does not exist" \
        "Give the name of a place, such as 'Europe/Berlin', or 'UTC'; pg_timezone_names lists them." set n @daily k --timezone Mars/Olympus
    refuses "time zone '+02' does not exist" \
        "Give the name of a place, such as 'Europe/Berlin', or 'UTC'; pg_timezone_names lists them." next @daily --timezone +02
    refuses "catch_up must be none, last or all, not 'some'" \
        'none forgets what was missed, last makes up for it with one job, all with a job for each.' set n @daily k --catch-up some
    refuses 'priority must be from 0 to 99, not 100' 'Pass a value from 0 to 99.' set n @daily k --priority 100
    refuses 'schedule must not be empty' 'Give the schedule a name of 1 to 200 bytes.' set '' @daily k
    run "$MR_BIN" cron next @daily --after soon
    [ "$status" -eq 1 ]
    [ "${lines[0]}" = 'millrace: invalid input syntax for type timestamp with time zone: "soon"' ]
    [ "$(sql 'select count(*) from millrace.schedules')" = 0 ]
}

@test "args that are no JSON are wrong usage" {
    run "$MR_BIN" cron set n @daily k '{to: ada}'
    [ "$status" -eq 2 ]
    [[ ${lines[0]} == 'millrace: ARGS-JSON: invalid JSON at byte '* ]]
    has 'hint: Put JSON in single quotes'
}
