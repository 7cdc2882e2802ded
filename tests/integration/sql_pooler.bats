#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# The sql handler through PgBouncer in transaction mode: functions, batches, procedures, timeouts.

bats_require_minimum_version 1.5.0
load ../lib/server
load ../lib/pgbouncer

setup_file()
{
    fresh_db
    psql -X -q -v ON_ERROR_STOP=1 <<'SQL'
create table done (job bigint, what text);
create function note(job jsonb) returns void language plpgsql as $$
begin
  insert into done values ((job ->> 'id')::bigint, 'note');
  perform pg_sleep(coalesce((job #>> '{args,sleep}')::float, 0));
end $$;
create function many(jobs jsonb[]) returns table (id bigint, error text) language plpgsql as $$
begin
  insert into done select (j ->> 'id')::bigint, 'many' from unnest(jobs) j;
end $$;
create procedure steps(job jsonb) language plpgsql as $$
begin
  insert into done values ((job ->> 'id')::bigint, 'first');
  commit;
  perform pg_sleep(coalesce((job #>> '{args,sleep}')::float, 0));
  insert into done values ((job ->> 'id')::bigint, 'second');
end $$;
SQL
    start_pgbouncer
}

teardown_file()
{
    stop_pgbouncer
    drop_db
}

setup()
{
    q=pooled$BATS_TEST_NUMBER
    sql 'truncate done'
}

work()
{
    "$MR_BIN" work "$q" --until-empty --breaker-failures 0 --pooler "$@"
}

enqueue_many()
{
    sql "select count(*) from millrace.enqueue_many('k', array_fill('{}'::jsonb, array[$1]), '$q')"
}

noted()
{
    sql "select count(*) || ' ' || count(distinct job) from done"
}

@test "a function for each job" {
    enqueue_many 60
    slow=$(sql "select millrace.enqueue('k', '{\"sleep\": 30}', queue => '$q', timeout => '300 ms')")
    work --sql note --concurrency 3
    [ "$(noted)" = '60 60' ]
    [[ $(sql "select error from millrace.jobs where id = $slow") == 'timed out after 300 ms'* ]]
    # the timeout was local to its transaction
    [ "$(sql 'show statement_timeout')" = 0 ]
}

@test "a function for a batch" {
    enqueue_many 60
    work --sql many --per-batch --batch 20
    [ "$(noted)" = '60 60' ]
}

@test "a procedure that commits, and is cancelled after its time" {
    enqueue_many 5
    slow=$(sql "select millrace.enqueue('k', '{\"sleep\": 30}', queue => '$q', timeout => '300 ms')")
    work --sql steps
    [ "$(noted)" = '11 6' ]
    [[ $(sql "select error from millrace.jobs where id = $slow") == 'timed out after 300 ms'* ]]
}
