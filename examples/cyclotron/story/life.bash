# SPDX-License-Identifier: PostgreSQL
# shellcheck shell=bash
# shellcheck disable=SC2154 # run and story/shared.bash set what is not set here
#
# The life of invocations on one server: created in chunks, refused and diverted, called, tried again, delayed, paused, cancelled, dead; a poison pill; a fleet that stands
# still; dead letters that are removed.

# Numbers behind those of the load: a few of each special kind, then those of poison and stall.
readonly paused=$invocations cancelled=$((invocations + 10)) delayed=$((invocations + 20)) poison=$((invocations + 30)) beside=$((invocations + 31)) stalled=$((invocations + 50000))

part_life()
{
    start_cyclotron pg -o shared_buffers=512MB
    start_service $((invocations + 60000))
    start_daemon janitor janitor.conf maintain,http
    wait_for 30 true_that "select count(*) = 2 from millrace.queues where queue in ('hog', 'hogoverflow') and settings ->> 'depth_limit' = '$depth'"
    life_create
    life_work
    life_poison
    life_stall
    life_dead
    life_janitor
}

life_create()
{
    say "Create: $invocations invocations of 50 teams in chunks of $chunk, each with 2.7 KB of vm_state and 1.6 KB of blob"
    sql "select count(millrace.pause_job(id)) from load.some($paused, $((paused + 9)), '/ok') id" >/dev/null
    sql "select count(millrace.cancel(id, 'not wanted any more')) from load.some($cancelled, $((cancelled + 9)), '/ok') id" >/dev/null
    sql "select count(*) from load.some($delayed, $((delayed + 9)), '/ok', clock_timestamp() + interval '3 seconds')" >/dev/null
    sql "call load.create_invocations($invocations, $chunk)" &
    pid[producer]=$!
    wait_for 300 true_that 'select count(*) > 0 from load.chunk where refused = 1'
    # The last chunk, and what was for later and whose time has come, may be more than the limit.
    printf '        %s wait in hog, %s in hogoverflow\n' "$(sql "select millrace.depth('hog')")" "$(sql "select millrace.depth('hogoverflow')")"
    check 'back-pressure: what hog has no room for is diverted to hogoverflow, until both have what they take' \
        "$(sql "select bool_and(millrace.depth(q) between $depth and $depth + 2 * $chunk) from unnest(array['hog', 'hogoverflow']) q")" t
    check '... a producer that does not wait is refused' "$("$millrace" enqueue invocation --queue hog 2>/dev/null || echo "status $?")" 'status 4'
    check 'ten are paused, and say so in Cyclotron'"'"'s words' "$(sql "select count(*), min(state), max(state) from cyclotron.jobs where queue_name = 'hog' and ref >= load.ref($paused) and state = 'paused'")" '10|paused|paused'
}

life_work()
{
    local began took
    say 'Work: two workers of 32 threads call a service that fails, is slow and wants them to come later'
    began=$(date +%s%N)
    start_daemon worker1 workers.conf work,http
    start_daemon worker2 workers.conf work,http
    wait_for 120 true_that "select count(*) = 10 from cyclotron.jobs where queue_name in ('hog', 'hogoverflow') and ref between load.ref($delayed) and load.ref($((delayed + 9))) and state = 'completed'"
    check 'ten that were for later ran, none of them before its time' \
        "$(sql "select bool_and(claimed_at >= run_at) and count(*) = 10 from millrace.jobs where queue in ('hog', 'hogoverflow') and ref between load.ref($delayed) and load.ref($((delayed + 9)))")" t
    check 'both workers say that they are well' "$(ask worker1 /readyz | tail -1 | sed 's/.* //') $(ask worker2 /readyz | tail -1 | sed 's/.* //')" '200 200'
    wait "${pid[producer]}"
    unset 'pid[producer]'
    wait_for "$patience" ended $((invocations + 20)) 10
    took=$(($(date +%s%N) - began))
    printf '        %s s, %s chunks waited for room; the service had %s requests, of which %s failed and %s were repeated\n' \
        $((took / 1000000000)) "$(sql 'select count(*) from load.chunk where refused = 1')" "$(service requests)" "$(service failed)" "$(service repeated)"
    printf '        %s of them were diverted to hogoverflow; the database has %s MB\n' "$(sql "select load.total('completed dead', 'hogoverflow')")" "$(sql 'select pg_database_size(current_database()) / 1000000')"
    check "created = completed + dead + cancelled: $((invocations + 20)) = $((invocations + 10 - dead)) + $dead + 10" "$(total completed) $(total dead) $(total cancelled)" "$((invocations + 10 - dead)) $dead 10"
    check "every step had its effect, and none had it twice: $((steps + 10))" "$(service effects)" $((steps + 10))
    check 'what was gone is dead after one attempt, what was broken after five' \
        "$(sql "select string_agg(format('%s %s: %s', attempt, error, n), ', ' order by attempt) from (select attempt, error, count(*) as n from millrace.dead_letters group by 1, 2) d")" \
        "1 the service answered 404: $((dead / 2)), 5 the service answered 500: $((dead / 2))"
    check 'vm_state went from try to try: the last one of each dead letter has them all' \
        "$(sql "select bool_and((convert_from((cyclotron.get_job(id)).vm_state, 'UTF8')::jsonb ->> 'tries')::int = attempt) from (select id, attempt from millrace.dead_letters limit 100) d")" t
    # Once, when they were paused, or not at all as far as their story reaches, which is the retention.
    check 'the paused ones have not moved since' "$(sql "select count(*) from cyclotron.jobs where queue_name = 'hog' and state = 'paused' and transition_count <= 1")" 10
    sql "select count(millrace.resume_job(id)) from millrace.jobs where queue = 'hog' and status = 'paused'" >/dev/null
    wait_for 60 ended $((invocations + 30))
    check '... and run when they are resumed' "$(service effects)" $((steps + 20))
    stop worker1 worker2
}

# Keeps one going that is killed by what it does, as systemd would.
keep_worker()
{
    while [ -e "$work/alive" ]; do
        "$millrace" work hog --name "$1" --plugin "$CYCLOTRON_INVOKE" --concurrency 1 --batch 1 --lease 2s --breaker-failures 0 >>"$work/$1.log" 2>&1 &
        echo $! >"$work/$1.pid"
        wait $! || echo killed >>"$work/$1.killed"
    done
}

# The fleet is well as long as others finish: then the loss is the pill's own.
poisoned()
{
    sql "select count(*) from load.some($next, $((next + 1)), '/ok')" >/dev/null
    next=$((next + 2))
    true_that "select count(*) = 1 from millrace.dead_letters where cause = 'poison'"
}

life_poison()
{
    say 'Poison: an invocation that kills its worker, among others that do not'
    touch "$work/alive"
    keep_worker pill1 2>/dev/null &
    pid[keeper1]=$!
    keep_worker pill2 2>/dev/null &
    pid[keeper2]=$!
    sql "select count(*) from load.some($poison, $poison, '/ok', null, '{\"kills\": true}')" >/dev/null
    next=$beside
    wait_for 180 poisoned
    check 'it is a dead letter after four workers' "$(sql "select d.lost, g.janitor_touch_count >= 4, g.state from millrace.dead_letters d cross join lateral cyclotron.get_job(d.id) g where d.cause = 'poison'")" '4|t|failed'
    wait_for 120 ended $((invocations + 31 + next - beside))
    printf '        %s workers were killed, %s invocations done beside it\n' "$(cat "$work"/pill?.killed | wc -l)" $((next - beside))
    check 'the others went on: all of them are done' "$(service effects)" $((steps + 20 + next - beside))
    rm "$work/alive"
    kill "$(cat "$work/pill1.pid")" "$(cat "$work/pill2.pid")"
    wait "${pid[keeper1]}" "${pid[keeper2]}" || true
    unset 'pid[keeper1]' 'pid[keeper2]'
    so_far=$((invocations + 31 + next - beside))
}

life_stall()
{
    local effects rescued round
    effects=$(service effects)
    say 'Stall: the whole fleet stands still for longer than its leases, twice'
    start_daemon worker1 workers.conf work,http
    start_daemon worker2 workers.conf work,http
    sql "select count(*) from load.some($stalled, $((stalled + 199)), '/crawl')" >/dev/null
    for round in 1 2; do
        wait_for 60 true_that "select sum(running) > 0 from millrace.stats() where queue like 'hog%'"
        rescued=$(total rescued)
        kill -STOP "${pid[worker1]}" "${pid[worker2]}"
        wait_for 60 true_that "select sum(running) = 0 from millrace.stats() where queue like 'hog%'"
        wait_for 60 true_that "select load.total('rescued') > $rescued"
        kill -CONT "${pid[worker1]}" "${pid[worker2]}"
        printf '        round %s: %s taken back\n' "$round" $(($(total rescued) - rescued))
    done
    wait_for 180 ended $((so_far + 200))
    check 'nobody is called a poison pill for it' "$(sql "select count(*) from millrace.dead_letters where cause = 'poison'")" 1
    check 'every effect once, though some were asked for twice' "$(service effects)" $((effects + 200))
    printf '        %s requests were repeated\n' "$(service repeated)"
}

letters()
{
    sql "select count(*), coalesce(sum(bytes), 0) from millrace.dead_letters where queue = '$1'"
}

life_dead()
{
    local queue before keep oldest_kept
    say 'Dead letters: kept as many, as much and as long as the queue says'
    queue=$(sql 'select queue from millrace.dead_letters group by queue order by count(*) desc limit 1')
    before=$(sql "select count(*) from millrace.dead_letters where queue = '$queue'")
    keep=$(((before + 1) / 2))
    oldest_kept=$(sql "select died_at from millrace.dead_letters where queue = '$queue' order by died_at desc, id desc offset $((keep - 1)) limit 1")
    sql "select millrace.set_queue('$queue', '{\"dead_max\": $keep}')" >/dev/null
    wait_for 120 true_that "select count(*) = $keep from millrace.dead_letters where queue = '$queue'"
    check "by number: of $before in $queue the newest $keep are left" "$(sql "select min(died_at) from millrace.dead_letters where queue = '$queue'")" "$oldest_kept"
    sql "select millrace.set_queue('$queue', '{\"dead_max_bytes\": 1}')" >/dev/null
    wait_for 120 true_that "select count(*) = 0 from millrace.dead_letters where queue = '$queue'"
    check 'by bytes: none has room in a queue that keeps one byte' "$(letters "$queue")" '0|0'
    sql "select millrace.set_queue(q, '{\"dead_retention\": \"1 second\"}') from unnest(array['hog', 'hogoverflow']) q" >/dev/null
    wait_for 120 true_that 'select count(*) = 0 from millrace.dead_letters'
    check 'by age: none is older than its queue keeps them' "$(letters hog) $(letters hogoverflow)" '0|0 0|0'
}

life_janitor()
{
    say 'Janitor'
    ask janitor /metrics >"$work/metrics"
    grep '^millrace_removed_total' "$work/metrics" | sed 's/^/        /'
    printf '        seconds of the last round: %s\n' "$(sed -n 's/^millrace_maintain_seconds{duty="\(.*\)"} /\1 /p' "$work/metrics" | sort | paste -sd ,)"
    check 'what was removed is told: dead letters' "$(removed janitor dead_letters)" $((dead + 1))
    check 'outcomes are told, the same that were counted' "$(awk '/^millrace_queue_jobs_total\{/ && /outcome="(completed|dead|cancelled)"/ { n += $NF } END { printf "%d", n }' "$work/metrics")" $((so_far + 200))
    stop worker1 worker2 janitor service
}
