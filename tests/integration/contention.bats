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

@test "jobs that a transaction has not committed are not walked by each claim" {
    local out
    sql "select millrace.set_queue('q', '{}')" >/dev/null
    sql "select count(*) from millrace.claim('q')" >/dev/null
    { echo "begin; select count(*) from millrace.enqueue_many('k', array_fill('{}'::jsonb, array[50000]), 'q');"; wait_until 60 test -e "$MR_SCRATCH/end"; echo "rollback;"; } |
        psql -X -q -A -t >"$MR_SCRATCH/bulk" &
    wait_until 20 grep -q 50000 "$MR_SCRATCH/bulk"
    # One job behind them, then nothing; with one and with many asked for.
    sql "select millrace.enqueue('k', queue => 'q'), millrace.enqueue('k', queue => 'q')" >/dev/null
    out=$(psql -X -q -A -t <<'SQL'
select sum(idx_tup_read) as before from pg_stat_user_indexes where relname ~ '^job_' \gset
select count(*) from millrace.claim('q');
select count(*) from millrace.claim('q', max_jobs => 10);
select count(*) from millrace.claim('q');
select count(*) from millrace.claim('q', max_jobs => 10);
select pg_stat_force_next_flush();
select sum(idx_tup_read) - :before < 1000 from pg_stat_user_indexes where relname ~ '^job_';
SQL
    )
    touch "$MR_SCRATCH/end"
    wait
    echo "$out"
    [ "$(tr '\n' ' ' <<<"$out")" = '1 1 0 0  t ' ]
}
