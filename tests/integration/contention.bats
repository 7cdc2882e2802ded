#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# Many sessions that claim single jobs of a nearly empty queue with several parts and priorities: each locks lanes that turn out
# to be empty while others hold the next ones. Nobody may end in a deadlock, and every job is handed out once.

load ../lib/server

setup() { fresh_db; }
teardown() { drop_db; }

@test "claimers of several lanes never wait for each other in a circle" {
    sql "select millrace.set_queue('q', '{\"parts\": 4}')" >/dev/null
    sql "create table taken (job_id bigint primary key)" >/dev/null
    cat >"$MR_SCRATCH/claim.sql" <<'SQL'
\set priority random(1, 3)
select millrace.enqueue('k', queue => 'q', priority => :priority);
insert into taken select id from millrace.claim('q', lease_for => '1 hour');
insert into taken select id from millrace.claim('q', lease_for => '1 hour');
SQL
    run pgbench -n -c 12 -j 2 -t 150 -f "$MR_SCRATCH/claim.sql"
    echo "$output"
    [ "$status" -eq 0 ]
    [[ $output == *"transactions actually processed: 1800/1800"* ]]
    # What a race left behind comes with the next claims.
    wait_until 20 all_taken
    [ "$(sql "select count(*) from taken")" -eq 1800 ]
}

all_taken()
{
    sql "insert into taken select id from millrace.claim('q', lease_for => '1 hour', max_jobs => 100)" >/dev/null
    [ "$(sql "select millrace.depth('q')")" -eq 0 ]
}
