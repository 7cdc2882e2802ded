#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# `millrace top` on a terminal: what it shows, its keys, other sizes, names that would write to
# the terminal, a server that goes away, and that the terminal is as before when it ends.

bats_require_minimum_version 1.5.0
load ../lib/server
load ../lib/terminal

setup_file()
{
    private_server live
    "$MR_BIN" migrate >/dev/null
    sql "select millrace.enqueue('send', queue => 'mail', priority => 10), millrace.enqueue('send', queue => 'mail'),
                millrace.enqueue('resize', queue => 'images'), millrace.enqueue('k', queue => '日本語')" >/dev/null
    sql "select count(*) from millrace.enqueue_many('k', array_fill('{}'::jsonb, array[1500]), 'deep')" >/dev/null
}

teardown_file()
{
    remove_private_server
}

setup()
{
    command -v tmux >/dev/null || skip 'tmux is not installed: tools/deps test'
    need_terminal
}

teardown()
{
    close_terminal
}

# The line of the screen that begins with $1.
line_of()
{
    screen | grep -m1 "^$1"
}

# The row that is selected: tmux prints the sequences with -e, and it is the one that is reversed
# between the titles and the keys.
selected()
{
    in_terminal capture-pane -p -e -t t | sed -n '6,$p' | grep -m1 $'^\\(\033\\[[0-9;]*m\\)*\033\\[\\([0-9]*;\\)*7m' | sed $'s/\033\\[[0-9;]*m//g' | awk '{ print $1 }'
}

selected_is()
{
    [ "$(selected)" = "$1" ]
}

@test "the list: queues with their figures, sums, the log" {
    open_terminal 100 24 "$MR_BIN" top
    shows 'sorted by name'
    shows 'deep'
    [[ $(line_of queues) == 'queues '*'  available '*'  running '*'  scheduled '*'  retrying '*'  dead '* ]]
    [[ $(line_of deep) =~ ^deep\ +1500\ +0\ +0\ +0\ +0\  ]]
    [[ $(line_of 日本語) =~ ^日本語\ +1\ +0\  ]]
    on_screen 'of 16 segments in use'
    on_screen 'PostgreSQL'
    # the columns of a wide name stand where those of the others do
    [ "$(line_of QUEUE | sed 's/AVAIL.*//' | wc -m)" -gt 10 ]
}

# A hundred jobs more, and whether the full height of a curve shows by now.
busy_is_drawn()
{
    sql "select count(*) from millrace.enqueue_many('k', array_fill('{}'::jsonb, array[100]), 'busy')"
    sql "select millrace.complete(c.lease) from (select distinct lease from millrace.claim('busy', 'w', 100)) c"
    on_screen '█'
}

@test "rates and the curve, as jobs come and go" {
    open_terminal 140 24 "$MR_BIN" top --interval 500ms
    shows 'sorted by name'
    wait_until 30 busy_is_drawn
    shows '█'
    wait_until 10 eval '[[ $(line_of busy) =~ (▁|▂|▃|▄|▅|▆|▇|█) ]]'
    sql "select millrace.purge('busy'); select millrace.drop_queue('busy')" >/dev/null
    hides busy
}

@test "keys: select, sort, help, quit" {
    open_terminal 100 24 "$MR_BIN" top
    shows 'deep'
    wait_until 5 selected_is deep
    press j
    wait_until 5 selected_is images
    press Down
    wait_until 5 selected_is mail
    press k Up
    wait_until 5 selected_is deep
    press Up
    wait_until 5 selected_is deep
    press End
    wait_until 5 selected_is 日本語
    press Home
    wait_until 5 selected_is deep
    press s
    shows 'sorted by available'
    [ "$(screen | sed -n 7p | awk '{ print $1 }')" = deep ]
    press S
    shows 'sorted by name'
    press '?'
    shows 'look into the queue'
    press Escape
    hides 'look into the queue'
    # what is no key does nothing
    press F5 Tab x ä
    shows 'sorted by name'
    press q
    shows 'ended 0'
    shows ' icanon'
    shows ' echo '
}

@test "into a queue: settings, lanes, workers, jobs, errors; scrolling; and back" {
    sql "select millrace.fail(c.lease, c.id, 'no route to host', retry => false) from millrace.claim('images', 'painter', 1) c" >/dev/null
    sql "select millrace.enqueue('resize', queue => 'images')" >/dev/null
    open_terminal 100 45 "$MR_BIN" top
    shows images
    press j Enter
    shows 'queue images'
    shows 'no route to host'
    on_screen 'painter'
    on_screen 'jobs that wait longest'
    on_screen 'max_attempts 3'
    press Escape
    shows 'sorted by name'
    press j
    wait_until 5 selected_is mail
    press Enter
    shows 'lanes: priority'
    resize_terminal 100 14
    hides 'max_attempts 3'
    press End
    shows 'warn_depth 100'
    press k k Home
    shows 'queue mail'
    press q
    shows 'ended 0'
}

@test "a queue is paused and resumed after a question" {
    open_terminal 100 24 "$MR_BIN" top
    shows deep
    press j j
    wait_until 5 selected_is mail
    press p
    shows 'pause mail? (y/n)'
    press n
    hides 'pause mail?'
    [ "$(sql "select paused from millrace.queues where queue = 'mail'")" = f ]
    press p
    shows 'pause mail? (y/n)'
    press y
    shows 'pause mail is done'
    [ "$(sql "select paused from millrace.queues where queue = 'mail'")" = t ]
    wait_until 5 eval '[[ $(line_of mail) =~ ^mail\ +P\  ]]'
    press p y
    shows 'resume mail is done'
    [ "$(sql "select paused from millrace.queues where queue = 'mail'")" = f ]
}

@test "who may not pause is told so" {
    sql 'create role looker login' && sql 'grant millrace_reader to looker' && sql "alter role looker password '$PGPASSWORD'"
    open_terminal 100 24 "$MR_BIN" top --dsn "host=$PGHOST port=$PGPORT user=looker dbname=postgres"
    shows deep
    press p y
    shows 'permission denied for function pause'
    [ "$(sql "select paused from millrace.queues where queue = 'deep'")" = f ]
    press q
    shows 'ended 0'
}

@test "other sizes: narrow, low, wide, and tiny" {
    open_terminal 80 24 "$MR_BIN" top
    shows OLDEST
    resize_terminal 40 24
    hides OLDEST
    shows AVAIL
    resize_terminal 160 50
    shows OLDEST
    shows deep
    [ "$(screen | grep -c '^q quit')" -eq 1 ]
    # the rows are for the queues, then, and what is asked
    resize_terminal 20 5
    hides available
    shows deep
    on_screen 'q quit'
    press j
    wait_until 5 row_shows images
    press p
    shows 'pause images? (y/n)'
    press n
    hides 'pause images?'
    press '?'
    shows 'up, k'
    press End
    shows OLDEST
    press Escape
    resize_terminal 20 3
    shows images
    resize_terminal 5 2
    resize_terminal 1 1
    resize_terminal 80 24
    shows available
    shows deep
    press q
    shows 'ended 0'
}

row_shows()
{
    screen | grep -q "^$1"
}

@test "no colours where they are not wanted, and none but one look on a terminal that cannot move" {
    open_terminal 100 24 "$MR_BIN" top
    shows deep
    press j
    wait_until 5 selected_is images
    in_terminal capture-pane -p -e -t t | grep -q $'\033\\[[0-9;]*3[13]m'
    close_terminal
    open_terminal 100 24 env NO_COLOR=1 "$MR_BIN" top
    shows deep
    [ "$(in_terminal capture-pane -p -e -t t | grep -c $'\033\\[[0-9;]*3[0-7]m')" -eq 0 ]
    # what is selected and what is bad can be told all the same
    press j
    wait_until 5 selected_is images
    in_terminal capture-pane -p -e -t t | grep -q $'\033\\[[0-9;]*1m'
    close_terminal
    open_terminal 100 40 env TERM=dumb "$MR_BIN" top --interval 100ms
    shows 'ended 0'
    on_screen QUEUE
    [[ $(line_of deep) =~ ^deep\ +1500\  ]]
    [ "$(in_terminal display-message -p -t t '#{alternate_on}')" = 0 ]
}

@test "a database that hangs: keys work, it is said, and it goes on by itself" {
    open_terminal 100 24 "$MR_BIN" top --interval 200ms
    shows deep
    backend=$(sql "select pid from pg_stat_activity where application_name = 'millrace top'")
    kill -s STOP "$backend"
    shows 'the database has not answered for'
    press '?'
    shows 'look into the queue'
    press Escape
    hides 'look into the queue'
    press j
    wait_until 5 selected_is images
    kill -s CONT "$backend"
    hides 'the database has not answered'
    press q
    shows 'ended 0'
}

@test "an answer is about the queue that was asked about, also when it is gone, and is kept while the database is busy" {
    sql "select millrace.set_queue('aaa', '{}')" >/dev/null
    open_terminal 100 24 "$MR_BIN" top --interval 200ms
    shows aaa
    press Home
    wait_until 5 selected_is aaa
    press p
    shows 'pause aaa? (y/n)'
    sql "select millrace.drop_queue('aaa')" >/dev/null
    wait_until 5 selected_is deep
    press y
    shows "queue 'aaa'"
    [ "$(sql "select count(*) from millrace.queues where paused")" = 0 ]
    backend=$(sql "select pid from pg_stat_activity where application_name = 'millrace top'")
    kill -s STOP "$backend"
    shows 'the database has not answered for'
    press p
    shows 'pause deep? (y/n)'
    press y
    kill -s CONT "$backend"
    shows 'pause deep is done'
    sql "select millrace.resume('deep')"
    press q
    shows 'ended 0'
}

@test "Ctrl-Z gives the terminal back, and it goes on where it was" {
    local pid
    open_terminal 100 24 "$MR_BIN" top
    shows deep
    pid=$(pgrep -f -x "$MR_BIN top" -P "$(in_terminal display-message -p -t t '#{pane_pid}')")
    kill -s TSTP "$pid"
    wait_until 5 eval "grep -q '^State:.*T' /proc/$pid/status"
    [ "$(in_terminal display-message -p -t t '#{alternate_on}')" = 0 ]
    kill -s CONT "$pid"
    shows 'sorted by name'
    [ "$(in_terminal display-message -p -t t '#{alternate_on}')" = 1 ]
    press q
    shows 'ended 0'
}

@test "names that would write to the terminal, or are too long" {
    sql "select millrace.enqueue(E'\x1b]0;owned\x07kind', queue => E'a\x1b[2J\x1b[31mevil\u009b5m\u202e\n'), millrace.enqueue('k', queue => repeat('長', 60))" >/dev/null
    open_terminal 100 40 "$MR_BIN" top
    shows 'a [2J [31mevil 5m'
    shows '長…'
    wait_until 5 selected_is a
    press Enter
    shows ' ]0;owned kind'
    [ "$(in_terminal display-message -p -t t '#{pane_title}')" != owned ]
    press q
    shows 'ended 0'
    sql "select millrace.drop_queue(queue) from (select millrace.purge(queue), queue from millrace.queues where queue like 'a%' or queue like '長%') q" >/dev/null
}

@test "SIGINT, SIGTERM and a lost keyboard end it, and the terminal is as before" {
    local signal
    for signal in INT TERM; do
        open_terminal 100 24 "$MR_BIN" top
        shows deep
        kill -s "$signal" "$(pgrep -f -x "$MR_BIN top" -P "$(in_terminal display-message -p -t t '#{pane_pid}')")"
        shows 'ended 0'
        shows ' icanon'
        [ "$(in_terminal display-message -p -t t '#{alternate_on}')" = 0 ]
        [ "$(in_terminal display-message -p -t t '#{cursor_flag}')" = 1 ]
        close_terminal
    done
    open_terminal 100 24 "$MR_BIN" top
    shows deep
    press C-c
    shows 'ended 0'
}

@test "a queue that is dropped while it is looked into" {
    sql "select millrace.set_queue('gone', '{}')" >/dev/null
    open_terminal 100 24 "$MR_BIN" top
    shows gone
    press j
    wait_until 5 selected_is gone
    press Enter
    shows 'queue gone'
    sql "select millrace.drop_queue('gone')" >/dev/null
    shows "queue 'gone'"
    shows 'sorted by name'
    press q
    shows 'ended 0'
}

@test "a server that goes away and comes back" {
    open_terminal 100 24 "$MR_BIN" top --interval 200ms
    shows deep
    "$MR_ROOT/tools/pgserver" stop "$MR_SERVER"
    shows 'no connection, trying again'
    on_screen deep
    press '?'
    shows 'look into the queue'
    press Escape
    "$MR_ROOT/tools/pgserver" start "$MR_SERVER"
    hides 'no connection'
    sql "select millrace.enqueue('k', queue => 'after')" >/dev/null
    shows after
    press q
    shows 'ended 0'
    sql "select millrace.purge('after')" >/dev/null && sql "select millrace.drop_queue('after')" >/dev/null
}

@test "no server, no schema: it waits and says why" {
    open_terminal 100 24 "$MR_BIN" top --dsn 'host=/nonexistent dbname=x'
    shows 'no connection, trying again: cannot connect to the database'
    press q
    shows 'ended 0'
    close_terminal
    open_terminal 100 24 "$MR_BIN" top --dsn "host=$PGHOST port=$PGPORT user=$PGUSER dbname=template1"
    shows 'does not exist'
    press q
    shows 'ended 0'
}

@test "one look where there is no terminal" {
    run --separate-stderr "$MR_BIN" top --interval 100ms
    [ "$status" -eq 0 ]
    [[ $output != *$'\033'* ]]
    grep -qE '^deep +1500 +0 +0 +0 +0 +0 ' <<<"$output"
    grep -q '^queues ' <<<"$output"
    run --separate-stderr "$MR_BIN" top --once --dsn 'host=/nonexistent dbname=x'
    [ "$status" -eq 3 ]
    run "$MR_BIN" top --interval 10ms
    [ "$status" -eq 2 ]
    run "$MR_BIN" top --interval x
    [ "$status" -eq 2 ]
}
