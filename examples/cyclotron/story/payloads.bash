# SPDX-License-Identifier: PostgreSQL
# shellcheck shell=bash
# shellcheck disable=SC2154 # run and story/shared.bash set what is not set here
#
# Payloads that are made small, and payloads that are elsewhere: hog compresses what is above 1,000 bytes, keeps those of jobs that are delayed for more than ten seconds in
# S3, and those of dead letters. hogoverflow does neither.

# Not all of them: each is two objects that are written, read and removed, by a server that is a program in Python.
readonly waiting=$((invocations / 100 < 50 ? 50 : invocations / 100 > 500 ? 500 : invocations / 100))
readonly told=10 buried=$((waiting / 5)) bucket=cyclotron
# Numbers: in hog and in hogoverflow at once, those that wait, those that are told to come later, those that die.
readonly packed=0 plain=$waiting far=$((2 * waiting)) later=$((3 * waiting)) gone=$((4 * waiting))

part_payloads()
{
    local s3=''
    start_cyclotron pg -o shared_buffers=512MB
    start_service $((5 * waiting))
    if "$root/tools/s3server" there 2>"$work/s3.why"; then
        s3=yes
        "$root/tools/s3server" start "$work/s3"
        eval "$("$root/tools/s3server" env "$work/s3")"
        "$root/tools/s3server" bucket "$work/s3" $bucket
        MILLRACE_BLOBS=$("$root/tools/s3server" address "$work/s3" $bucket/prod)
        export MILLRACE_BLOBS
    fi
    start_daemon janitor janitor.conf maintain,http
    "$millrace" queue set hog compress=1000 offload_delay=10s offload_dead=true >/dev/null
    payloads_compressed
    if [ -n "$s3" ]; then
        payloads_delayed
        payloads_dead
    else
        say 'S3: skipped'
        sed 's/^/        /' "$work/s3.why"
    fi
    unset MILLRACE_BLOBS
    stop worker1 worker2 janitor service
}

# sizes QUEUE: of how many jobs, what their state and blob are and what they take, and how they are coded
sizes()
{
    sql "select count(*), sum((p ->> 'bytes')::int), sum(coalesce(p ->> 'stored', p ->> 'bytes')::int), string_agg(distinct coalesce(p ->> 'coding', 'plain'), ' ')
           from millrace.jobs j cross join lateral (select millrace.job(j.id) as story) s cross join lateral (values (s.story -> 'state'), (s.story -> 'blob')) v (p)
          where j.queue = '$1' and j.status = 'available'"
}

payloads_compressed()
{
    local parts before after coding hog hogoverflow
    say "Compression: $waiting invocations wait in hog, which compresses what is above 1,000 bytes, and as many in hogoverflow, which does not"
    produce "load.invocation(n, '/ok', 1, null, '{}')" $packed $((packed + waiting - 1)) >/dev/null
    produce "load.invocation(n, '/ok', 1, null, '{}') || '{\"queue_name\": \"hogoverflow\"}'" "$plain" $((plain + waiting - 1)) >/dev/null
    hog=$(sizes hog)
    hogoverflow=$(sizes hogoverflow)
    IFS='|' read -r parts before after coding <<<"$hog"
    check "all parts of hog are zstd: $parts parts with $before bytes take $after" "$coding $parts $((after * 3 < before * 2))" "zstd $((2 * waiting)) 1"
    IFS='|' read -r parts before after coding <<<"$hogoverflow"
    check 'those of hogoverflow are what they were' "$coding $parts $after" "plain $((2 * waiting)) $before"
    start_daemon worker1 workers.conf work,http
    start_daemon worker2 workers.conf work,http
    wait_for "$patience" ended $((2 * waiting))
    check 'the workers notice nothing: every step had its effect' "$(service effects)" $((2 * waiting))
    check 'every body that the service got has its 1,600 bytes' "$(service bytes)" $(($(service requests) * 1600))
}

objects()
{
    "$root/tools/s3server" count "$work/s3" $bucket
}

objects_are()
{
    [ "$(objects)" -eq "$1" ]
}

# Those that are told to come later are due soon, and so the first to go, and few.
payloads_delayed()
{
    local before=$((2 * waiting)) written=$((2 * (waiting + told)))
    say "Delayed: $told invocations whose service wants them to come back in 20 s, and $waiting for tomorrow, wait in S3"
    produce "load.invocation(n, '/later', 1, null, '{}')" "$later" $((later + told - 1)) >/dev/null
    wait_for 60 objects_are $((2 * told))
    check "a retry counts as delayed, vm_state and blob of each are objects: $((2 * told))" "$(service effects)" "$before"
    wait_for 120 ended $((before + told))
    check 'they come back by themselves, with what they are' "$(service effects)" $((before + told))
    produce "load.invocation(n, '/ok', 1, clock_timestamp() + interval '1 day', '{}')" "$far" $((far + waiting - 1)) >/dev/null
    wait_for "$patience" objects_are $((2 * waiting))
    check "so are those of the others: $((2 * waiting)), and the row of one says so" "$(sql "select s.story #>> '{state,coding}', s.story #>> '{blob,coding}', s.story ->> 'status'
        from (select millrace.job_by_ref('hog', load.ref($far)) as story) s")" 'object|object|scheduled'
    sql "select count(*) from (select millrace.run_now(id) from millrace.jobs where queue = 'hog' and status = 'scheduled') r" >/dev/null
    wait_for "$patience" ended $((before + told + waiting))
    check "called for, all $waiting run" "$(service effects)" $((before + told + waiting))
    check 'every body that the service got has its 1,600 bytes' "$(service bytes)" $(($(service requests) * 1600))
    wait_for "$patience" objects_are 0
    wait_for 30 removed_are $written
    check "objects written $written, brought back and removed $written, left 0" "$(removed janitor objects) $(objects)" "$written 0"
}

removed_are()
{
    [ "$(removed janitor objects)" -ge "$1" ]
}

payloads_dead()
{
    local written=$((2 * buried)) before=$((2 * (waiting + told)))
    say "Dead letters: $buried functions are gone, and their payloads go to S3"
    produce "load.invocation(n, '/gone', 1, null, '{}')" "$gone" $((gone + buried - 1)) >/dev/null
    wait_for "$patience" objects_are $written
    check "dead letters $buried, objects $written" "$(sql 'select count(*) from millrace.dead_letters') $(objects)" "$buried $written"
    sql "select millrace.set_queue('hog', '{\"dead_retention\": \"1 second\"}')" >/dev/null
    wait_for "$patience" objects_are 0
    wait_for 30 removed_are $((before + written))
    check 'their time is over: dead letters 0, objects 0, all that were written are removed' \
        "$(sql 'select count(*) from millrace.dead_letters') $(objects) $(removed janitor objects)" "0 0 $((before + written))"
}
