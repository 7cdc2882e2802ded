# SPDX-License-Identifier: PostgreSQL
# shellcheck shell=bash
# shellcheck disable=SC2154 # run and story/shared.bash set what is not set here
#
# The same invocations on three servers behind one address, of which one is killed while they are created and worked on, and comes back.

# Numbers: the load, a tenth of which is created while a shard is away, and ten that are cancelled.
readonly share=$((invocations / 10)) away_first=$((invocations - invocations / 10)) unwanted=$invocations

part_shards()
{
    local i address all=''
    addresses=()
    for i in 0 1 2; do
        start_cyclotron pg$i -o shared_buffers=256MB
        addresses+=("$MILLRACE_DSN")
    done
    for address in "${addresses[@]}"; do all+="${all:+ ; }$address"; done
    export MILLRACE_DSN=$all
    "$millrace" shard add >/dev/null
    start_service $((invocations + 10))
    start_daemon janitor janitor.conf maintain
    start_daemon worker1 workers.conf work
    start_daemon worker2 workers.conf work
    shards_load
    shards_count
    stop worker1 worker2 janitor service
}

# on INDEX SQL
on()
{
    psql -X -q -A -t -v ON_ERROR_STOP=1 -d "${addresses[$1]}" -c "$2"
}

# sum_on SQL INDEX...: what it says, added up
sum_on()
{
    local question=$1 i sum=0
    shift
    for i in "$@"; do
        sum=$((sum + $(on "$i" "$question")))
    done
    echo "$sum"
}

# total_on OUTCOMES INDEX...
total_on()
{
    local outcomes=$1
    shift
    sum_on "select load.total('$outcomes')" "$@"
}

completed_are()
{
    local least=$1
    shift
    [ "$(total_on completed "$@")" -ge "$least" ]
}

shards_ended()
{
    [ "$(sum_on "select coalesce(sum(available + running + scheduled + retrying), 0) from millrace.stats()" 0 1 2)" -eq 0 ] &&
        [ "$(total_on 'completed dead cancelled' 0 1 2)" -eq "$1" ]
}

# By their ids, each of which says where its job is.
shards_cancel()
{
    local i id
    produce "load.invocation(n, '/ok', 1, clock_timestamp() + interval '1 day', '{}')" "$unwanted" $((unwanted + 9)) >/dev/null
    for i in 0 1 2; do
        for id in $(on $i "select id from millrace.jobs where queue = 'hog' and status = 'scheduled' and run_at > now() + interval '1 hour'"); do
            "$millrace" cancel "$id" --reason 'not wanted any more' >/dev/null
        done
    done
}

shards_load()
{
    local before i
    PGHOST=${addresses[0]#host=}
    export PGHOST=${PGHOST%% *}
    say "Shards: $invocations invocations on three servers behind one client, and shard 1 is killed meanwhile"
    shards_cancel
    start_producer 'load.numbered(n)' 0 $((away_first - 1))
    wait_for "$patience" completed_are $((invocations / 20)) 0 1 2
    check 'each has a part of the teams' "$(for i in 0 1 2; do on "$i" "select count(*) > 0 from (select from millrace.jobs where queue = 'hog' limit 1) j"; done | paste -sd ' ')" 't t t'
    "$root/tools/pgserver" crash "$work/pg1"
    before=$(total_on completed 0 2)
    check "created while shard 1 is away, on the others: $share" "$(produce 'load.numbered(n)' "$away_first" $((invocations - 1)))" "created $share, in doubt 0 of which 0 were in"
    wait_for "$patience" completed_are $((before + share)) 0 2
    printf '        %s were completed meanwhile; then it comes back\n' $(($(total_on completed 0 2) - before))
    "$root/tools/pgserver" restart "$work/pg1"
    wait "${pid[producer]}"
    unset 'pid[producer]'
    printf '        the producer: %s\n' "$(cat "$work/producer.out")"
    check 'it created the rest, each of them once' "$(cut -d, -f1 "$work/producer.out")" "created $away_first"
}

shards_count()
{
    wait_for "$patience" shards_ended $((invocations + 10))
    printf '        completed on shard 0: %s, 1: %s, 2: %s; the service had %s requests, of which %s failed and %s were repeated\n' \
        "$(total_on completed 0)" "$(total_on completed 1)" "$(total_on completed 2)" "$(service requests)" "$(service failed)" "$(service repeated)"
    check "created = completed + dead + cancelled, over the set: $((invocations + 10)) = $((invocations - dead)) + $dead + 10" \
        "$(total_on completed 0 1 2) $(total_on dead 0 1 2) $(total_on cancelled 0 1 2)" "$((invocations - dead)) $dead 10"
    check "every step had its effect, and none had it twice: $steps" "$(service effects)" "$steps"
    check 'dead letters are listed over the set' "$("$millrace" dead list --limit 0 --json | jq '[.[].result.dead_letters | length] | add')" "$dead"
}
