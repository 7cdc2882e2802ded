#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# `millrace shadow` between two servers: copies run there and are compared, whatever happens to the one who copies them. What the SQL functions do by
# themselves: sql/shadow.
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
    sql "select millrace.set_queue('orders', '{}')"
    shadow=
}

teardown()
{
    [ -z "$shadow" ] || kill -KILL "$shadow" 2>/dev/null || true
    drop_db
}

# $1 jobs with all parts now and then, of twenty tenants.
make_jobs()
{
    sql "select count(*)
           from generate_series(1, $1) i
          cross join lateral millrace.enqueue('k' || i % 3, jsonb_build_object('i', i), 'orders', (i % 2 * 10)::int, tenant => 'tenant ' || i % 20,
                                              state => case when i % 5 = 0 then decode(md5(i::text), 'hex') end, meta => case when i % 7 = 0 then '{\"m\": 1}'::jsonb end) e" >/dev/null
}

shadow_all()
{
    "$MR_BIN" shadow orders --to "$to" --until-idle --json "$@"
}

@test "copies of all jobs come out as they went in, and the queue is untouched" {
    make_jobs 5
    run shadow_all # from now on
    [ "$status" -eq 0 ]
    has '{"mirrored":0,'
    make_jobs 500
    run "$MR_BIN" shadow orders --to "$to" --until-idle
    [ "$status" -eq 0 ]
    has '     500    500        0      0          0             0        0        0'
    [ "$(sql "select millrace.depth('orders')")" = 505 ]
    [ "$(there "select millrace.depth('orders')")" = 0 ]
    sql "select millrace.complete(c.lease) from (select distinct c.lease from millrace.claim('orders', 'w', 1000) c) c" >/dev/null
    run shadow_all
    [ "$status" -eq 0 ]
    has '{"mirrored":500,"arrived":500,"equal":500,'
}

@test "a row that was altered there is found" {
    shadow_all >/dev/null
    make_jobs 20
    # Copied, and not compared yet.
    place=$(there "select millrace.move_target('orders') ->> 'place'")
    move=$(sql "select millrace.shadow_begin('orders', '$place') ->> 'move'")
    sql "copy (select t.* from millrace.move_take($move, 100) t) to stdout" >"$BATS_TEST_TMPDIR/batch"
    there "create table batch (like millrace.arrival); drop table batch; create table batch of millrace.move_batch"
    PGHOST=$THERE_HOST PGPORT=$THERE_PORT PGUSER=$THERE_USER psql -X -q -d "$to_db" -c '\copy batch from stdin' <"$BATS_TEST_TMPDIR/batch"
    there "select millrace.move_arrive(origin, batch, 'orders', jobs, args, meta, state, blob) from batch" >/dev/null
    there "update millrace.job set payload_args = '{\"i\": 0}' where payload_args = '{\"i\": 13}'"
    there "select millrace.enqueue('stranger', '{}', 'orders')" >/dev/null
    run shadow_all
    [ "$status" -eq 1 ]
    has '"mirrored":20,"arrived":20,"equal":19,"missing":0,"extra":1,"different":1,"out_of_order":0'
    [ "$(there "select string_agg(m ->> 'what', ' ' order by m ->> 'what') from millrace.mirror_total t, jsonb_array_elements(millrace.shadow_story(t.origin_name) -> 'mismatches') m")" = \
        'different extra' ]
}

@test "a share of the tenants, and one tenant" {
    shadow_all --share 40% >/dev/null
    make_jobs 400
    run shadow_all --share 40%
    [ "$status" -eq 0 ]
    tenants=$(there "select count(distinct j.tenant) from millrace.jobs j where j.queue = 'orders'")
    [ "$tenants" -ge 1 ]
    [ "$tenants" -lt 20 ]
    [ "$(there "select count(*) from millrace.jobs j where j.queue = 'orders'")" -eq $((tenants * 20)) ]
    "$MR_BIN" shadow orders --to "$to" --to-queue one --tenant 'tenant 3' --until-idle --quiet >/dev/null
    make_jobs 40
    run "$MR_BIN" shadow orders --to "$to" --to-queue one --tenant 'tenant 3' --until-idle --json
    has '{"mirrored":2,'
}

@test "a shadow that is killed again and again copies each job once" {
    local i
    shadow_all >/dev/null
    for i in 1 2 3 4 5 6 7 8; do
        make_jobs 400
        "$MR_BIN" shadow orders --to "$to" --batch 10 --quiet >/dev/null 2>&1 3>&- &
        shadow=$!
        wait_until 60 came_on "$i"
        kill -KILL "$shadow" 2>/dev/null || true
        wait "$shadow" 2>/dev/null || true
    done
    shadow=
    run shadow_all
    [ "$status" -eq 0 ]
    has '{"mirrored":3200,"arrived":3200,"equal":3200,'
}

# Whether something of the round $1 has come.
came_on()
{
    [ "$(there "select coalesce(sum(a.total), 0) from millrace.arrival a")" -gt $((($1 - 1) * 400)) ]
}

@test "what it cannot do it says" {
    run "$MR_BIN" shadow orders
    [ "$status" -eq 2 ]
    has 'shadow needs --to'
    run "$MR_BIN" shadow orders --to "$to" --share 0
    [ "$status" -eq 2 ]
    run "$MR_BIN" shadow orders --to "$to" --share much
    [ "$status" -eq 2 ]
    has 'Write a percentage'
    run "$MR_BIN" shadow nowhere --to "$to" --until-idle
    [ "$status" -eq 1 ]
    has "queue 'nowhere' does not exist"
    run "$MR_BIN" shadow orders --to "$MILLRACE_DSN" --until-idle
    [ "$status" -eq 1 ]
    has 'cannot be its own shadow'
    run "$MR_BIN" shadow orders --to "host=$THERE_HOST port=1 dbname=none" --until-idle --wait 300ms
    [ "$status" -eq 3 ]
    has 'the database to move to:'
}
