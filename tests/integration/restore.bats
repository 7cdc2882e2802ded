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
    private_server source -o max_connections=60
    export SOURCE=$MR_SERVER SOURCE_HOST=$PGHOST SOURCE_PORT=$PGPORT
    "$MR_BIN" migrate
    psql -X -q -v ON_ERROR_STOP=1 -f "$FILES/app.sql" -f "$FILES/setup.sql" >"$MR_SCRATCH/setup.log"
    dump_live
    private_server target -o max_connections=60
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

sent_more_than()
{
    [ "$(sql 'select count(*) from app.sent')" -gt "$1" ]
}

# Exports a snapshot in which a worker of the load has jobs in hand, to the file "snapshot": descriptor 7 holds it.
busy_snapshot()
{
    local before
    before=$(wc -l <"$MR_SCRATCH/snapshot")
    echo "rollback; begin isolation level repeatable read;
          select coalesce((select pg_export_snapshot() where exists (select from millrace.claim where status = 'r' and holder like 'worker 1_')), 'none');" >&7
    wait_until 20 answered_since "$before" && [ "$(tail -n 1 "$MR_SCRATCH/snapshot")" != none ]
}

answered_since()
{
    [ "$(wc -l <"$MR_SCRATCH/snapshot")" -gt "$1" ]
}

# Writers, workers and upkeep with rotations run before, during and after the dump.
dump_live()
{
    local pids=() script jobs_before
    for script in writer:4 worker:4 upkeep:1; do
        pgbench -n -T 86400 -R 100 -c "${script#*:}" -f "$FILES/${script%:*}.pgbench" 3>&- >"$MR_SCRATCH/${script%:*}.log" 2>&1 &
        pids+=($!)
    done
    wait_until 30 load_is_on
    jobs_before=$(sql 'select count(*) from app.sent')
    mkfifo "$MR_SCRATCH/session"
    psql -X -q -A -t <"$MR_SCRATCH/session" >"$MR_SCRATCH/snapshot" 2>/dev/null 3>&- &
    exec 7>"$MR_SCRATCH/session"
    wait_until 30 busy_snapshot
    pg_dump -Fc -f "$DUMP" --snapshot="$(tail -n 1 "$MR_SCRATCH/snapshot")"
    exec 7>&-
    kill -0 "${pids[@]}"
    wait_until 30 sent_more_than "$jobs_before"
    kill "${pids[@]}"
    wait "${pids[@]}" || true
    run ! grep -i 'error\|aborted' "$MR_SCRATCH"/{writer,worker,upkeep}.log
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

# The public functions that read or write tables, each with arguments that are fine. $1 is a lease that the dump knows as running.
calls()
{
    cat <<CALLS
enqueue('k')
enqueue_many('k', array['{}']::jsonb[])
enqueue_jobs('[{"kind": "k"}]')
enqueue_once('key', '[{"kind": "k"}]')
capture('app.sent', 'narrow', 'k')
uncapture('app.sent', 'narrow')
capture_enable('app.sent', 'narrow')
capture_disable('app.sent', 'narrow')
batch_begin()
batch_add(1, '[]')
batch_seal(1)
batch(1)
depend(1, '{}')
claim('narrow')
claim_batch('narrow')
claim_packs('narrow')
claim_json('narrow')
complete('$1')
complete_many(array['$1'])
fail('$1', 1, 'e')
finish('$1', '[]')
requeue('$1', 1)
release('$1')
heartbeat('$1')
fetch_state('$1', 1)
progress('$1', 1, 50)
wait_channel('narrow', 'w')
bridge_admit('b', 's', 'g', '{}')
bridge_apply('b', 's', 'g', '{}', '{}')
bridge_begin('b', 's', 'g', '1-1')
bridge_bury('b', 's', 'g', '1-1', 'narrow', 'k', '{}', 'e')
bridge_floor('b', 's', 'g', '1-1')
bridge_forget('b')
move_target('narrow')
move_begin('narrow', '1.1')
move_take(1)
move_done(1, 1)
move_arrive('1.1.1', 1, 'narrow', '{}', '{}', '{}', '{}', '{}')
move_give_back('narrow')
offload_turn('w')
offload_take()
offload_done('[]')
offload_due()
offload_restore('{}', '{}', '{}', '{}')
offload_doomed()
offload_removed('{}')
offload_unknown('{}')
offload_span()
shadow_begin('narrow', '1.1')
shadow_check('1.1.1')
shadow_story('1.1.1')
shard()
shard_open()
shard_holds('narrow')
shard_join('00000000-0000-4000-8000-000000000001', 0, '{0}')
shard_change()
shard_leave()
maintain()
set_queue('narrow', '{}')
payload_policy('narrow')
transport('narrow')
set_retry('k')
drop_queue('narrow')
purge('narrow')
purge_dead('narrow')
pause('narrow')
resume('narrow')
cancel(1)
pause_job(1)
resume_job(1)
run_now(1)
change_job(1, '{}')
replay(1)
replay_all('narrow')
replay_completed('narrow', 'yesterday', 'tomorrow')
schedule('s', '@daily', 'k')
unschedule('s')
schedule_enable('s')
schedule_disable('s')
schedule_run('s')
job(1)
outcome(1)
job_by_ref('narrow', 'r')
depth('narrow')
tenant_stats('narrow')
stats()
health()
overview()
history()
list_jobs()
list_dead()
dead_groups()
queue_story('narrow')
system()
metrics()
list_schedules()
schedule_story('s')
list_batches()
list_workers()
cache_set('k', '1', '1 minute')
cache_get('k')
cache_get_many('{k}')
cache_delete('k')
cache_delete_like('k')
cache_stats()
set_cache('{}')
rate_limit('k', 1, '1 minute')
lock('k')
try_lock('k')
unlock('k')
lock_guard()
lock_lease('k', 'me', '1 minute')
unlock_lease('k', 'me')
CALLS
}

# Prints the calls that did not fail with SQLSTATE $1, and with a hint like $2.
not_refused()
{
    psql -X -q -A -t -v ON_ERROR_STOP=1 -v state="$1" -v hint="$2" <<'SQL'
create temporary table call (statement text, state text, hint text);
\copy call (statement) from program 'cat "$MR_SCRATCH/calls"'
select format($$
do $do$
declare
  v_state text := 'none';
  v_hint  text := '';
begin
  begin
    execute %1$L;
  exception when others then
    get stacked diagnostics v_state = returned_sqlstate, v_hint = pg_exception_hint;
  end;
  update call set state = v_state, hint = v_hint where statement = %1$L;
end $do$ $$, statement)
  from call \gexec
select state, statement from call where state is distinct from :'state' or hint not like :'hint';
SQL
}

all_refuse()
{
    local lease
    lease=$(sql "select lease from app.held where worker = 2 and id not in (select id from app.done) limit 1")
    [ -n "$lease" ]
    calls "$lease" | sed 's/^/select * from millrace./' >"$MR_SCRATCH/calls"
    run -0 not_refused MR004 'Run "millrace migrate"%'
    [ -z "$output" ] || { echo "$output"; return 1; }
}

leases_are_void()
{
    sql "select distinct format('select millrace.complete(%L)', lease) from app.held
          where id in (select id from app.got) or id in (select id from app.done)" >"$MR_SCRATCH/calls"
    [ "$(wc -l <"$MR_SCRATCH/calls")" -gt 20 ]
    run -0 not_refused MR001 'Nothing was changed.%'
    [ -z "$output" ] || { echo "$output"; return 1; }
}

# A job of the dump holds its key: there is no second one.
keys_are_held()
{
    [ "$(sql "select count(*) from (select s.id, millrace.enqueue('later', queue => 'narrow', unique_key => 'later ' || s.n) as holder
                                      from app.sent s where s.delayed) k where k.holder = k.id")" -eq 5 ]
}

# Everything there is to deliver is delivered, also what was delayed, and the books agree.
delivers_what_it_owes()
{
    local late
    keys_are_held
    sql 'call app.drain()'
    late=$(sql "select count(*) from app.got g where id in (select id from app.later union select id from app.sent where delayed)")
    [ "$late" -eq 0 ] || { echo "$late delayed jobs came too early"; return 1; }
    sql "select millrace.promote(now() + interval '3 days', 10000)"
    sql 'call app.drain()'
    run sql "$(cat "$FILES/verdict.sql")"
    [ -z "$output" ] || { head -30 <<<"$output"; return 1; }
    # With the jobs their keys are given back.
    [ "$(sql "select count(*) from millrace.unique_key where free_at is null")" -eq 0 ]
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
    [ "$(sql "select has_function_privilege('millrace_worker', 'millrace.depth(text, text)', 'execute')")" = t ]
}

@test "every public function is among those that are tried" {
    PGHOST=$MR_PGHOST PGPORT=$MR_PGPORT
    fresh_db
    diff <(calls '' | sed 's/(.*//' | sort) \
        <(sql "select distinct p.proname from pg_proc p, aclexplode(p.proacl) a
                where p.pronamespace = 'millrace'::regnamespace and a.grantee::regrole::text like 'millrace\_%'
                  and p.proname <> all ('{job_standing,job_logged,worker_list,capture_list,capture_plan,capture_change,capture_run,capture_put,cron_next,cron_times,doctor,part_coding,part_size}') order by 1")
    drop_db
}

@test "restored into a cluster with smaller transaction ids" {
    new_db younger
    # The roles are not there yet: errors about grants, and nothing else.
    pg_restore -d younger "$DUMP" 2>"$MR_SCRATCH/restore.log" || true
    run grep '^pg_restore: error' "$MR_SCRATCH/restore.log"
    [ "$(grep -vc 'role "millrace_[a-z]*" does not exist' <<<"$output")" -eq 0 ] || { echo "$output"; return 1; }
    # A live dump: many segments and lanes, running jobs of the load among others.
    [ "$(sql 'select count(distinct seg) >= 6 and count(distinct lane) >= 7 from millrace.job')" = t ]
    [ "$(sql "select count(*) > 0 from millrace.claim where status = 'r' and holder like 'worker 1_'")" = t ]
    [ "$(sql 'select count(*) from millrace.dead')" -eq 2 ]
    [ "$(sql 'select count(*) from millrace.delayed')" -eq 11 ]
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
        burn_xids 20000
    done
    all_refuse
    is_at_home_after_migrate
    finished_are_remembered
    delivers_what_it_owes
    leases_are_void
    new_ids_are_new
}

# Takes a job of a queue, and completes it if told.
# Without the slice of upkeep that a claim does when a second has passed since the last one.
take_one()
{
    sql "with u as materialized (select setval('millrace.upkeep_clock', millrace.epoch_ms(clock_timestamp())) as done),
              c as (select c.lease, c.id from u cross join lateral millrace.claim('$1', 'w', case when u.done > 0 then 1 end, '1 hour') c)
         select id $2 from c"
}

@test "a batch and a job that waits: told of every end, also of one that comes with the move" {
    local batch running
    (
        export PGHOST=$SOURCE_HOST PGPORT=$SOURCE_PORT
        new_db batched
        "$MR_BIN" migrate
        batch=$(sql "select millrace.batch_begin(on_end => '{\"kind\": \"ended\", \"queue\": \"called\"}')")
        sql "select millrace.batch_add($batch, (select jsonb_agg('{\"kind\": \"k\", \"queue\": \"m\"}'::jsonb) from generate_series(1, 5)))"
        sql 'select count(*) from millrace.maintain()'
        take_one m ', millrace.complete(lease)'
        running=$(take_one m)
        [ "$(sql "select millrace.cancel($running)")" = running ]
        take_one m
        sql "select millrace.enqueue('child', queue => 'm', depends_on => (select array_agg(id) from millrace.jobs where queue = 'm' and status = 'running' and id <> $running))"
        sql "select millrace.enqueue('orphan', queue => 'm', depends_on => array[$running])"
        sql "select millrace.batch_seal($batch)"
        # Not in the totals yet: an end and the seal.
        [ "$(sql 'select count(*) from millrace.batch_note')" -eq 2 ]
        pg_dump -Fc -f "$MR_SCRATCH/batched.dump"
    )
    new_db batched
    pg_restore -d batched "$MR_SCRATCH/batched.dump"
    is_at_home_after_migrate
    sql 'select count(*) from millrace.maintain()'
    [ "$(sql "select status, jobs, completed, cancelled from millrace.batches")" = 'running|5|1|1' ]
    [ "$(sql "select millrace.complete(c.lease) from (select distinct lease from millrace.claim('m', 'w', 100)) c")" -eq 3 ]
    sql 'select count(*) from millrace.maintain()'
    [ "$(sql "select status, jobs, completed, cancelled from millrace.batches")" = 'failed|5|4|1' ]
    [ "$(sql "select count(*) from millrace.claim('called', 'w', 100)")" -eq 1 ]
    [ "$(sql "select string_agg(status, ' ' order by kind) from millrace.jobs where kind in ('child', 'orphan')")" = 'available cancelled' ]
    # Numbers of batches go on.
    [ "$(sql 'select millrace.batch_begin() > (select min(id) from millrace.batches)')" = t ]
}

@test "jobs that are set aside for a limit stay in line, and come one at a time" {
    local i
    (
        export PGHOST=$SOURCE_HOST PGPORT=$SOURCE_PORT
        new_db lined
        "$MR_BIN" migrate
        sql "select millrace.set_queue('m', '{\"concurrency_per_key\": 1, \"rate_per_tenant\": \"1/h\"}')"
        sql "select count(millrace.enqueue('k', queue => 'm', ordering_key => 'a')) from generate_series(1, 3)"
        sql "select count(millrace.enqueue('k', queue => 'm', tenant => 't')) from generate_series(1, 2)"
        [ "$(sql "select count(*) from millrace.claim('m', 'w', 100)")" -eq 2 ]
        [ "$(sql "select count(*) from millrace.claim('m', 'w', 100)")" -eq 0 ]
        pg_dump -Fc -f "$MR_SCRATCH/lined.dump"
    )
    new_db lined
    pg_restore -d lined "$MR_SCRATCH/lined.dump"
    is_at_home_after_migrate
    [ "$(sql "select available, running from millrace.stats('m')")" = '5|0' ]
    for i in $(seq 1 8); do
        [ "$(sql "select count(*) from millrace.claim('m', 'w', 100)")" -le 1 ]
        sql "select count(millrace.complete(k.slot || '.' || k.lane || '.' || k.no || '.' || k.token)) from millrace.claim k where k.status = 'r'"
    done
    # The start of the tenant's first job counts here, too.
    [ "$(sql "select string_agg(distinct status, ' ') from millrace.jobs where ordering_key = 'a'")" = completed ]
    [ "$(sql "select count(*) from millrace.jobs where tenant = 't' and status = 'available'")" -eq 2 ]
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
