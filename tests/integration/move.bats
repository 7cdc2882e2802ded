#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# `millrace move` between two servers: what it says, what it refuses, and that each job arrives once however often the mover is killed.
# What the SQL functions do by themselves: sql/move.
# shellcheck disable=SC2154 # to and to_db come from lib/there

load ../lib/server
load ../lib/there

setup_file()
{
    there_up
}

teardown_file()
{
    there_down
}

setup()
{
    fresh_db
    there_db
    mover=
}

teardown()
{
    [ -z "$mover" ] || kill -KILL "$mover" 2>/dev/null || true
    drop_db
}

# $1 jobs of many sorts, from number $2 on: packs, rows of their own, all parts, other priorities, tenants, for later.
make_jobs()
{
    sql "create table if not exists wanted (i bigint, kind text, args jsonb, meta jsonb, state bytea, blob bytea, tenant text, priority int, later boolean);
         insert into wanted
         select i, 'k' || i % 3, jsonb_build_object('i', i, 'text', repeat(md5(i::text), 1 + i % 5)), case when i % 7 = 0 then jsonb_build_object('m', i) end,
                case when i % 5 = 0 then decode(md5(i::text), 'hex') end, case when i % 11 = 0 then decode(repeat(md5(i::text), 100), 'hex') end,
                case when i % 4 = 0 then 'tenant ' || i % 9 end, (i % 3 * 10)::int, i % 6 = 0
           from generate_series($2, $2 + $1 - 1) i;
         select millrace.enqueue(w.kind, w.args, 'orders', w.priority, meta => w.meta, state => w.state, blob => w.blob, tenant => w.tenant, ref => w.i::text,
                                 run_at => case when w.later then now() + interval '1 day' end)
           from wanted w
          where w.i between $2 and $2 + $1 - 1" >/dev/null
}

# What arrived, and what was wanted, in one table form, and both ways what one has and the other has not.
compare()
{
    sql "copy (select w.i, w.kind, w.priority, w.tenant, w.later, md5(row(w.args, w.meta, w.state, w.blob)::text) from wanted w) to stdout" >"$BATS_TEST_TMPDIR/wanted"
    there "create table wanted (i text, kind text, priority int, tenant text, later boolean, hash text)"
    PGHOST=$THERE_HOST PGPORT=$THERE_PORT PGUSER=$THERE_USER psql -X -q -d "$to_db" -c '\copy wanted from stdin' <"$BATS_TEST_TMPDIR/wanted"
    there "create view came as
           select j.job_ref as i, j.job_kind as kind, (j.lane >> 5) & 127 as priority, j.job_tenant as tenant, false as later,
                  md5(row(j.payload_args, j.payload_meta, j.payload_state, j.payload_blob)::text) as hash
             from millrace.job j
            union all
           select d.job_ref, d.job_kind, (d.lane >> 5) & 127, d.job_tenant, true, md5(row(d.payload_args, d.payload_meta, d.payload_state, d.payload_blob)::text)
             from millrace.delayed d"
    there "select (select count(*) from (table wanted except all table came) x) || ' missing, ' || (select count(*) from (table came except all table wanted) x) || ' too many'"
}

# How many jobs have arrived.
arrived()
{
    there "select coalesce(sum(a.total), 0) from millrace.arrival a"
}

more_arrived()
{
    [ "$(arrived)" -gt "$1" ]
}

@test "a queue is moved, and the counts say so" {
    make_jobs 500 1
    run "$MR_BIN" move orders --to "$to" --dry-run
    [ "$status" -eq 0 ]
    has "before        417         83"
    [ "$(arrived)" = 0 ]
    run "$MR_BIN" move orders --to "$to" --batch 100
    [ "$status" -eq 0 ]
    has "moved 500 jobs in"
    [ "$(sql "select available + scheduled + retrying from millrace.stats('orders')")" = 0 ]
    [ "$(there "select available || ' ' || scheduled from millrace.stats('orders')")" = "417 83" ]
    [ "$(compare)" = "0 missing, 0 too many" ]
    run "$MR_BIN" move orders --to "$to" --json
    [ "$status" -eq 0 ]
    has '"jobs":0'
    has '"moved":500'
}

@test "a limit, another name, what runs is left and says so" {
    make_jobs 50 1
    run "$MR_BIN" move orders --to "$to" --to-queue other --limit 20 --json
    [ "$status" -eq 1 ] # something is left
    has '"jobs":20,'
    sql "select count(*) from millrace.claim('orders', 'w', 3)"
    run "$MR_BIN" move orders --to "$to" --to-queue other
    [ "$status" -eq 1 ]
    has "moved 27 jobs"
    [ "$(sql "select running from millrace.stats('orders')")" = 3 ]
    [ "$(there "select available + scheduled from millrace.stats('other')")" = 47 ]
}

@test "dead letters go when they are asked for" {
    sql "select millrace.enqueue('k', '{\"d\": 1}', 'orders')" >/dev/null
    sql "select millrace.fail(c.lease, c.id, 'broken', retry => false) from millrace.claim('orders') c" >/dev/null
    run "$MR_BIN" move orders --to "$to"
    [ "$status" -eq 0 ]
    has "moved 0 jobs"
    run "$MR_BIN" move orders --to "$to" --dead
    [ "$status" -eq 0 ]
    has "moved 1 job in 1 batch"
    [ "$(there "select d.error from millrace.dead_letters d")" = broken ]
}

@test "a mover that is killed twenty times loses nothing and doubles nothing" {
    local i kills=0 before
    for i in $(seq 1 20); do
        make_jobs 400 $((i * 400))
        before=$(arrived)
        "$MR_BIN" move orders --to "$to" --batch 10 --quiet >/dev/null 2>&1 3>&- &
        mover=$!
        wait_until 60 more_arrived "$before"
        ! kill -KILL "$mover" 2>/dev/null || kills=$((kills + 1))
        wait "$mover" 2>/dev/null || true
    done
    mover=
    run "$MR_BIN" move orders --to "$to"
    [ "$status" -eq 0 ]
    [ "$(arrived)" = 8000 ]
    [ "$(compare)" = "0 missing, 0 too many" ]
    [ "$(sql "select count(*) from millrace.moving")" = 0 ]
    [ "$kills" -ge 10 ]
    show "killed $kills times, 8,000 jobs: $(compare_again)"
}

# The same once more, for the figures.
compare_again()
{
    there "select (select count(*) from came) || ' arrived, ' || (select count(distinct i) from came) || ' of them different'"
}

# Between each of the three steps, and in the midst of one: what a mover that died there leaves is finished by the next.
@test "a batch that arrived before its mover died is not taken twice" {
    make_jobs 30 1
    place=$(there "select millrace.move_target('orders') ->> 'place'")
    move=$(sql "select millrace.move_begin('orders', '$place') ->> 'move'")
    sql "copy (select t.* from millrace.move_take($move, 10) t) to stdout" >"$BATS_TEST_TMPDIR/batch" # died behind the first step
    run "$MR_BIN" move orders --to "$to" --limit 10 --json
    has '"jobs":10,'
    [ "$(arrived)" = 10 ]
    sql "copy (select t.* from millrace.move_take($move, 10) t) to stdout" >"$BATS_TEST_TMPDIR/batch"
    there "create table batch (origin text, no bigint, jobs jsonb[], args jsonb[], meta jsonb[], state bytea[], blob bytea[])"
    PGHOST=$THERE_HOST PGPORT=$THERE_PORT PGUSER=$THERE_USER psql -X -q -d "$to_db" -c '\copy batch from stdin' <"$BATS_TEST_TMPDIR/batch"
    there "select millrace.move_arrive(origin, no, 'orders', jobs, args, meta, state, blob) from batch" >/dev/null # died behind the second
    run "$MR_BIN" move orders --to "$to" --json
    [ "$status" -eq 0 ]
    has '"jobs":20,'
    has '"again":10,'
    [ "$(arrived)" = 30 ]
    [ "$(compare)" = "0 missing, 0 too many" ]
}

@test "the other server goes away in the midst and comes back" {
    make_jobs 1500 1
    "$MR_BIN" move orders --to "$to" --batch 10 --wait 60s >"$BATS_TEST_TMPDIR/out" 2>&1 3>&- &
    mover=$!
    wait_until 60 more_arrived 0
    "$MR_ROOT/tools/pgserver" crash "$THERE"
    "$MR_ROOT/tools/pgserver" start "$THERE"
    sql "select pg_terminate_backend(a.pid) from pg_stat_activity a where a.datname = current_database() and a.query like '%move_take%' and a.pid <> pg_backend_pid()" >/dev/null
    wait "$mover"
    mover=
    grep -q 'moved .* jobs' "$BATS_TEST_TMPDIR/out"
    [ "$(compare)" = "0 missing, 0 too many" ]
}

@test "what comes in while it follows is moved, too, until it is told to stop" {
    make_jobs 10 1
    "$MR_BIN" move orders --to "$to" --follow --json >"$BATS_TEST_TMPDIR/out" 2>&1 3>&- &
    mover=$!
    wait_until 60 more_arrived 9
    make_jobs 10 11
    wait_until 60 more_arrived 19
    kill -TERM "$mover"
    wait "$mover"
    mover=
    grep -q '"jobs":20,' "$BATS_TEST_TMPDIR/out"
    [ "$(compare)" = "0 missing, 0 too many" ]
}

@test "a full queue is waited for, and given up" {
    make_jobs 30 1
    there "select millrace.set_queue('orders', '{\"depth_limit\": 5}')" >/dev/null
    run "$MR_BIN" move orders --to "$to" --batch 5 --wait 500ms
    [ "$status" -eq 4 ]
    has "the database to move to: queue 'orders' is full"
    has "run the same command again to go on"
    "$MR_BIN" move orders --to "$to" --batch 5 --wait 60s >/dev/null 2>&1 3>&- &
    mover=$!
    there "select millrace.set_queue('orders', '{\"depth_limit\": null}')" >/dev/null
    wait "$mover"
    mover=
    [ "$(compare)" = "0 missing, 0 too many" ]
}

@test "what cannot be moved is refused, and the reason is told" {
    make_jobs 3 1
    run "$MR_BIN" move orders
    [ "$status" -eq 2 ]
    has "move needs --to"
    run "$MR_BIN" move orders --to "$to" --batch 0
    [ "$status" -eq 2 ]
    run "$MR_BIN" move nowhere --to "$to"
    [ "$status" -eq 1 ]
    has "queue 'nowhere' does not exist"
    run "$MR_BIN" move orders --to "$MILLRACE_DSN"
    [ "$status" -eq 1 ]
    has "queue 'orders' cannot be moved to itself"
    run "$MR_BIN" move orders --to "$MILLRACE_DSN" --to-queue second
    [ "$status" -eq 0 ]
    run "$MR_BIN" move second --to "host=$THERE_HOST port=$THERE_PORT user=$THERE_USER dbname=template1"
    [ "$status" -eq 1 ]
    has "the database to move to:"
    has "millrace migrate"
    there "drop function millrace.move_arrive"
    run "$MR_BIN" move second --to "$to"
    [ "$status" -eq 1 ]
    has "Install or upgrade the schema"
    run "$MR_BIN" move second --give-back
    [ "$status" -eq 0 ]
    has "put 3 jobs back"
    [ "$(sql "select millrace.depth('second')")" = 3 ]
    run "$MR_BIN" move second --to "host=$THERE_HOST port=1 dbname=none"
    [ "$status" -eq 3 ]
    has "the database to move to:"
    run "$MR_BIN" move second --to redis://127.0.0.1:1
    [ "$status" -eq 2 ]
}

@test "a user without the role is refused on either side" {
    make_jobs 3 1
    there "create role mover_${to_db} login; grant millrace_worker to mover_${to_db}"
    run "$MR_BIN" move orders --to "host=$THERE_HOST port=$THERE_PORT user=mover_${to_db} dbname=$to_db"
    [ "$status" -eq 1 ]
    has "the database to move to: permission denied for function move_target"
    [ "$(sql "select millrace.depth('orders')")" = 3 ]
    there "drop role mover_${to_db}"
}

@test "a transaction that has cancelled a job and is open is waited for" {
    make_jobs 5 1
    id=$(sql "select min(j.id) from millrace.jobs j where j.status = 'available'")
    mkfifo "$BATS_TEST_TMPDIR/say"
    psql -X -q <"$BATS_TEST_TMPDIR/say" >/dev/null 2>&1 3>&- &
    exec 9>"$BATS_TEST_TMPDIR/say"
    echo "begin; select millrace.cancel($id); select pg_notify('x', 'cancelled');" >&9
    wait_until 30 sql_is 1 "select count(*) from pg_locks l where l.locktype = 'advisory' and l.classid = 1297219595 and l.database = (select oid from pg_database where datname = current_database())"
    run "$MR_BIN" move orders --to "$to" --wait 300ms
    [ "$status" -eq 1 ]
    has "a transaction that cancels or changes jobs is open"
    echo "commit;" >&9
    exec 9>&-
    run "$MR_BIN" move orders --to "$to" --wait 60s
    [ "$status" -eq 0 ]
    [ "$(arrived)" = 4 ]
    [ "$(sql "select millrace.job($id) ->> 'status'")" = cancelled ]
}

sql_is()
{
    [ "$(sql "$2")" = "$1" ]
}
