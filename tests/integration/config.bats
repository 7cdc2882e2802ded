#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# The configuration file: mistakes are named with file, line and the nearest key; `queue`, `retry`
# and `schedule` sections and the environment reach the database.

bats_require_minimum_version 1.5.0
load ../lib/server
load ../lib/daemon

setup_file()
{
    fresh_db
}

teardown_file()
{
    drop_db
}

setup()
{
    conf=$BATS_TEST_TMPDIR/millrace.conf
}

teardown()
{
    end_daemons
}

# Checks the configuration on standard input.
check()
{
    cat >"$conf"
    run "$MR_BIN" serve -c "$conf" --check
}

refused()
{
    [ "$status" -eq 1 ]
    [ "${lines[0]}" = "millrace: $conf:$1" ] || { echo "${lines[0]}"; return 1; }
    [ "${lines[1]}" = "hint: $2" ] || { echo "${lines[1]}"; return 1; }
}

setting()
{
    sql "select settings ->> '$2' from millrace.queues where queue = '$1'"
}

@test "a good file" {
    check <<'END'
# a comment
dsn = "dbname=nowhere"
worker mail { queue = "mail"  exec = "./send"  concurrency = 8
              breaker { failures = 3  open_for = "1min" } }
queue mail { retention = "48h" }
retry mail { max_attempts = 7 }
schedule digest { cron = "*/5 8-18 * * MON-FRI"  kind = "digest"  args = '{"to": "ada"}' }
END
    [ "$status" -eq 0 ]
    [ "$output" = "$conf: good: 1 workers, 1 queues, 1 retry policies, 1 schedules, 0 bridges, 0 relays" ]
}

@test "a typo names file, line and the nearest key" {
    check <<'END'
worker mail {
    queue = "mail"
    exce = "./send"
}
END
    refused '3: unknown key "exce" in worker mail' 'Did you mean exec?'
    check <<'END'

quueue mail { }
END
    refused '2: unknown key "quueue"' 'Did you mean queue?'
}

@test "wrong values" {
    check <<'END'
worker mail { queue = "mail"  exec = "x"
    timeout = "30 seconds"
}
END
    refused '2: wrong value for "timeout": "30 seconds"' \
        'Write a time with its unit: "500ms", "5s", "2min", "1h", at most "24h".'
    check <<'END'
worker mail { queue = "mail"  exec = "x"  concurrency = "lots" }
END
    refused '1: wrong value for "concurrency": "lots"' 'Write a whole number from 1 to 10000.'
}

@test "a worker has a queue, a name of its own and one handler" {
    check <<<'worker w { exec = "x" }'
    refused '1: worker w has no queue' 'Add queue = "NAME".'
    check <<<'worker w { queue = q }'
    refused '1: worker w has no handler' 'Add one of exec, run, http, sql, plugin.'
    check <<<'worker w { queue = q exec = x run = y }'
    refused '1: worker w has two handlers: exec and run' \
        'A worker has one handler; write a second worker for the other.'
    check <<'END'
worker w { queue = q exec = x }
worker w { queue = q exec = y }
END
    [ "$status" -eq 1 ]
    [[ ${lines[0]} == "millrace: $conf:2: "*w* ]]
}

@test "a schedule has an expression and a kind" {
    check <<<'schedule s { kind = "k" }'
    refused '1: schedule s has no cron' 'Add cron = "0 2 * * *", for example.'
    check <<<'schedule s { cron = "@daily" }'
    refused '1: schedule s has no kind' 'Add kind = "NAME", the kind of its jobs.'
    check <<'END'
schedule s { cron = "@daily"  kind = "k"
    timezon = "Europe/Berlin"
}
END
    refused '2: unknown key "timezon" in schedule s' 'Did you mean timezone?'
    check <<<'schedule s { cron = "@daily"  kind = "k"  priority = 100 }'
    refused '1: wrong value for "priority": "100"' 'Write a whole number from 0 to 99.'
    check <<<'schedule s { cron = "@daily"  kind = "k"  active = "perhaps" }'
    refused '1: wrong value for "active": "perhaps"' 'Write true or false.'
}

@test "roles: a bridge alone needs a bridge, a word that is none is refused" {
    check <<<'bridge b { }'
    refused '1: bridge b has no redis' 'Add redis = "redis://HOST:PORT" and stream = "KEY".'
    echo >"$conf"
    run "$MR_BIN" serve -c "$conf" --roles bridge --check
    [ "$status" -eq 1 ]
    [[ $output == *'no bridge is configured, and bridge is the only role'* ]]
    run "$MR_BIN" serve --roles bridge
    [ "$status" -eq 2 ]
    [[ $output == *'no configuration file'* ]]
    run "$MR_BIN" serve -c "$conf" --roles wrok
    [ "$status" -eq 2 ]
    [[ $output == *'unknown role: "wrok"'*'nearest is work'* ]]
}

@test "HTTP without a token is refused before it is served" {
    check <<<'http { listen = "127.0.0.1:0" }'
    [ "$status" -eq 1 ]
    [[ $output == *'http has no token'*'millrace token'* ]]
    echo >"$conf"
    run "$MR_BIN" serve -c "$conf" --roles http
    [ "$status" -eq 1 ]
    [[ $output == *'http has no token'* ]]
}

@test "variables of the environment" {
    HOOK_KEY=secret check <<<'worker w { queue = q http = "http://h/" secret = "${HOOK_KEY}" }'
    [ "$status" -eq 0 ]
    check <<'END'
worker w { queue = q http = "http://h/"
    secret = "${MR_TEST_NOT_SET}" }
END
    refused '2: the environment variable MR_TEST_NOT_SET is not set' \
        'Set it, or write a default: ${MR_TEST_NOT_SET:-value}.'
    check <<<'worker w { queue = q http = "http://h/" secret = "${MR_TEST_NOT_SET:-x}" }'
    [ "$status" -eq 0 ]
    QUEUE_POLL_INTERVAL_MS=often check <<<''
    [ "$status" -eq 2 ]
    [[ $output == *QUEUE_POLL_INTERVAL_MS* ]]
    MILLRACE_LOG=xml run "$MR_BIN" serve -c "$conf"
    [ "$status" -eq 2 ]
    [[ $output == *MILLRACE_LOG*'text or json'* ]]
}

@test "no file, no such file, a file in the environment" {
    run "$MR_BIN" serve --check
    [ "$status" -eq 2 ]
    [[ $output == *'no configuration file'*MILLRACE_CONFIG* ]]
    run "$MR_BIN" serve -c "$BATS_TEST_TMPDIR/missing" --check
    [ "$status" -eq 1 ]
    [[ $output == *missing*'No such file'* ]]
    echo 'queue q { }' >"$conf"
    MILLRACE_CONFIG=$conf run "$MR_BIN" serve --check
    [ "$status" -eq 0 ]
    run "$MR_BIN" serve -c "$conf" --roles work --check
    [ "$status" -eq 1 ]
    [[ $output == *'no worker is configured'* ]]
}

@test "every setting of a queue can be written in the file" {
    local settings
    settings=$(sql "select string_agg(format('%s = %s', setting_name,
                      case value_type when 'interval' then '\"5s\"' when 'rate' then '\"5/s\"'
                                      else coalesce(default_text, '700') end), ' ')
                    from millrace.queue_setting where column_name is not null")
    [ "$(wc -w <<<"$settings")" -ge 42 ]
    check <<<"queue all { $settings }"
    echo "$output"
    [ "$status" -eq 0 ]
}

@test "sections and the environment reach the database, also after a reload" {
    cat >"$conf" <<'END'
worker idle { queue = "named" run = "true" }
queue given { retention = "2h"  max_attempts = 9  warn_depth = 7 }
queue other { lease = "90s" }
retry mail { max_attempts = 6  base = "3s"  factor = 1.5  cap = "10min"  jitter = 0.25 }
END
    QUEUE_RETENTION_HOURS=5 MAX_RETRY_ATTEMPTS=4 daemon serve serve -c "$conf"
    wait_until 20 logged serve settings.applied
    [ "$(setting given retention)" = 02:00:00 ]
    [ "$(setting given max_attempts)" = 9 ]
    [ "$(setting given warn_depth)" = 7 ]
    [ "$(setting other lease)" = 00:01:30 ]
    [ "$(setting other retention)" = 05:00:00 ]
    [ "$(setting other max_attempts)" = 4 ]
    [ "$(setting named retention)" = 05:00:00 ]
    [ "$(setting named max_attempts)" = 4 ]
    [ "$(sql "select max_attempts, base, factor, cap, jitter from millrace.retries where kind = 'mail'")" = \
        '6|00:00:03|1.5|00:10:00|0.25' ]
    sed -i 's/warn_depth = 7/warn_depth = 8/' "$conf"
    signal serve HUP
    wait_until 20 depth_changed
    signal serve TERM
    ended serve
    [ "$status" -eq 0 ]
}

depth_changed()
{
    [ "$(setting given warn_depth)" = 8 ]
}

@test "a refused setting is logged and stops nothing" {
    cat >"$conf" <<'END'
queue bad { durability = "bogus" }
queue fine { warn_depth = 11 }
END
    daemon serve serve -c "$conf"
    wait_until 20 logged serve 'settings.applied.*applied=1 refused=1'
    logged serve 'settings.refused: the settings of queue bad were refused: .*queue=bad'
    [ "$(setting fine warn_depth)" = 11 ]
    signal serve TERM
    ended serve
    [ "$status" -eq 0 ]
}

# The columns of a schedule that the file says.
schedule_row()
{
    sql "select cron, timezone, kind, args, queue, priority, catch_up, active from millrace.schedules where name = '$1'"
}

schedule_is()
{
    [ "$(schedule_row "$1")" = "$2" ]
}

has_run()
{
    [ "$(sql "select count(*) from millrace.jobs where queue = 'ticks' and kind = 'tick' and status = 'completed'")" -ge 1 ]
}

@test "a schedule of the file is made, and its jobs run" {
    cat >"$conf" <<'END'
worker ticker { queue = "ticks"  run = "true" }
schedule second { cron = "* * * * * *"  kind = "tick"  queue = "ticks"  timezone = "Europe/Berlin"
                  args = '{"n": 1}'  catch_up = none  priority = 7 }
schedule later  { cron = "@yearly"  kind = "tick"  active = false }
schedule plain  { cron = "@yearly"  kind = "tick" }
END
    daemon serve serve -c "$conf"
    wait_until 20 logged serve 'settings.applied.*refused=0'
    schedule_is second '* * * * * *|Europe/Berlin|tick|{"n": 1}|ticks|7|none|t'
    schedule_is later '@yearly|UTC|tick|{}|default|50|last|f'
    schedule_is plain '@yearly|UTC|tick|{}|default|50|last|t'
    wait_until 30 has_run
    [ "$(sql "select distinct (args, priority, source, meta ->> 'schedule') from millrace.jobs where queue = 'ticks'")" = \
        '("{""n"": 1}",7,cron,second)' ]
    # What the file says counts again after a reload; a section that is gone stays in the database.
    sql "select millrace.schedule_disable('plain')"
    sed -i -e '/^schedule later/d' -e 's/"@yearly"/"@monthly"/' "$conf"
    signal serve HUP
    wait_until 20 schedule_is plain '@monthly|UTC|tick|{}|default|50|last|t'
    schedule_is later '@yearly|UTC|tick|{}|default|50|last|f'
    signal serve TERM
    ended serve
    [ "$status" -eq 0 ]
    sql "select millrace.unschedule(name) from millrace.schedules"
}

@test "a refused schedule is logged with the reason, and the others are made" {
    cat >"$conf" <<'END'
schedule bad_args { cron = "@daily"  kind = "k"  args = "{to: ada}" }
schedule bad_cron { cron = "0 25 * * *"  kind = "k" }
schedule bad_zone { cron = "@daily"  kind = "k"  timezone = "Mars/Olympus" }
schedule bad_mode { cron = "@daily"  kind = "k"  catch_up = "some" }
schedule fine     { cron = "@daily"  kind = "k" }
END
    daemon serve serve -c "$conf"
    wait_until 20 logged serve 'settings.applied.*applied=1 refused=4'
    logged serve 'settings.refused: the settings of schedule bad_args were refused: invalid input syntax for type json.*schedule=bad_args'
    logged serve "settings.refused: the settings of schedule bad_cron were refused: cron '0 25 \* \* \*': hour '25' is wrong"
    logged serve "settings.refused: the settings of schedule bad_zone were refused: time zone 'Mars/Olympus' does not exist"
    logged serve "settings.refused: the settings of schedule bad_mode were refused: catch_up must be none, last or all, not 'some'"
    [ "$(sql "select string_agg(name, ',') from millrace.schedules")" = fine ]
    signal serve TERM
    ended serve
    [ "$status" -eq 0 ]
    sql "select millrace.unschedule('fine')"
}
