#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# The sql handler: effects and completion in one transaction, whatever a function does and whatever
# happens to it.

bats_require_minimum_version 1.5.0
load ../lib/server
load ../lib/workers

setup_file()
{
    fresh_db
    sql "select millrace.set_retry('k', base => '10 minutes', jitter => 0)"
    sql "create table done (job bigint not null, attempt int, what text); create table gate (open boolean)"
    psql -X -q -v ON_ERROR_STOP=1 <<'SQL'
create function note(job jsonb) returns jsonb language plpgsql as $$
begin
  insert into done values ((job ->> 'id')::bigint, (job ->> 'attempt')::int, 'note');
  if job #> '{args,raise}' is not null then
    raise exception '%', job #>> '{args,raise}' using errcode = coalesce(job #>> '{args,code}', 'P0001');
  end if;
  if job #> '{args,sleep}' is not null then
    perform pg_sleep((job #>> '{args,sleep}')::float);
  end if;
  while job #> '{args,gate}' is not null and not exists (select from gate) loop
    perform pg_sleep(0.02);
  end loop;
  return job #> '{args,answer}';
end $$;
SQL
}

teardown_file()
{
    drop_db
}

setup()
{
    q=sql$BATS_TEST_NUMBER
    sql 'truncate done'
}

teardown()
{
    stop_workers || true
}

enqueue()
{
    sql "select millrace.enqueue('k', '${1:-{\}}', queue => '$q'${2:+, $2})"
}

# enqueue_many COUNT SQL-OF-ARGS (i is the number)
enqueue_many()
{
    sql "select count(*) from millrace.enqueue_many('k', array(select $2 from generate_series(1, $1) i), '$q')" >/dev/null
}

work()
{
    local function=$1
    shift
    "$MR_BIN" work "$q" --sql "$function" --until-empty --breaker-failures 0 "$@"
}

fate()
{
    sql "select status, attempt, coalesce(error, '') from millrace.jobs where id = $1"
}

noted()
{
    sql "select count(*) from done"
}

@test "one transaction: effects and completion, with a result" {
    a=$(enqueue '{"answer": {"sum": 5}}')
    b=$(enqueue)
    work note
    [[ $(fate "$a") == completed\|1\|* ]]
    [[ $(fate "$b") == completed\|1\|* ]]
    [ "$(sql "select millrace.job($a) #>> '{result,sum}'")" = 5 ]
    [ "$(noted)" -eq 2 ]
}

@test "what a function returns becomes the result, whatever its type" {
    sql "create schema \"Odd one\";
         create function \"Two Words\"(job jsonb) returns text language sql as 'select ''say \"hi\"''';
         create function nothing(job jsonb) returns void language plpgsql as 'begin end';
         create function truth(job jsonb) returns boolean language sql as 'select true';
         create function number(job jsonb) returns bigint language sql as 'select 42';
         create function empty(job jsonb) returns jsonb language sql as 'select null::jsonb'"
    sql "alter function \"Two Words\"(jsonb) set schema \"Odd one\""
    for pair in '"Odd one"."Two Words"|say "hi"' 'nothing|none' 'truth|true' 'public.number|42' 'NUMBER|42' 'empty|none'; do
        id=$(enqueue)
        work "${pair%|*}"
        [ "$(sql "select coalesce(millrace.job($id) ->> 'result', 'none')")" = "${pair#*|}" ]
    done
}

@test "a job that raises fails alone, with message and SQLSTATE, and leaves nothing" {
    enqueue_many 20 "case when i = 7 then '{\"raise\": \"no such note\", \"code\": \"MY001\"}' else '{}' end::jsonb"
    work note --concurrency 1
    [ "$(noted)" -eq 19 ]
    [ "$(sql "select count(*) from millrace.jobs where queue = '$q' and status = 'completed'")" -eq 19 ]
    [[ $(sql "select error from millrace.jobs where queue = '$q' and status = 'scheduled'") == 'no such note (SQLSTATE MY001)'* ]]
}

@test "answers: failed keeps the effects, snoozed and requeued put back" {
    a=$(enqueue '{"answer": {"outcome": "failed", "error": "later", "retry_in": "2 hours"}}')
    b=$(enqueue '{"answer": {"outcome": "failed", "error": "never", "retry": false}}')
    c=$(enqueue '{"answer": {"outcome": "snoozed", "delay": 3600}}')
    d=$(enqueue "{\"answer\": {\"outcome\": \"requeued\", \"changes\": {\"queue\": \"$q-b\"}}}")
    work note
    [[ $(fate "$a") == 'scheduled|2|later' ]]
    [[ $(fate "$b") == 'dead|1|never' ]]
    [[ $(fate "$c") == 'scheduled|1|' ]]
    [ "$(sql "select millrace.depth('$q-b')")" -eq 1 ]
    [ "$(noted)" -eq 4 ]
    [ -n "$d" ]
}

@test "a bad answer fails its job alone and takes its effects back" {
    enqueue_many 10 "case i when 3 then '{\"answer\": {\"outcome\": \"sideways\"}}'
                            when 6 then '{\"answer\": {\"outcome\": \"snoozed\", \"delay\": \"a while\"}}' else '{}' end::jsonb"
    work note --concurrency 1
    [ "$(noted)" -eq 8 ]
    run sql "select error from millrace.jobs where queue = '$q' and status = 'scheduled' order by id"
    [[ ${lines[0]} == 'the function gave an answer that cannot be used: unknown outcome "sideways"'* ]]
    [[ ${lines[1]} == 'the outcome was refused: changes has a value of the wrong type: '*'(SQLSTATE 22023)' ]]
}

@test "a timeout ends a function, and one that waits for a lock" {
    a=$(enqueue '{"sleep": 60}' "timeout => '300 ms'")
    b=$(enqueue)
    work note
    [[ $(fate "$a") == *'timed out after 300 ms: canceling statement due to statement timeout (SQLSTATE 57014)'* ]]
    [[ $(fate "$b") == completed\|* ]]
    sql "create function locks(job jsonb) returns void language plpgsql as 'begin lock table done; end'"
    psql -X -q -c 'begin; lock table done; select pg_sleep(60)' 3>&- >/dev/null 2>&1 &
    holder=$!
    wait_until 20 blocked_table
    c=$(enqueue)
    work locks --timeout 400ms
    kill "$holder"
    [[ $(fate "$c") == *'(SQLSTATE 5'* ]]
    [[ $(fate "$c") == *timeout* ]]
    sql "select pg_terminate_backend(pid) from pg_stat_activity where query like '%lock table done; select pg_sleep%' and pid <> pg_backend_pid()"
}

blocked_table()
{
    [ "$(sql "select count(*) from pg_locks where relation = 'done'::regclass and mode = 'AccessExclusiveLock' and granted")" -eq 1 ]
}

@test "a batch function gets all at once and names the ones that failed" {
    psql -X -q -v ON_ERROR_STOP=1 <<'SQL'
create function many(jobs jsonb[]) returns table (id bigint, error text) language plpgsql as $$
begin
  insert into done select (j ->> 'id')::bigint, cardinality(jobs), 'many' from unnest(jobs) j;
  return query select (j ->> 'id')::bigint, j #>> '{args,bad}' from unnest(jobs) j where j #> '{args,bad}' is not null;
end $$;
SQL
    enqueue_many 50 "case when i % 10 = 0 then jsonb_build_object('bad', 'number ' || i) else '{}' end"
    work many --per-batch --batch 25
    [ "$(sql 'select count(*) || chr(32) || count(distinct attempt) || chr(32) || min(attempt) from done')" = '50 1 25' ]
    [ "$(sql "select count(*) from millrace.jobs where queue = '$q' and status = 'completed'")" -eq 45 ]
    [ "$(sql "select string_agg(error, ',' order by id) from millrace.jobs where queue = '$q' and status = 'scheduled'")" = \
        'number 10,number 20,number 30,number 40,number 50' ]
}

# Three jobs, each in a transaction of its own and apart from the others; what the calls got of them.
three_apart()
{
    sql 'truncate done'
    # in the pauses a worker that does not wait for more takes one; by one session, so that a slow machine makes them hardly longer
    psql -X -q -v ON_ERROR_STOP=1 >/dev/null <<SQL
select millrace.enqueue('k', queue => '$q');
select pg_sleep(0.2);
select millrace.enqueue('k', queue => '$q');
select pg_sleep(0.2);
select millrace.enqueue('k', queue => '$q');
SQL
    wait_until 30 eval '[ "$(noted)" -eq 3 ]'
    sql 'select max(attempt) from done'
}

@test "--batch-wait: three jobs that come one after the other are one call" {
    psql -X -q -v ON_ERROR_STOP=1 <<'SQL'
create function gather(jobs jsonb[]) returns table (id bigint, error text) language plpgsql as $$
begin
  insert into done select (j ->> 'id')::bigint, cardinality(jobs), 'gather' from unnest(jobs) j;
end $$;
SQL
    local largest i
    start_worker "$q" --sql gather --per-batch --batch 10 --batch-wait 1s
    # a worker that looks by itself, as it does every second, or a busy machine may come between: not every time
    for i in 1 2 3 4 5 6 7 8; do
        largest=$(three_apart)
        [ "$largest" -lt 3 ] || break
    done
    show "three in one call at attempt $i"
    [ "$largest" -eq 3 ]
    stop_workers
}

@test "a batch function that raises: the poisonous job fails alone" {
    psql -X -q -v ON_ERROR_STOP=1 <<'SQL'
create function picky(jobs jsonb[]) returns table (id bigint, error text) language plpgsql as $$
begin
  insert into done select (j ->> 'id')::bigint, cardinality(jobs), 'picky' from unnest(jobs) j;
  perform 1 / (j #>> '{args,divisor}')::int from unnest(jobs) j;
end $$;
SQL
    enqueue_many 40 "jsonb_build_object('divisor', case when i in (11, 30) then 0 else i end)"
    work picky --per-batch --batch 40 --concurrency 1
    [ "$(noted)" -eq 38 ]
    [ "$(sql 'select count(distinct job) from done')" -eq 38 ]
    [ "$(sql "select count(*) from millrace.jobs where queue = '$q' and status = 'completed'")" -eq 38 ]
    [ "$(sql "select count(*) from millrace.jobs where queue = '$q' and status = 'scheduled' and error like 'division by zero (SQLSTATE 22012)%'")" -eq 2 ]
}

@test "a batch function of the wrong shape, or with ids of its own, says so" {
    sql "create function shapeless(jobs jsonb[]) returns setof int language sql as 'select 1'"
    sql "create function inventive(jobs jsonb[]) returns table (id bigint, error text) language sql as 'select 999999999::bigint, ''x'''"
    a=$(enqueue)
    work shapeless --per-batch
    [[ $(fate "$a") == *'returns 1 column, not id and error'* ]]
    b=$(enqueue)
    work inventive --per-batch
    [[ $(fate "$b") == *'returned the id 999999999, which is not in its batch'* ]]
}

@test "a procedure commits by itself and is found out" {
    psql -X -q -v ON_ERROR_STOP=1 <<'SQL'
create procedure steps(job jsonb) language plpgsql as $$
begin
  insert into done values ((job ->> 'id')::bigint, 1, 'first');
  commit;
  if job #> '{args,raise}' is not null then
    raise exception 'after the first step';
  end if;
  perform pg_sleep(coalesce((job #>> '{args,sleep}')::float, 0));
  insert into done values ((job ->> 'id')::bigint, 1, 'second');
end $$;
create procedure answers(inout job jsonb) language plpgsql as $$
begin
  if job #> '{args,snooze}' is not null then
    job := '{"outcome": "snoozed", "delay": 3600}';
  end if;
end $$;
SQL
    a=$(enqueue)
    b=$(enqueue '{"raise": true}')
    c=$(enqueue '{"sleep": 60}' "timeout => '300 ms'")
    work steps
    [[ $(fate "$a") == completed\|* ]]
    [[ $(fate "$b") == 'scheduled|'*'after the first step (SQLSTATE P0001)'* ]]
    [[ $(fate "$c") == 'scheduled|'*'timed out after 300 ms'* ]]
    [ "$(sql "select string_agg(what, ',' order by job, what) from done")" = first,second,first,first ]
    d=$(enqueue '{"snooze": true}')
    e=$(enqueue)
    work answers --procedure
    [[ $(fate "$d") == 'scheduled|1|' ]]
    [[ $(fate "$e") == completed\|* ]]
    [ "$(sql "select coalesce(millrace.job($e) ->> 'result', 'none')")" = none ]
}

@test "a lease that is lost takes the effects with it, and is counted" {
    id=$(enqueue '{"gate": true}' "timeout => '1 minute'")
    start_worker "$q" --sql note --lease 1s
    wait_until 20 running_note
    # the worker stands still, its backend does not; meanwhile the lease runs out and is rescued
    kill -STOP "${worker_pids[0]}"
    wait_until 30 rescued "$id"
    sql 'insert into gate values (true)'
    kill -CONT "${worker_pids[0]}"
    wait_until 30 completed "$id"
    stop_workers
    [ "$(worker_sum lost)" -ge 1 ]
    grep -q worker.lease_lost "$MR_SCRATCH"/worker.*.log
    # only the second run has left anything
    [ "$(sql 'select string_agg(attempt::text, chr(32)) from done')" = 2 ]
}

rescued()
{
    sql 'select count(*) from millrace.maintain()' && [[ $(fate "$1") != running\|* ]]
}

completed()
{
    [[ $(fate "$1") == completed\|* ]]
}

running_note()
{
    [ "$(sql "select count(*) from pg_stat_activity where datname = current_database() and application_name = 'millrace sql' and state = 'active'")" -ge 1 ]
}

@test "a deadlock is tried again" {
    # each waits for the other to have its first row; a sequence is not rolled back, so whoever comes again does not wait
    sql "create table pair (no int primary key, n int not null default 0);
         insert into pair values (1), (2);
         create sequence began;
         create function cross_over(job jsonb) returns void language plpgsql as '
         begin
           update pair set n = n + 1 where no = (job #>> ''{args,first}'')::int;
           perform nextval(''began'');
           while (select last_value from began) < 2 loop
             perform pg_sleep(0.01);
           end loop;
           update pair set n = n + 1 where no = 3 - (job #>> ''{args,first}'')::int;
         end'"
    enqueue_many 2 "jsonb_build_object('first', i)"
    work cross_over --concurrency 2 --timeout 1min
    [ "$(sql 'select last_value from began')" -ge 3 ]
    [ "$(sql "select count(*) from millrace.jobs where queue = '$q' and status = 'completed' and attempt = 1")" -eq 2 ]
    [ "$(sql 'select sum(n) from pair')" -eq 4 ]
}

@test "a connection that is cut in the middle changes nothing but the time it takes" {
    enqueue_many 30 "'{\"sleep\": 0.05}'::jsonb"
    start_worker "$q" --sql note --concurrency 2 --until-empty
    for _ in 1 2; do
        wait_until 20 running_note
        sql "select count(pg_terminate_backend(pid)) from pg_stat_activity where datname = current_database() and application_name = 'millrace sql'" >/dev/null
    done
    wait "${worker_pids[@]}"
    worker_pids=()
    [ "$(sql "select count(*) from millrace.jobs where queue = '$q' and status = 'completed'")" -eq 30 ]
    [ "$(noted)" -eq 30 ]
    [ "$(sql 'select count(distinct job) from done')" -eq 30 ]
    [ "$(sql "select max(attempt) from millrace.jobs where queue = '$q'")" -eq 1 ]
}

@test "a constraint that is checked at the commit fails the one job that breaks it" {
    sql "create table parent (id int primary key);
         create table child (parent int references parent deferrable initially deferred);
         insert into parent values (1);
         create function adopt(job jsonb) returns void language sql as 'insert into child values ((job #>> ''{args,parent}'')::int)'"
    enqueue_many 12 "jsonb_build_object('parent', case when i = 5 then 77 else 1 end)"
    work adopt --concurrency 1
    [ "$(sql 'select count(*) from child')" -eq 11 ]
    [ "$(sql "select count(*) from millrace.jobs where queue = '$q' and status = 'completed'")" -eq 11 ]
    [[ $(sql "select error from millrace.jobs where queue = '$q' and status = 'scheduled'") == *'violates foreign key constraint'*'(SQLSTATE 23503)'* ]]
}

@test "always as the worker's own role" {
    sql "create role sql_worker_$$ login in role millrace_worker;
         create table owned (x int);
         create function pry(job jsonb) returns void language sql as 'insert into owned values (1)';
         create function me(job jsonb) returns text language sql as 'select current_user::text'"
    a=$(enqueue)
    MILLRACE_DSN=${MILLRACE_DSN/user=$PGUSER/user=sql_worker_$$} work pry
    [[ $(fate "$a") == *'permission denied for table owned (SQLSTATE 42501)'* ]]
    b=$(enqueue)
    MILLRACE_DSN=${MILLRACE_DSN/user=$PGUSER/user=sql_worker_$$} work me
    [ "$(sql "select millrace.job($b) ->> 'result'")" = "sql_worker_$$" ]
    sql "drop owned by sql_worker_$$; drop role sql_worker_$$"
}

@test "names that are none, and functions that are not there" {
    for name in 'f()' 'a.b.c' 'x; drop table done' '' '"open'; do
        run "$MR_BIN" work "$q" --sql "$name" --until-empty
        [ "$status" -ne 0 ]
        [[ $output == *'not the name of a function'* ]] || [ -z "$name" ]
    done
    run "$MR_BIN" work "$q" --sql f --per-batch --procedure --until-empty
    [ "$status" -ne 0 ]
    [[ $output == *'exclude each other'* ]]
    id=$(enqueue)
    work nowhere_to_be_found
    [[ $(fate "$id") == *'function nowhere_to_be_found(jsonb) does not exist (SQLSTATE 42883)'* ]]
}

@test "SIGTERM in the middle: what is done is done, the rest goes back with its attempt" {
    enqueue_many 8 "'{\"sleep\": 0.6}'::jsonb"
    start_worker "$q" --sql note --concurrency 1 --grace 300ms
    wait_until 20 running_note
    stop_workers
    [ "$(noted)" -eq "$(sql "select count(*) from millrace.jobs where queue = '$q' and status = 'completed'")" ]
    [ "$(sql "select count(*) from millrace.jobs where queue = '$q' and status = 'available' and attempt = 1")" -ge 1 ]
    work note --concurrency 2
    [ "$(noted)" -eq 8 ]
    [ "$(sql 'select count(distinct job) from done')" -eq 8 ]
}
