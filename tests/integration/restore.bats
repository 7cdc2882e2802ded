#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# A dump of a live queue, restored elsewhere: every job that the dump owes is delivered once.
# The application's own books, which are in the same dump, say what it owes (restore/app.sql).
#
# The logs of the dump speak of the transaction ids of their cluster. In a cluster with smaller
# ids its rows seem to come from the future; in one with larger ids all of them seem old. Both
# are tried, and a copy in the same cluster, where the ids stay true.

bats_require_minimum_version 1.5.0
load ../lib/server

setup_file()
{
    export FILES=$BATS_TEST_DIRNAME/restore DUMP=$MR_SCRATCH/live.dump
    private_server source -o fsync=off -o max_connections=60
    export SOURCE=$MR_SERVER SOURCE_HOST=$PGHOST SOURCE_PORT=$PGPORT
    "$MR_BIN" migrate
    psql -X -q -v ON_ERROR_STOP=1 -f "$FILES/app.sql" -f "$FILES/setup.sql" >"$MR_SCRATCH/setup.log"
    dump_live
    private_server target -o fsync=off -o max_connections=60
    export TARGET=$MR_SERVER
}

teardown_file()
{
    "$MR_ROOT/tools/pgserver" remove "$SOURCE"
    remove_private_server
}

load_is_on()
{
    [ "$(sql 'select count(*) > 300 from app.done')" = t ]
}

# Writers, workers and upkeep with rotations run before, during and after the dump.
dump_live()
{
    local pids=() script jobs_before
    for script in writer:4 worker:4 upkeep:1; do
        pgbench -n -T 100 -R 100 -c "${script#*:}" -f "$FILES/${script%:*}.pgbench" 3>&- >"$MR_SCRATCH/${script%:*}.log" 2>&1 &
        pids+=($!)
    done
    wait_until 30 load_is_on
    jobs_before=$(sql 'select count(*) from app.sent')
    pg_dump -Fc -f "$DUMP"
    kill -0 "${pids[@]}"
    wait_until 30 test "$(sql 'select count(*) from app.sent')" -gt "$jobs_before"
    kill "${pids[@]}"
    wait "${pids[@]}" || true
    run grep -il 'error\|aborted' "$MR_SCRATCH"/{writer,worker,upkeep}.log
    [ -z "$output" ] || { cat $output >&2; return 1; }
}

new_db()
{
    PGDATABASE=postgres sql "create database $1"
    use_db "$1"
}

burn_xids()
{
    sql "call app.burn_xids($1)"
}

# The public functions, each with arguments that are fine; a lease that the dump knows as running.
calls()
{
    local lease
    lease=$(sql "select lease from app.held h where not exists (select from app.done d where d.lease = h.lease or d.id = h.id) and worker = 2 limit 1")
    cat <<CALLS
enqueue('k')
enqueue_many('k', array['{}']::jsonb[])
enqueue_jobs('[{"kind": "k"}]')
claim('narrow')
complete('$lease')
complete_many(array['$lease'])
fail('$lease', 1, 'e')
finish('$lease', '[]')
requeue('$lease', 1)
release('$lease')
heartbeat('$lease')
wait_channel('narrow', 'w')
maintain()
set_queue('narrow', '{}')
set_retry('k')
drop_queue('narrow')
purge('narrow')
purge_dead('narrow')
pause('narrow')
resume('narrow')
replay(1)
replay_all('narrow')
replay_completed('narrow', 'yesterday', 'tomorrow')
job(1)
job_by_ref('narrow', 'r')
depth('narrow')
stats()
health()
CALLS
}

all_refuse()
{
    local call out
    while read -r call; do
        out=$(psql -X -q -v VERBOSITY=verbose -c "select * from millrace.$call" 2>&1) && { echo "did not refuse: $call"; return 1; }
        [[ $out == *'ERROR:  MR004:'*'HINT:  Run "millrace migrate"'* ]] || { echo "$call: $out"; return 1; }
    done < <(calls)
}

leases_are_void()
{
    local lease
    for lease in $(sql "select distinct lease from app.held where id in (select id from app.got) or id in (select id from app.done) limit 20"); do
        run psql -X -q -v VERBOSITY=sqlstate -c "select millrace.complete('$lease')"
        [ "$status" -eq 1 ] && [[ $output == *MR001* ]] || { echo "$lease: $output"; return 1; }
    done
}

# Everything there is to deliver is delivered, also what was delayed, and the books agree.
delivers_what_it_owes()
{
    local late
    sql 'call app.drain()'
    late=$(sql "select count(*) from app.got g where id in (select id from app.later union select id from app.sent where delayed)")
    [ "$late" -eq 0 ] || { echo "$late delayed jobs came too early"; return 1; }
    sql "select millrace.promote(now() + interval '3 days', 10000)"
    sql 'call app.drain()'
    run sql "$(cat "$FILES/verdict.sql")"
    [ -z "$output" ] || { head -30 <<<"$output"; return 1; }
}

new_ids_are_new()
{
    [ "$(sql "select millrace.enqueue('new') > (select max(id) from app.sent)")" = t ]
    [ "$(sql 'select millrace.complete(c.lease) from millrace.claim() c')" -eq 1 ]
}

# Completed jobs are remembered, with what their worker left.
finished_are_remembered()
{
    local id
    id=$(sql "select id from app.done where lease <> 'piece' order by id limit 1")
    [ "$(sql "select j ->> 'status' || (j -> 'result' ->> 'by') from millrace.job($id) j")" = completedapp ]
}

is_at_home_after_migrate()
{
    "$MR_BIN" migrate
    "$MR_BIN" migrate --check
    [ "$(sql "select has_function_privilege('millrace_worker', 'millrace.depth(text)', 'execute')")" = t ]
}

@test "every public function is among those that are tried" {
    new_db names
    "$MR_BIN" migrate
    sql 'create schema app; create table app.held (lease text, id bigint, worker int); create table app.done (lease text, id bigint)'
    diff <(calls | sed 's/(.*//' | sort) \
        <(sql "select distinct p.proname from pg_proc p, aclexplode(p.proacl) a
                where p.pronamespace = 'millrace'::regnamespace and a.grantee::regrole::text like 'millrace\_%'
                  and p.proname <> all ('{job_standing,worker_list,cancel,pause_job,resume_job,run_now}') order by 1")
}

@test "the dump is what it should be: live, many segments, all kinds of jobs" {
    new_db look
    pg_restore -d look "$DUMP" || true
    [ "$(sql 'select count(distinct seg) >= 6 from millrace.job')" = t ]
    [ "$(sql 'select count(distinct lane) >= 7 from millrace.job')" = t ]
    [ "$(sql "select count(*) > 0 from millrace.claim where status = 'r' and holder like 'worker 1_'")" = t ]
    [ "$(sql 'select count(*) from millrace.dead')" -eq 2 ]
    [ "$(sql 'select count(*) from millrace.delayed')" -eq 7 ]
}

@test "restored into a cluster with smaller transaction ids" {
    new_db younger
    pg_restore -d younger "$DUMP" || true
    [ "$(sql 'select min(xid::text::bigint) > pg_current_xact_id()::text::bigint from millrace.job')" = t ]
    all_refuse
    is_at_home_after_migrate
    finished_are_remembered
    delivers_what_it_owes
    leases_are_void
    new_ids_are_new
}

@test "copied without its sequences" {
    new_db copied
    pg_restore -l "$DUMP" | grep -v 'SEQUENCE SET' >"$MR_SCRATCH/list"
    pg_restore -d copied -L "$MR_SCRATCH/list" "$DUMP"
    [ -z "$(sql "select pg_sequence_last_value('millrace.pos_seq')")" ]
    all_refuse
    is_at_home_after_migrate
    finished_are_remembered
    delivers_what_it_owes
    leases_are_void
    new_ids_are_new
}

@test "restored into a cluster with larger transaction ids" {
    new_db older
    pg_restore -d older "$DUMP"
    while [ "$(sql 'select max(xid::text::bigint) + 1000 > pg_current_xact_id()::text::bigint from millrace.job')" = t ]; do
        burn_xids 50000
    done
    all_refuse
    is_at_home_after_migrate
    finished_are_remembered
    delivers_what_it_owes
    leases_are_void
    new_ids_are_new
}

@test "upkeep of a rehomed schema rotates and retires" {
    use_db younger
    local i
    for i in $(seq 1 20); do
        sql "select count(*) from millrace.maintain_at(now() + interval '3 days' + $i * interval '2 hours')"
        sql "select millrace.enqueue('k', queue => 'narrow')"
    done
    [ "$(sql 'select count(*) > 3 from millrace.segment where truncated')" = t ]
    sql 'truncate app.got'
    sql 'call app.drain()'
    [ "$(sql 'select count(*) from app.got')" -eq 20 ]
}

@test "a copy in the same cluster goes on as it is, with its leases" {
    local lease
    export PGHOST=$SOURCE_HOST PGPORT=$SOURCE_PORT
    new_db twin
    pg_restore -d twin "$DUMP"
    run "$MR_BIN" migrate
    [ "$output" = 'up to date' ]
    for lease in $(sql "select distinct lease from app.held h where not exists (select from app.done d where d.lease = h.lease)
                           and h.id not in (select id from app.later union select id from app.buried)
                           and lease not in (select lease from app.held where id in (select id from app.later))"); do
        sql "with c as (select millrace.complete('$lease')), g as (insert into app.got (id, attempt, lane, lease)
                select id, 1, split_part(lease, '.', 2)::int, lease from app.held where lease = '$lease')
             select * from c"
    done
    # The one that was finished piece by piece still has one job open.
    lease=$(sql 'select lease from app.held where id = (select min(id) from app.later)')
    [ "$(sql "select millrace.release('$lease')")" -eq 1 ]
    delivers_what_it_owes
    new_ids_are_new
}
