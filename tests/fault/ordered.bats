#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# An ordered queue under trouble: eight workers, fifty keys, handlers that fail at random, workers killed with SIGKILL, and producers that
# go on. Of each key the jobs complete in the order in which they were enqueued, and never two of them run at once.

load ../lib/server
load ../lib/workers

keys=50
jobs=60 # of each key
kills=10

setup()
{
    fresh_db
    sql "select millrace.set_queue('q', '{\"ordered\": true, \"parts\": 4, \"max_attempts\": 1000, \"poison_limit\": 1000}')"
    sql "select millrace.set_retry('k', max_attempts => 1000, base => '20 ms', factor => 1)"
    sql 'create table run (key int, i int, attempt int, began timestamptz, ended timestamptz, constraint once unique (key, i))'
    psql -X -q -v ON_ERROR_STOP=1 <<'SQL'
create function note(job jsonb) returns void language plpgsql as $$
declare
  v_began timestamptz := clock_timestamp();
begin
  perform pg_sleep(random() * 0.004);
  if random() < 0.1 then
    raise exception 'trouble';
  end if;
  insert into run values ((job #>> '{args,k}')::int, (job #>> '{args,i}')::int, (job ->> 'attempt')::int, v_began, clock_timestamp());
end $$;
SQL
}

teardown()
{
    stop_workers
    drop_db
}

# enqueue FROM TO: these of each key, in one transaction for each number; key by key in between.
enqueue()
{
    local i
    for ((i = $1; i <= $2; i++)); do
        echo "select count(*) from millrace.enqueue_jobs((select jsonb_agg(jsonb_build_object('kind', 'k', 'queue', 'q', 'ordering_key', 'key ' || k,
                'args', jsonb_build_object('k', k, 'i', $i)) order by random()) from generate_series(1, $keys) k));"
    done | psql -X -q -A -t -v ON_ERROR_STOP=1 >/dev/null
}

done_at_least()
{
    [ "$(sql 'select count(*) from run')" -ge "$1" ]
}

@test "eight workers, fifty keys, failures and kills: each key in its order, one at a time" {
    local i producer all=$((keys * jobs))
    enqueue 1 $((jobs / 2))
    for _ in 1 2 3 4 5 6 7 8; do
        start_worker q --sql note --concurrency 2 --batch 10 --lease 2s
    done
    enqueue $((jobs / 2 + 1)) $jobs 3>&- &
    producer=$!
    for ((i = 1; i <= kills; i++)); do
        wait_until 120 done_at_least $((all * i / (kills + 2)))
        kill_worker $((1 + RANDOM % 7))
        start_worker q --sql note --concurrency 2 --batch 10 --lease 2s
        [ $i -ne 5 ] || sql "select millrace.set_queue('q', '{\"parts\": 32}')"
    done
    wait "$producer"
    wait_until 240 done_at_least $all
    wait_until 60 queue_is_done q
    stop_workers
    echo "# attempts $(sql 'select sum(attempt) from run') for $(sql 'select count(*) from run') jobs, set aside $(sql "select sum(length(outcome) - length(replace(outcome, 'w', ''))) from millrace.claim") times" >&3
    [ "$(sql 'select count(*) from run')" -eq $all ]
    [ "$(sql 'select count(*) from (select i - lag(i, 1, 0) over (partition by key order by ended) as step from run) s where step <> 1')" -eq 0 ]
    [ "$(sql 'select count(*) from (select began - lag(ended) over (partition by key order by ended) as pause from run) s where pause < interval '"'0'"'')" -eq 0 ]
    [ "$(sql 'select sum(attempt) > count(*) from run')" = t ]
    [ "$(sql 'select count(*) from millrace.turn where job_id > 0')" -eq 0 ]
    [ "$(sql "select count(*) from millrace.delayed")" -eq 0 ]
}
