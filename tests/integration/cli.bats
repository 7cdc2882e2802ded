#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# The command line: status, job, pause, resume, queue, retry; how errors look; and that help,
# manual and docs/cli.md say the same. Enqueuing, dead letters, schedules and cancelling have files of
# their own.

bats_require_minimum_version 1.5.0
load ../lib/server

setup_file()
{
    fresh_db
}

teardown_file()
{
    drop_db
}

json()
{
    jq -rc "$1" <<<"$output"
}

# Claims one job of a queue and fails it.
fail_one()
{
    sql "select millrace.fail(c.lease, c.id, '$2', retry_in => '1 ms') from millrace.claim('$1', 'w') c"
}

# ---- help, manual and docs/cli.md --------------------------------------------------------

commands()
{
    "$MR_BIN" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p'
}

# Options with the name of their value, as each of the three has them.
help_options()
{
    "$MR_BIN" "$1" --help | sed -nE 's/^  (--?[a-z-]+( [A-Z][A-Z-]*)?)( .*|$)/\1/p' | sort -u
}

man_options()
{
    # several on a line are separated by commas; FILE[:FUNCTION] is FILE
    grep -E '^\*-' "$MR_ROOT/docs/man/millrace-$1.1.scd" | sed -e 's/, /\n/g' -e 's/\[.*//' | tr -d '*_' | sort -u
}

docs_options()
{
    awk -v name="## millrace $1" '/^## / { on = $0 == name } on' "$MR_ROOT/docs/cli.md" |
        sed -nE 's/^\| `(--?[^`]*)` \|.*/\1/p' | sort -u
}

@test "the commands of --help, the manual, docs/cli.md and the installed pages are the same" {
    local pages
    commands | sort >"$BATS_TEST_TMPDIR/help"
    [ "$(wc -l <"$BATS_TEST_TMPDIR/help")" -ge 9 ]
    sed -n 's/^## millrace //p' "$MR_ROOT/docs/cli.md" | sort | diff "$BATS_TEST_TMPDIR/help" -
    sed -n '/^# COMMANDS/,/^# CHOOSING/s/^\*\([a-z]*\)\*$/\1/p' "$MR_ROOT/docs/man/millrace.1.scd" | sort | diff "$BATS_TEST_TMPDIR/help" -
    for pages in "$MR_ROOT"/docs/man/millrace-*.1.scd; do
        pages=${pages##*/millrace-}
        printf '%s\n' "${pages%.1.scd}"
    done | sort | diff "$BATS_TEST_TMPDIR/help" -
    grep -oE "'millrace-[a-z]+\.1'" "$MR_ROOT/docs/man/meson.build" | sed "s/'millrace-\(.*\)\.1'/\1/" | sort | diff "$BATS_TEST_TMPDIR/help" -
}

@test "the options of each command's --help, manual page and section of docs/cli.md are the same" {
    local command bad=0
    for command in $(commands); do
        help_options "$command" >"$BATS_TEST_TMPDIR/help"
        grep -qx -e --help "$BATS_TEST_TMPDIR/help"
        man_options "$command" | diff --label "$command --help" --label 'manual' -u "$BATS_TEST_TMPDIR/help" - || bad=1
        docs_options "$command" | diff --label "$command --help" --label 'docs/cli.md' -u "$BATS_TEST_TMPDIR/help" - || bad=1
    done
    [ $bad -eq 0 ]
}

@test "lines of help are at most 100 columns wide" {
    local command
    for command in $(commands); do
        run "$MR_BIN" "$command" --help
        [ "$status" -eq 0 ]
        has "usage: millrace $command"
        if grep -E '.{101}' <<<"$output"; then
            return 1
        fi
    done
}

# ---- what every command has in common ----------------------------------------------------

@test "wrong usage exits 2 before anything is connected" {
    local usage
    export MILLRACE_DSN='host=/nonexistent dbname=x'
    for usage in '' nosuch 'status a b' 'job' 'job x' 'job -1' 'job 0' 'job 9223372036854775808' 'job 1 2' pause \
        'pause a b' 'resume' cancel 'cancel x' 'cancel 0' 'cancel 1 2' 'cancel 1 --reason' \
        'dead' 'dead lst' 'dead show' 'dead show x' 'dead replay' 'dead replay x' \
        'dead replay 1 --queue q' 'dead list --limit x' 'dead purge' 'dead purge q --older-than 7' queue \
        'queue show' 'queue set' 'queue set q lease' 'queue set q =1' retry 'retry set' 'retry set k --factor 0.5' \
        'retry set k --jitter 2' 'retry set k --base 5' 'retry set k --max-attempts 0' 'enqueue' 'enqueue k {' \
        'enqueue k --priority 100' 'enqueue k --priority -1' 'enqueue k --max-attempts 0' 'enqueue k --delay 5' \
        'enqueue k --delay 5s --at now' 'enqueue k --meta {' 'enqueue k {} --file x' 'enqueue k --skip 1' \
        'enqueue k --chunk 0' 'enqueue k {} x' 'enqueue k --on-conflict replace' 'enqueue k --unique-for 1h' \
        'enqueue k --unique u --unique-for 5' 'enqueue k --unique' 'status --jsn' cron 'cron lst' 'cron list x' 'cron set' 'cron set n @daily' \
        'cron set n @daily k {' 'cron set n @daily k {} x' 'cron set n @daily k --priority -1' 'cron remove' 'cron remove a b' \
        'cron next' 'cron next @daily --count 0' 'cron next @daily --count 101' 'cron next @daily --count x' \
        'cron next nightly --timezone UTC' 'doctor x' 'top x' 'top --interval 1ms' 'top --json' 'cron enable' 'cron disable' 'cron run' 'cron run a b' cache 'cache put' 'cache get' 'cache set k 1' 'cache set k 1 --ttl 0s' 'cache set k { --ttl 1s' 'cache delete' \
        'cache delete k --like k' 'cache stats x' lock 'lock n' 'lock n --ttl 5ms -- true' 'lock n --owner me -- true' \
        capture 'capture ad' 'capture add t q' 'capture add t q k x' 'capture list x' 'capture remove t' 'capture enable t' 'capture disable t q x' \
        'capture add t q k --when'; do
        # shellcheck disable=SC2086  # several arguments
        run "$MR_BIN" $usage
        echo "$usage: $status: $output"
        [ "$status" -eq 2 ]
        [[ ${lines[0]} == 'millrace: '* ]]
    done
}

@test "a database that cannot be reached exits 3" {
    local usage
    export MILLRACE_DSN='host=/nonexistent dbname=x'
    for usage in status doctor top 'job 1' 'pause q' 'resume q' 'cancel 1' 'dead list' 'dead show 1' 'dead replay 1' 'dead replay --queue q' \
        'dead purge q --yes' 'queue list' 'queue show q' 'queue set q' 'retry list' 'retry set k' 'enqueue k' \
        'enqueue k --file /dev/null' 'cron list' 'cron set n @daily k' 'cron remove n' 'cron next n' 'cron next @daily' \
        'cron enable n' 'cron disable n' 'cron run n' 'capture list' 'capture add t q k' 'capture remove t q' 'capture enable t q' \
        'capture disable t q'; do
        # shellcheck disable=SC2086  # several arguments
        run "$MR_BIN" $usage
        echo "$usage: $status: $output"
        [ "$status" -eq 3 ]
        [[ ${lines[0]} == 'millrace: cannot connect to the database: '* ]]
        [[ ${lines[-1]} == 'hint: '* ]]
    done
}

@test "a database without the schema says what to do" {
    local usage
    for usage in status doctor 'top --interval 100ms' 'job 1' 'pause q' 'cancel 1' 'dead list' 'queue list' 'retry list' 'enqueue k' 'cron list' 'cron set n @daily k' \
        'cron next @daily' 'cron run n'; do
        # shellcheck disable=SC2086  # several arguments
        run "$MR_BIN" $usage --dsn "dbname=postgres"
        echo "$usage: $status: $output"
        [ "$status" -eq 1 ]
        has 'hint: Install or upgrade the schema with `millrace migrate`.'
    done
}

@test "an unknown command names the nearest" {
    run "$MR_BIN" statsu
    [ "$status" -eq 2 ]
    has 'The nearest is `millrace status`'
}

@test "a full disk and a closed pipe are errors, not crashes" {
    local usage
    "$MR_BIN" enqueue pipe --queue pipe
    # A pipe that nobody reads any more.
    mkfifo "$BATS_TEST_TMPDIR/pipe"
    # shellcheck disable=SC2094
    exec 5<>"$BATS_TEST_TMPDIR/pipe" 6>"$BATS_TEST_TMPDIR/pipe" 5>&-
    for usage in --help --version status 'status --json' doctor 'doctor --json' 'top --interval 100ms' 'queue list' 'queue list --json' 'queue show pipe' 'retry list' \
        'dead list' 'job 1' 'enqueue --help' 'dead --help' 'pause pipe' 'resume pipe --json' 'enqueue pipe --queue pipe' \
        'cancel 1 --json' \
        'cron list' 'cron set pipe @daily k' 'cron next @daily' 'cron next @daily --json' 'cron disable pipe' 'cron run pipe'; do
        # shellcheck disable=SC2086  # several arguments
        run bash -c '"$0" "$@" >/dev/full' "$MR_BIN" $usage
        echo "full: $usage: $status: $output"
        [ "$status" -eq 1 ]
        has 'cannot write to standard output'
        # shellcheck disable=SC2086
        run bash -c '"$0" "$@" >&6' "$MR_BIN" $usage
        echo "closed: $usage: $status: $output"
        [ "$status" -eq 1 ]
        has 'cannot write to standard output: Broken pipe'
    done
    exec 6>&-
}

# ---- status ------------------------------------------------------------------------------

@test "status shows each queue and what is wrong" {
    "$MR_BIN" queue set st warn_depth=2 critical_depth=3
    "$MR_BIN" enqueue a --queue st
    "$MR_BIN" enqueue a --queue st
    "$MR_BIN" enqueue a --queue st --delay 1h
    run --separate-stderr "$MR_BIN" status
    [ "$status" -eq 0 ]
    [[ ${lines[0]} == QUEUE*AVAIL*RUN*SCHED*RETRY*DEAD*DONE/H*FAIL/H*OLDEST*WAIT*TOOK ]]
    [[ $(grep '^st ' <<<"$output") =~ ^st\ +2\ +0\ +1\ +0\ +0\  ]]
    has 'log: 1 of 16 segments in use'
    "$MR_BIN" enqueue a --queue st
    run "$MR_BIN" status st
    [ "$status" -eq 0 ]
    [ "$(grep -c '^st ' <<<"$output")" -eq 1 ]
    [ "$(grep -cE '^(WARNING|CRITICAL): ' <<<"$output")" -eq 1 ]
    has 'WARNING: st: 3 pending'
}

@test "status has workers, schedules, dead letters and paused queues, and fits a screen of 80 by 24" {
    local before=$MILLRACE_DSN queue
    fresh_db
    for queue in one two three four five; do
        "$MR_BIN" enqueue k --queue $queue
        "$MR_BIN" cron set "$queue's" '0 2 * * *' k --queue $queue >/dev/null
    done
    "$MR_BIN" cron set alone @yearly k --inactive >/dev/null
    sql "select millrace.fail(c.lease, c.id, 'no', retry => false) from millrace.claim('one', 'w-one') c" >/dev/null
    sql "select count(*) from millrace.claim('two', E'w\x1b[2J-two')" >/dev/null
    "$MR_BIN" pause three
    run --separate-stderr "$MR_BIN" status
    [ "$status" -eq 0 ]
    echo "$output"
    [[ $output != *$'\033'* ]]
    [ "${#lines[@]}" -le 24 ]
    if grep -E '.{81}' <<<"$output"; then
        false
    fi
    has 'dead letters: 1 of one'
    has 'workers: w [2J-two (1 of two), w-one (0 of one)'
    has 'paused: three'
    grep -qE "^schedules: five's in [0-9.]+(s|m|h), four's in .* and 3 more$" <<<"$output"
    run --separate-stderr "$MR_BIN" status two --json
    [ "$(json '.workers | map(.jobs_running) | join(" ")')" = 1 ]
    [ "$(json '.schedules | map(.name) | join(" ")')" = "two's" ]
    drop_db
    export MILLRACE_DSN=$before PGDATABASE=${before##*dbname=}
}

@test "status as JSON" {
    "$MR_BIN" enqueue a --queue 'st "2" ü'
    run --separate-stderr "$MR_BIN" status --json
    [ "$(json '.queues[] | select(.queue == "st \"2\" ü") | .available')" = 1 ]
    [ "$(json '.queues[0] | keys_unsorted | join(" ")')" = 'queue available running scheduled retrying dead completed_1h failed_1h oldest_seconds avg_wait_seconds_1h avg_run_seconds_1h status message' ]
    [ "$(json .log.status)" = OK ]
    run --separate-stderr "$MR_BIN" --json status
    [ "$status" -eq 2 ]
    run --separate-stderr "$MR_BIN" status 'st "2" ü' --json
    [ "$(json '.queues | length')" = 1 ]
}

@test "an unknown queue is answered with the nearest one" {
    local usage
    "$MR_BIN" queue set letters
    for usage in 'status lettres' 'pause lettres' 'resume lettres' 'queue show lettres' 'dead list lettres' \
        'dead replay --queue lettres' 'dead purge lettres --yes'; do
        # shellcheck disable=SC2086  # several arguments
        run "$MR_BIN" $usage
        echo "$usage: $status: $output"
        [ "$status" -eq 1 ]
        [ "${lines[0]}" = "millrace: there is no queue 'lettres'" ]
        has "hint: The nearest is 'letters'"
    done
}

# ---- job ---------------------------------------------------------------------------------

@test "the story of a job" {
    local id
    id=$("$MR_BIN" enqueue write '{"to": "ada"}' --queue story --ref r1 --max-attempts 2)
    run "$MR_BIN" job "$id"
    [ "${lines[0]}" = "job $id: write, available, attempt 1 of 2" ]
    has 'args         {"to": "ada"}'
    has 'ref          r1'
    has '  enqueued'
    fail_one story $'no route\nto \033[31mhost'
    wait_until 20 bash -c "psql -XAtqc 'select count(*) from millrace.maintain()'; [ \"\$(psql -XAtqc \"select millrace.depth('story')\")\" = 1 ]"
    fail_one story 'still none'
    run "$MR_BIN" job "$id"
    [ "$status" -eq 0 ]
    [ "${lines[0]}" = "job $id: write, dead, attempt 2 of 2" ]
    has 'attempt 1 claimed by w'
    has 'attempt 1 failed after'
    has 'attempt 2 failed for the last time after'
    # Both lines of the error, and nothing that a terminal would obey.
    has $'      no route\n      to  [31mhost'
    [[ $output != *$'\033'* ]]
    [[ $output == *'enqueued'*'attempt 1 claimed'*'attempt 1 failed'*'attempt 2 claimed'*'attempt 2 failed'* ]]
    run "$MR_BIN" job "$id" --json
    [ "$(json .status)" = dead ]
    [ "$(json '.attempts[1].error')" = 'still none' ]
    [ "$(json .args.to)" = ada ]
}

@test "the story of a job that only the archive has" {
    "$MR_BIN" queue set kept
    sql "insert into millrace.archive (finished_at, keep_until, job_id, created_at, queue_id, lane, slot, attempt, attempts_limit, outcome, holder, claimed_at, job_kind, payload_args)
         select now(), now() + interval '1 day', 77000, now() - interval '1 hour', q.queue_id, (q.queue_id << 12) + (50 << 5), 0, 2, 3, 'c', 'w7', now() - interval '1 minute', 'old', '{}'
           from millrace.queue q where q.queue_name = 'kept'"
    run "$MR_BIN" job 77000
    [ "$status" -eq 0 ]
    [ "${lines[0]}" = 'job 77000: old, completed, attempt 2 of 3' ]
    [[ $output == *'  enqueued'*'  attempt 2 claimed by w7'*'  completed' ]]
}

@test "a job that is not there" {
    run "$MR_BIN" job 999999999
    [ "$status" -eq 1 ]
    [ "${lines[0]}" = 'millrace: there is no job 999999999' ]
    has 'hint: Check the id'
    [[ $output != *PL/pgSQL* ]]
}

# ---- pause and resume --------------------------------------------------------------------

@test "pause and resume" {
    "$MR_BIN" enqueue a --queue stop
    run "$MR_BIN" pause stop
    [ "$output" = 'paused: stop' ]
    [ "$(sql "select count(*) from millrace.claim('stop')")" = 0 ]
    run "$MR_BIN" resume stop --json
    [ "$output" = '{"queue":"stop","paused":false}' ]
    [ "$(sql "select count(*) from millrace.claim('stop')")" = 1 ]
    run "$MR_BIN" --version pause
    [ "$status" -eq 0 ]
}

# ---- queue -------------------------------------------------------------------------------

@test "settings of a queue: texts, numbers, JSON, null" {
    run "$MR_BIN" queue set tuned lease=1min max_attempts=5 retention='"2 days"' durability=relaxed
    [ "$status" -eq 0 ]
    has 'queue tuned: active'
    [ "$(sql "select (settings ->> 'lease', settings ->> 'max_attempts', settings ->> 'retention', settings ->> 'durability') from millrace.queues where queue = 'tuned'")" = '(00:01:00,5,"2 days",relaxed)' ]
    run "$MR_BIN" queue set --json tuned lease=null
    [ "$(json .settings.lease)" = 00:00:30 ]
    [ "$(json .settings.max_attempts)" = 5 ]
    run "$MR_BIN" queue show tuned
    [[ $(grep '^durability ' <<<"$output") =~ ^durability\ +relaxed$ ]]
    run "$MR_BIN" queue list --json
    [ "$(json '.queues[] | select(.queue == "tuned") | .paused')" = false ]
}

@test "limits of a queue are set, shown and taken away" {
    run "$MR_BIN" queue set limited concurrency=4 rate=100/s
    [ "$status" -eq 0 ]
    run "$MR_BIN" queue show limited
    [[ $(grep '^concurrency ' <<<"$output") =~ ^concurrency\ +4$ ]]
    [[ $(grep '^rate ' <<<"$output") =~ ^rate\ +100/s$ ]]
    run "$MR_BIN" queue set limited rate=100
    [ "$status" -eq 1 ]
    [ "${lines[0]}" = "millrace: setting rate does not accept '100': it has no slash, or more than one" ]
    has 'hint: Write jobs per time'
    run "$MR_BIN" queue set limited --json concurrency=null rate=null
    [ "$(json '.settings | [.concurrency, .rate] | tostring')" = '[null,null]' ]
}

@test "a wrong setting changes nothing and names the right one" {
    "$MR_BIN" queue set wrong
    run "$MR_BIN" queue set wrong max_attempts=7 leese=1min
    [ "$status" -eq 1 ]
    [ "${lines[0]}" = "millrace: there is no setting 'leese'" ]
    has 'hint: Did you mean lease?'
    [[ $output != *PL/pgSQL* ]]
    run "$MR_BIN" queue set wrong max_attempts=many
    [ "$status" -eq 1 ]
    run "$MR_BIN" queue set wrong fair=true ordered=true
    [ "$status" -eq 1 ]
    [ "${lines[0]}" = "millrace: a fair queue cannot have ordered" ]
    [ "$(sql "select settings ->> 'max_attempts' from millrace.queues where queue = 'wrong'")" = 3 ]
}

@test "a tenant of a fair queue is looked at, paused and resumed" {
    "$MR_BIN" queue set shared fair=true
    "$MR_BIN" enqueue k '{}' --queue shared --tenant anna
    "$MR_BIN" enqueue k '{}' --queue shared --tenant 'bert "b"'
    run "$MR_BIN" pause shared --tenant anna
    [ "$status" -eq 0 ]
    [ "$output" = 'paused: shared, tenant anna' ]
    run "$MR_BIN" pause shared --tenant 'bert "b"' --json
    [ "$output" = '{"queue":"shared","tenant":"bert \"b\"","paused":true}' ]
    run "$MR_BIN" status shared --tenants
    [ "$status" -eq 0 ]
    [[ ${lines[0]} == TENANT* ]]
    [[ ${lines[1]} =~ ^anna\ +1\ .*paused$ ]]
    run "$MR_BIN" status shared --tenants --json
    [ "$(jq -c '[.tenants[] | .tenant, .available, .paused]' <<<"$output")" = '["anna",1,true,"bert \"b\"",1,true]' ]
    run "$MR_BIN" resume shared --tenant anna
    [ "$output" = 'resumed: shared, tenant anna' ]
    [ "$(sql "select tenant from millrace.claim('shared')")" = anna ]
    run "$MR_BIN" pause shared --tenant nobody
    [ "$status" -eq 1 ]
    [ "${lines[0]}" = "millrace: queue 'shared' has no tenant 'nobody'" ]
    "$MR_BIN" queue set plain
    run "$MR_BIN" pause plain --tenant anna
    [ "$status" -eq 1 ]
    has 'is not fair'
    run "$MR_BIN" status --tenants
    [ "$status" -eq 2 ]
    has 'Name the queue'
    run "$MR_BIN" status plain --tenants
    [ "$status" -eq 1 ]
}

@test "names of queues, one a line" {
    "$MR_BIN" queue set 'two words'
    run "$MR_BIN" queue list --names
    [ "$output" = "$(sql 'select queue from millrace.queues order by queue')" ]
    has 'two words'
    run "$MR_BIN" queue list
    [[ ${lines[0]} == QUEUE*STATE*LEASE* ]]
}

# ---- retry -------------------------------------------------------------------------------

@test "retry policies" {
    run "$MR_BIN" retry set hook --max-attempts 10 --base 10s --factor 1.5 --cap 6h --jitter 0
    [ "$status" -eq 0 ]
    [[ ${lines[1]} =~ ^hook\ +10\ +00:00:10\ +1.5\ +06:00:00\ +0$ ]]
    # What is not given is the default again.
    run "$MR_BIN" retry set hook --cap 2d --json
    [ "$output" = '{"kind":"hook","max_attempts":3,"base":"00:00:02","factor":2,"cap":"48:00:00","jitter":0.5}' ]
    run "$MR_BIN" retry list --json
    [ "$(json '[.retries[].kind]')" = '["hook"]' ]
    run "$MR_BIN" retry list
    [[ ${lines[1]} =~ ^hook ]]
}

# ---- who may -----------------------------------------------------------------------------

@test "a reader looks and does not act" {
    local user=r_$BASHPID
    sql "create role $user login in role millrace_reader"
    export MILLRACE_DSN="$MILLRACE_DSN user=$user"
    "$MR_BIN" queue set looked --dsn "dbname=$PGDATABASE"
    for usage in status 'queue list' 'queue show looked' 'retry list' 'dead list' 'cron list' 'cron next @daily'; do
        # shellcheck disable=SC2086  # several arguments
        "$MR_BIN" $usage
    done
    for usage in 'pause looked' 'queue set looked' 'retry set k' 'enqueue k' 'dead purge looked --yes' \
        'cron set n @daily k' 'cron remove n' 'cron run n'; do
        # shellcheck disable=SC2086
        run "$MR_BIN" $usage
        [ "$status" -eq 1 ]
        has 'permission denied for function'
    done
    sql "drop role $user"
}
