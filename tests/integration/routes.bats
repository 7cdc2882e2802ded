#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# A share of the tenants goes by way of Redis, the others are claimed directly, and the counts of both are those of what went in. Switched while jobs come and run.

bats_require_minimum_version 1.5.0
load ../lib/server
load ../lib/daemon
load ../lib/redis
load ../lib/relay

# Jobs of the tenants 1 to $2, $1 of them, which name the queue app.
put()
{
    sql "select count(*) from millrace.enqueue_jobs((
           select jsonb_agg(jsonb_build_object('kind', 'k', 'queue', 'app', 'tenant', 'tenant ' || n % $2, 'args', jsonb_build_object('n', n)))
             from generate_series(1, $1) n))" >/dev/null
}

# What direct workers run; hog, of the library, is the other way.
start_direct()
{
    # shellcheck disable=SC2016 # the handler's own variable
    printf '#!/bin/sh\necho "$MILLRACE_JOB_ID" >>"%s/direct"\n' "$BATS_TEST_TMPDIR" >direct.sh
    chmod +x direct.sh
    printf 'worker direct { queue = "app" run = "./direct.sh" concurrency = 4 }\n' >direct.conf
    daemon direct serve -c direct.conf --roles work
}

# The tenants whose jobs are in a queue, or were.
tenants()
{
    sql "select distinct tenant from millrace.jobs where queue = '$1' order by 1"
}

lines()
{
    [ "$(wc -l <"$1")" -eq "$2" ]
}

@test "a tenth of the tenants by Redis beside the rest: what went in came out, once, each its own way" {
    redis_new
    write_handler 'exit 0'
    run -0 "$MR_BIN" queue set app route=hog route_share=10
    [[ $output =~ route_share\ +10 ]]
    put 1000 200
    local there
    there=$(sql "select count(*) from millrace.jobs where queue = 'hog'")
    [ "$there" -ge 50 ]
    [ "$there" -le 160 ]
    [ "$(sql "select count(*) from millrace.jobs where queue = 'app'")" -eq $((1000 - there)) ]
    start_relay fleet
    start_worker w 'run = "./handler.sh"' 'concurrency = 4'
    start_direct
    wait_until 120 jobs_are app completed $((1000 - there)) || { show_log direct; return 1; }
    wait_until 120 jobs_are hog completed "$there" || { show_log fleet; show_log w; return 1; }
    # each ran once, and where it belongs
    [ "$(ran)" -eq "$there" ]
    lines ran "$there"
    lines direct $((1000 - there))
    [ "$(sort -u direct | wc -l)" -eq $((1000 - there)) ]
    [ -z "$(comm -12 <(tenants app) <(tenants hog))" ]
    # and these are the tenants that a shadow with this share would have copied
    diff <(tenants hog) <(sql "select t from (select distinct 'tenant ' || n as t from generate_series(0, 199) n) t where millrace.shadow_share(t, 0) < 10 order by 1")
}

@test "the share grows and shrinks while jobs come and run: none is lost, none runs twice" {
    redis_new
    write_handler 'exit 0'
    sql "select millrace.set_queue('app', '{\"route\": \"hog\"}')" >/dev/null
    start_relay fleet
    start_worker w 'run = "./handler.sh"' 'concurrency = 4'
    start_direct
    local share
    for share in 10 50 100 30 0; do
        sql "select millrace.set_queue('app', '{\"route_share\": $share}')" >/dev/null
        put 100 50
    done
    all_done()
    {
        [ "$(sql "select count(*) from millrace.jobs where queue in ('app', 'hog') and status = 'completed'")" -eq 500 ]
    }
    wait_until 120 all_done || { show_log fleet; show_log w; show_log direct; return 1; }
    [ "$(cat ran direct | wc -l)" -eq 500 ]
    [ "$(ran)" -gt 100 ]
    [ "$(wc -l <direct)" -gt 100 ]
    # at a hundred all went one way, at none the other
    [ "$(sql "select count(*) from millrace.jobs where queue = 'hog'")" -eq "$(ran)" ]
}

@test "one job and a file by the command line; what is there comes back with move, keys and all" {
    sql "select millrace.set_queue('app', '{\"route\": \"hog\", \"route_tenants\": \"acme\"}')" >/dev/null
    local here there
    here=$("$MR_BIN" enqueue k --queue app --tenant globex)
    there=$("$MR_BIN" enqueue k --queue app --tenant acme --unique once)
    [ "$(sql "select string_agg(queue, ' ' order by id) from millrace.jobs where id in ($here, $there)")" = 'app hog' ]
    printf '{"kind":"k","queue":"app","tenant":"acme"}\n{"kind":"k","queue":"app"}\n' | "$MR_BIN" enqueue --file - >/dev/null
    jobs_are hog available 2
    jobs_are app available 2
    sql "select millrace.set_queue('app', '{\"route_tenants\": null}')" >/dev/null
    [ "$("$MR_BIN" enqueue k --queue app --tenant acme --unique once)" = "$there" ]
    run -0 "$MR_BIN" move hog --to "$MILLRACE_DSN" --to-queue app
    [[ $output =~ "moved 2 jobs" ]]
    jobs_are app available 4
    # the key came along
    [ "$("$MR_BIN" enqueue k --queue app --tenant acme --unique once)" = \
        "$(sql "select id from millrace.jobs where queue = 'app' and tenant = 'acme' and id in (select job_id from millrace.unique_key)")" ]
    jobs_are app available 4
}

@test "what cannot be is refused with the reason" {
    run -1 "$MR_BIN" queue set app route=app
    [[ $output =~ "queue 'app' cannot be its own route" ]]
    run -1 "$MR_BIN" queue set app route_share=101
    [[ $output =~ "must be from 0 to 100, not 101" ]]
    run -1 "$MR_BIN" queue set app "route_tenants=a, b"
    [[ $output =~ "does not accept 'a, b'" ]]
    printf 'queue app { route = "hog"  route_share = 101 }\n' >bad.conf
    run -1 "$MR_BIN" serve -c bad.conf --check
    [[ $output =~ "Write a whole number from 0 to 100" ]]
}
