#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# Completion for bash: what a person would be offered behind each of these lines.

bats_require_minimum_version 1.5.0
load ../lib/server

setup_file()
{
    fresh_db
    "$MR_BIN" queue set mail
    "$MR_BIN" queue set 'main hall'
    "$MR_BIN" queue set images
    "$MR_BIN" cron set nightly @daily report --queue mail
    "$MR_BIN" cron set 'new year' @yearly report --queue mail
}

teardown_file()
{
    drop_db
}

# Completes the last of the words; prints the candidates in one line.
complete_words()
{
    bash --norc -c '
        source "$0"
        COMP_WORDS=("$@")
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        complete -p millrace >/dev/null || exit 1
        _millrace
        printf "%s\n" "${COMPREPLY[@]}" | sort | xargs -d "\n"
    ' "$MR_ROOT/completions/millrace.bash" "$MR_BIN" "$@"
}

offers()
{
    local expected=$1
    shift
    run complete_words "$@"
    if [ "$output" != "$expected" ]; then
        printf 'millrace %s\noffered: %s\nexpected: %s\n' "$*" "$output" "$expected" >&2
        return 1
    fi
}

@test "commands and verbs" {
    offers "$("$MR_BIN" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p' | sort | xargs)" ''
    offers 'resume retry' re
    offers '--help --version' --
    offers 'list purge replay show' dead ''
    offers 'set show' queue s
    offers 'disable enable list next remove run set' cron ''
    offers 'remove run' cron r
    offers 'add disable enable list remove' capture ''
    offers '' nosuch ''
}

@test "options of a command and of a verb" {
    offers '--dsn --help --json --names' queue list --
    offers '--max-attempts --meta' enqueue --m
    offers '--unique --unique-for' enqueue letter --un
    offers '' enqueue letter --on-conflict ''
    offers '--older-than' dead purge mail --old
    offers '--kind' dead replay --queue mail --k
    offers '--dsn --help --json --reason' cancel 1 --
    offers '--dsn --help --json --timeout' wait 1 --
    offers '--after --count --dsn --help --json --timezone' cron next --
    # The value of an option is not an argument.
    offers 'images mail main\ hall' dead list --kind letter ''
}

@test "queues, where the database answers" {
    offers 'images mail main\ hall' status ''
    offers 'mail main\ hall' pause ma
    offers 'mail main\ hall' dead purge ma
    offers 'images' enqueue letter --queue i
    offers 'images' enqueue letter --queue = i
    offers 'images' work i
    # One is enough.
    offers '' pause mail ''
    offers '' job ''
    offers '' cancel ''
    offers '' wait ''
}

@test "schedules, where the database answers" {
    offers 'new\ year nightly' cron next ''
    offers 'nightly' cron disable ni
    offers 'nightly' cron set --queue images ni
    offers 'images' cron set nightly @daily report --queue i
    offers '' cron run nightly ''
    offers '' cron list ''
}

@test "queues of a database given with --dsn" {
    local dsn=$MILLRACE_DSN
    export MILLRACE_DSN='host=/nonexistent dbname=x' PGHOST=/nonexistent
    offers '' pause i
    offers 'images' pause --dsn "$dsn" i
}

@test "modes of bench" {
    offers 'single snapshot steady' bench s
    offers 'depth drain' bench wal d
}

# The address takes connections and says nothing.
@test "a database that does not answer is not waited for" {
    local from
    coproc mute { exec perl -MSocket -e 'socket(S, PF_INET, SOCK_STREAM, 0); bind(S, sockaddr_in(0, INADDR_LOOPBACK)); listen(S, 5);
        $| = 1; print((sockaddr_in(getsockname(S)))[0], "\n"); sleep 60' 3>&-; }
    # shellcheck disable=SC2154  # set by coproc
    read -r port <&"${mute[0]}"
    from=$SECONDS
    MILLRACE_DSN="host=127.0.0.1 port=$port dbname=x connect_timeout=30" offers '' pause i
    # shellcheck disable=SC2154
    kill "$mute_PID"
    [ $((SECONDS - from)) -lt 20 ]
}
