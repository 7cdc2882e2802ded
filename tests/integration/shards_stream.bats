#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# Streams of jobs to several shards, each on a server of its own: where each line goes, shards that are full, drain, are down or die
# meanwhile, and whether the answer says of every line what became of it.

# shellcheck disable=SC2030,SC2031,SC2154 # bats runs a test in a subshell; code, body, servers and addresses are set elsewhere
bats_require_minimum_version 1.5.0
load ../lib/server
load ../lib/shards
load ../lib/daemon
load ../lib/api
load ../lib/shards_api

setup_file() { three_shards; }
teardown_file() { three_shards_end; }

setup()
{
    three_shards_again
    for i in 0 1 2; do
        on "$i" "select millrace.shard_change('active')" >/dev/null
    done
    queue=q$BATS_TEST_NUMBER
    cd "$BATS_TEST_TMPDIR" || return
    api_up
    wait_until 30 shards_are '["active","active","active"]'
}

teardown()
{
    end_daemons
}

# stream FILE: sends the lines of a file.
stream()
{
    api POST /api/v1/jobs -H 'Content-Type: application/x-ndjson' --data-binary "@$1"
}

# job N [MEMBERS]: the line of a job that knows its number.
job()
{
    printf '{"kind": "k", "queue": "%s", "args": {"n": %d}%s}\n' "$queue" "$1" "${2:+, $2}"
}

# jobs FROM TO: such lines without keys.
jobs()
{
    seq -f "{\"kind\": \"k\", \"queue\": \"$queue\", \"args\": {\"n\": %.0f}}" "$1" "$2"
}

# The numbers of the jobs that are in, one a line; with an argument of one shard.
numbers()
{
    local i
    for i in ${1:-0 1 2}; do
        on "$i" "select (j.args ->> 'n')::int from millrace.jobs j where j.queue like '$queue%' and j.args ? 'n'"
    done | sort -n
}

# Whether the answer to a stream of jobs 1, 2, 3 ... that stopped is true: the lines up to its last are in, each once, but for those that are
# missing, which are not; those that are unknown may be.
is_true()
{
    jq -r '.missing[]' <<<"$body" | sort -n >missing
    jq -r '.unknown[]' <<<"$body" | sort -n >unknown
    numbers >there
    [ -z "$(uniq -d there)" ]
    [ -z "$(sort there missing | uniq -d)" ]
    diff -u <(seq "$(jq .line <<<"$body")") <(sort -n -u there missing unknown)
    comm -23 <(sort there) <(sort unknown) >sure
    [ "$(grep -c . sure)" -eq "$(jq .enqueued <<<"$body")" ]
    [ "$(jq '[.shards[].enqueued] | add' <<<"$body")" -eq "$(jq .enqueued <<<"$body")" ]
}

@test "each line goes where the job alone would, and the answer says how many each shard has taken" {
    local t where=() i
    for i in 0 1 2; do
        t=$(tenant_of "$i")
        where+=("$t")
    done
    for ((i = 1; i <= 6000; i++)); do
        case $((i % 6)) in
        0 | 1 | 2) printf '{"kind":"k","queue":"%s","args":{"n":%d},"tenant":"%s"}\n' "$queue" "$i" "${where[i % 6]}" ;;
        3) printf '{"kind":"k","queue":"%s","args":{"n":%d},"unique_key":"u%d"}\n' "$queue" "$i" "$i" ;;
        *) printf '{"kind":"k","queue":"%s","args":{"n":%d}}\n' "$queue" "$i" ;;
        esac
    done >lines
    stream lines
    says 201 .enqueued 6000
    says 201 '[.shards[] | [.shard, .status]]' '[[0,"active"],[1,"active"],[2,"active"]]'
    diff -u <(seq 6000) <(numbers)
    for i in 0 1 2; do
        [ "$(numbers "$i" | grep -c .)" -eq "$(jq ".shards[$i].enqueued" <<<"$body")" ]
        [ "$(numbers "$i" | awk -v i="$i" '$1 % 6 == i' | grep -c .)" -eq 1000 ] # the tenant's are there,
        [ "$(numbers "$i" | awk '$1 % 6 >= 4' | grep -c .)" -ge 600 ]            # those without a key take turns
    done
    for i in 3 2703 5997; do
        post /api/v1/jobs "{\"kind\": \"k\", \"queue\": \"$queue\", \"unique_key\": \"u$i\"}"
        says 201
        [ "$(on "$(shard_of "$(jq .id <<<"$body")")" "select j.args ->> 'n' from millrace.jobs j where j.id = $(jq .id <<<"$body")")" = "$i" ]
    done
    stream lines # the unique ones are there
    says 201 .enqueued 6000
    [ "$(numbers | grep -c .)" -eq 11000 ]
}

@test "a line that is no job ends the stream, and so does one that a shard refuses: the answer knows every line" {
    { jobs 1 6000; echo 'no job'; jobs 6002 7000; } >lines
    stream lines
    says 400 '[.error.code, .line]' '["bad_request",6001]'
    [[ $body == *'"line 6001: '* ]]
    is_true
    queue+=b
    { jobs 1 5; job 6 '"priority": "high"'; jobs 7 9; } >lines
    stream lines
    says 400 '[.error.code, .line, (.missing | length), .unknown, .enqueued]' '["bad_request",9,3,[],6]'
    [[ $body == *'"lines '[0-9]' to '[0-9]': shard '[012]': '* ]]
    is_true
    queue+=b
    { jobs 1 2; echo; job 4 '"unique\u005fkey": "u"'; } >lines
    stream lines
    says 400 '[.line, .missing, .enqueued]' '[4,[1,2,4],0]'
    [[ $body == *'line 4: a name of the job is written with escapes'* ]]
    queue+=b
    printf '' >lines
    stream lines
    says 201 .enqueued 0
}

@test "a shard that is full is passed over, but not by jobs with a key" {
    local t
    t=$(tenant_of 0)
    for ((i = 1; i <= 100; i++)); do job "$i" "\"tenant\": \"$t\""; done >lines
    fill()
    {
        on "$1" "select millrace.enqueue('k', queue => '$queue') from generate_series(1, 200)" >/dev/null
        on "$1" "select millrace.set_queue('$queue', '{\"depth_limit\": 200}')" >/dev/null
    }
    fill 0
    stream lines
    says 201 '[.enqueued, .shards[0].enqueued]' '[100,0]'
    [ "$(numbers 1 | grep -c .)" -eq 100 ] || [ "$(numbers 2 | grep -c .)" -eq 100 ] # the next in its order
    printf '{"kind": "k", "queue": "%s.other", "args": {"n": 101}, "tenant": "%s", "unique_key": "o"}\n' "$queue" "$t" >>lines
    stream lines # a queue with room is not refused for the sake of another
    says 201 '[.enqueued, .shards[0].enqueued]' '[101,1]'
    [ "$(numbers 0)" = 101 ]
    job 102 "\"tenant\": \"$t\", \"unique_key\": \"u\"" >>lines
    stream lines
    says 429 '[.error.code, .missing, .unknown, .line]' '["queue_full",[101,102],[],102]'
    [[ $body == *'lines 101 to 102: shard 0: '* ]]
    fill 1
    fill 2
    jobs 1 10 >lines
    stream lines
    says 429 '[.error.code, .enqueued, .missing, .line]' '["queue_full",0,[1,2,3,4,5,6,7,8,9,10],10]'
}

@test "a shard that is down or drains is passed over, and the answer says so; a job with its key ends the stream" {
    local t
    t=$(tenant_of 1)
    { job 1 "\"tenant\": \"$t\""; jobs 2 300; } >lines
    server crash 1 >/dev/null
    wait_until 30 shards_are '["active","down","active"]'
    stream lines
    says 201 '[.enqueued, [.shards[] | .status], .shards[1].enqueued, .shards[1].error]' '[300,["active","down","active"],0,"shard 1 cannot be reached"]'
    { jobs 301 302; job 303 "\"tenant\": \"$t\", \"ordering_key\": \"o\""; jobs 304 305; } >rest
    stream rest
    says 503 '[.line, .missing, .enqueued]' '[3,[1,2,3],0]'
    [[ $body == *"line 3: the job's key belongs to shard 1: shard 1 cannot be reached"* ]]
    api POST '/api/v1/jobs?shard=1' -H 'Content-Type: application/x-ndjson' --data-binary @lines
    says 503 .error.message '"shard 1 cannot be reached"'
    api POST '/api/v1/jobs?shard=0' -H 'Content-Type: application/x-ndjson' --data-binary @rest
    says 400
    server restart 1 >/dev/null
    wait_until 60 shards_are '["active","active","active"]'
    diff -u <(seq 300) <(numbers)
    on 2 "select millrace.shard_change('draining')" >/dev/null
    wait_until 30 shards_are '["active","active","draining"]'
    jobs 301 400 >lines
    stream lines
    says 201 '[.enqueued, .shards[2].status, .shards[2].enqueued]' '[100,"draining",0]'
    on 2 "select millrace.shard_change('active')" >/dev/null
    wait_until 30 shards_are '["active","active","active"]'
}

@test "a shard that dies under a chunk: its lines are unknown, and everything else is told as it is" {
    jobs 1 9000 >lines
    waits()
    {
        [ "$(on 1 "select count(*) from pg_stat_activity a where a.wait_event_type = 'Lock' and a.application_name = 'millrace http'")" -ge 1 ]
    }
    psql -X -q -d "${addresses[1]}" -c 'begin; lock table millrace.queue in access exclusive mode; select pg_sleep(300)' >/dev/null 2>&1 3>&- &
    locked()
    {
        [ "$(on 1 "select count(*) from pg_locks l where l.relation = 'millrace.queue'::regclass and l.mode = 'AccessExclusiveLock' and l.granted")" -eq 1 ]
    }
    wait_until 30 locked
    { wait_until 60 waits && server crash 1; } >/dev/null 2>&1 3>&- &
    stream lines
    wait $!
    says 503 '[.error.code, .missing, (.unknown | length >= 999), .shards[1].enqueued]' '["unavailable",[],true,0]'
    [[ $body == *'lines '*': shard 1: '* ]]
    cp body answer
    server restart 1 >/dev/null
    wait_until 60 shards_are '["active","active","active"]'
    body=$(<answer)
    is_true
}

@test "a shard that dies between two chunks is passed over, and every job is in once" {
    mkfifo pipe
    {
        jobs 1 20000
        server crash 1 >/dev/null 2>&1
        jobs 20001 40000
    } >pipe 3>&- &
    api POST /api/v1/jobs -H 'Content-Type: application/x-ndjson' -H 'Transfer-Encoding: chunked' -T pipe
    wait $!
    echo "$code $body" | cut -c1-1000 >&2
    answer=$code
    cp body answer
    server restart 1 >/dev/null
    wait_until 60 shards_are '["active","active","active"]'
    body=$(<answer)
    if [ "$answer" = 201 ]; then
        [ "$(jq .enqueued answer)" -eq 40000 ]
        diff -u <(seq 40000) <(numbers)
    else # it was in the middle of one
        is_true
    fi
}

@test "a long stream takes no memory" {
    [ -z "${SANITIZE:-}" ] || skip 'a sanitizer keeps what was freed: run it without SANITIZE'
    local pid before after
    pid=$(pid_of api)
    jobs 1 2000 >lines
    stream lines
    before=$(awk '/^VmHWM/ { print $2 }' "/proc/$pid/status")
    seq -f "{\"kind\": \"k\", \"queue\": \"$queue\", \"args\": {\"n\": %.0f, \"filler\": \"$(printf '%0400d' 0)\"}}" 100000 >lines
    stream lines
    says 201 .enqueued 100000
    after=$(awk '/^VmHWM/ { print $2 }' "/proc/$pid/status")
    echo "$before kB, then $after kB" >&2
    [ $((after - before)) -lt 16384 ] # of 46 MB
}
