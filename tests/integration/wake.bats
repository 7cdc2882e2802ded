#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# Wake-ups: a producer notifies a worker that has said it waits, and nobody else.
#
# A session listens all the time. That nothing came is proved with a fence: a notification of
# our own that is sent afterwards. The server hands them out in the order of commits, so what
# was sent before the fence has arrived before it.

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

setup()
{
    # A queue, and so a channel, for each test.
    q=work$BATS_TEST_NUMBER
    # The first call makes the queue; its word that somebody waits is taken back at once.
    channel=$(sql "select millrace.wait_channel('$q', 'w')")
    forget_waiter
    mkfifo "$BATS_TEST_TMPDIR/in"
    psql -X -q -A -t <"$BATS_TEST_TMPDIR/in" >"$BATS_TEST_TMPDIR/heard" 2>&1 3>&- &
    listener=$!
    exec 7>"$BATS_TEST_TMPDIR/in"
    echo "listen $channel; select 'listening';" >&7
    wait_until 10 heard listening
}

teardown()
{
    exec 7>&-
    wait "$listener" || true
}

forget_waiter()
{
    sql "select setval(('millrace.wait_' || queue_id % 64)::regclass, 0) from millrace.queue where queue_name = '$q'" >/dev/null
}

# psql looks for notifications when a command has ended.
heard()
{
    echo 'select;' >&7
    grep -q "$1" "$BATS_TEST_TMPDIR/heard"
}

fences=0
fence()
{
    fences=$((fences + 1))
    sql "notify $channel, 'fence $fences'"
    wait_until 10 heard "fence $fences\""
}

# How many wake-ups have come since the last question.
known=0
wakes()
{
    local all
    fence
    all=$(grep "notification \"$channel\"" "$BATS_TEST_TMPDIR/heard" | grep -vc fence) || true
    wakes=$((all - known))
    known=$all
}

wait_for_work()
{
    sql "select millrace.wait_channel('$q', 'w')" >/dev/null
}

@test "the channel belongs to the queue" {
    [[ $channel =~ ^millrace_[0-9]+$ ]]
    [ "$(sql "select millrace.wait_channel('$q', 'other')")" = "$channel" ]
    [ "$(sql "select millrace.wait_channel('another', 'w')")" != "$channel" ]
}

@test "a commit wakes a worker that waits" {
    wait_for_work
    sql "select millrace.enqueue('k', queue => '$q')"
    wakes
    [ "$wakes" -eq 1 ]
}

@test "it comes with the commit, not before" {
    wait_for_work
    mkfifo "$BATS_TEST_TMPDIR/producer"
    psql -X -q -A -t <"$BATS_TEST_TMPDIR/producer" >"$BATS_TEST_TMPDIR/produced" 2>&1 3>&- 7>&- &
    exec 8>"$BATS_TEST_TMPDIR/producer"
    echo "begin; select 'id', millrace.enqueue('k', queue => '$q');" >&8
    wait_until 10 grep -q id "$BATS_TEST_TMPDIR/produced"
    wakes
    [ "$wakes" -eq 0 ]
    echo 'commit;' >&8
    exec 8>&-
    wait $!
    wakes
    [ "$wakes" -eq 1 ]
}

@test "nobody waits: nothing is sent, by any way of producing" {
    sql "select millrace.enqueue('k', queue => '$q')"
    sql "select millrace.enqueue_many('k', array['{}']::jsonb[], '$q')"
    sql "select millrace.enqueue_jobs('[{\"kind\": \"k\", \"queue\": \"$q\"}]')"
    sql "select millrace.release(lease) from millrace.claim('$q') limit 1"
    sql "select millrace.pause('$q'); select millrace.resume('$q')"
    wakes
    [ "$wakes" -eq 0 ]
}

@test "a waiter's word ends after five seconds" {
    # The clock of the producer is ours.
    wait_for_work
    sql "select millrace.enqueue_at(clock_timestamp() + interval '6 seconds', 'k', '{}', '$q', 50, null, null, null, null, null, null, null,
                                    null, null, null, null, null, null)"
    wakes
    [ "$wakes" -eq 0 ]
}

@test "a rollback wakes nobody" {
    wait_for_work
    sql "begin; select millrace.enqueue('k', queue => '$q'); rollback"
    wakes
    [ "$wakes" -eq 0 ]
}

@test "a burst sends one" {
    local _
    wait_for_work
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        echo "select millrace.enqueue('k', queue => '$q');"
    done | psql -X -q -v ON_ERROR_STOP=1 >/dev/null
    wakes
    [ "$wakes" -eq 1 ]
    # The worker says so again before it waits again.
    wait_for_work
    sql "select millrace.enqueue_many('k', array_fill('{}'::jsonb, array[100]), '$q')" >/dev/null
    wakes
    [ "$wakes" -eq 1 ]
}

@test "a job of another queue wakes nobody here" {
    wait_for_work
    sql "select millrace.enqueue('k', queue => 'elsewhere')"
    wakes
    [ "$wakes" -eq 0 ]
}

@test "a job for later wakes when it is promoted" {
    wait_for_work
    sql "select millrace.enqueue('k', queue => '$q', delay => '1 second')"
    wakes
    [ "$wakes" -eq 0 ]
    wait_until 10 promoted
    wakes
    [ "$wakes" -eq 1 ]
}

promoted()
{
    wait_for_work
    [ "$(sql 'select millrace.promote(clock_timestamp(), 10)')" -eq 1 ]
}

@test "release, requeue, resume, a replay and a rescue wake; a dead letter does not" {
    sql "select millrace.enqueue_many('k', array_fill('{}'::jsonb, array[10]), '$q')" >/dev/null
    local one="(select c from millrace.claim('$q', 'w', 1, '1 minute') c)" act
    for act in "millrace.release(((select c from millrace.claim('$q') c)).lease)" \
        "millrace.requeue((c).lease, (c).id) from $one x" \
        "millrace.fail((c).lease, (c).id, 'e', retry => false) from $one x" \
        "millrace.resume('$q')"; do
        wait_for_work
        sql "select $act" >/dev/null
        wakes
        case $act in
        *fail*) [ "$wakes" -eq 0 ] ;;
        *) [ "$wakes" -eq 1 ] || { echo "$act: $wakes"; return 1; } ;;
        esac
    done
    wait_for_work
    sql "select millrace.replay_all('$q')"
    wakes
    [ "$wakes" -eq 1 ]
    sql "select count(*) from millrace.claim('$q', 'lost', 1, '1 millisecond')"
    wait_until 10 rescued
    wakes
    [ "$wakes" -eq 1 ]
}

rescued()
{
    wait_for_work
    [ "$(sql 'select millrace.rescue(clock_timestamp(), 10)')" -eq 1 ]
}

@test "a worker that listens, claims once more and waits misses nothing" {
    # The order that wait_channel asks for: whatever is committed after the claim finds the waiter.
    wait_for_work
    [ "$(sql "select count(*) from millrace.claim('$q')")" -eq 0 ]
    sql "select millrace.enqueue('k', queue => '$q')"
    wakes
    [ "$wakes" -eq 1 ]
    [ "$(sql "select count(*) from millrace.claim('$q')")" -eq 1 ]
}
