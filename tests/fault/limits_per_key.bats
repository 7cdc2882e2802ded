#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# Limits inside a queue with sixteen claimers, of which one is killed with SIGKILL again and again: at
# no moment run more jobs of a key than the limit says, in no second are more of a tenant started,
# what the killed ones held comes back with their leases, and every job completes.

load ../lib/server
load ../lib/workers
python= # set by need_psycopg2

setup()
{
    fresh_db
}

teardown()
{
    stop_workers
    drop_db
}

# limited SETTINGS OPTION JOBS: a hundred keys or tenants, of which the first few have most of the jobs.
limited()
{
    sql "select millrace.set_queue('limited', '$1')"
    sql "select count(*) from millrace.enqueue_jobs((select jsonb_agg(jsonb_build_object('kind', 'k', 'queue', 'limited', '$2', s.name,
            'args', jsonb_build_object('of', s.name))) from (select 'of' || floor(100 * power(random(), 2)) as name from generate_series(1, $3)) s))"
}

@test "concurrency_per_key: sixteen claimers, killed at random, never run more than two jobs of a key" {
    need_psycopg2
    limited '{"concurrency_per_key": 2, "max_attempts": 1000, "poison_limit": 1000}' ordering_key 3000
    run "$python" "$BATS_TEST_DIRNAME/limits.py" keys 2 16 12 3s
    show "$output"
    [ "$status" -eq 0 ]
}

@test "rate_per_tenant: sixteen claimers, killed at random, never start more than ten jobs of a tenant in a second" {
    need_psycopg2
    limited '{"rate_per_tenant": "10/s", "max_attempts": 1000, "poison_limit": 1000}' tenant 1000
    run "$python" "$BATS_TEST_DIRNAME/limits.py" tenants 10 16 10 2s
    show "$output"
    [ "$status" -eq 0 ]
}

# A worker knows that it may ask again at once where it has let jobs in: with a poll interval of 5 s these would take 1000 s.
@test "a worker drains one key at its limit, not at the poll interval" {
    local begun
    export QUEUE_POLL_INTERVAL_MS=5000
    sql "select millrace.set_queue('limited', '{\"concurrency_per_key\": 2}')"
    sql "select count(millrace.enqueue('k', queue => 'limited', ordering_key => 'a')) from generate_series(1, 400)"
    begun=${EPOCHREALTIME/./}
    "$MR_BIN" work limited --exec "python3 '$BATS_TEST_DIRNAME/../lib/note_runs.py' /dev/null 0" --concurrency 4 --until-empty --json
    queue_is_done limited
    show "400 jobs of one key, two at once: $(((${EPOCHREALTIME/./} - begun) / 1000)) ms"
}

# What claims of a key in one session read, while its jobs come out of a long line: twenty rounds of claim and complete, the buffers of the last.
claims_read()
{
    psql -XAtq <<'SQL'
create or replace procedure rounds(n int) language plpgsql as $$
declare
  v_plan json;
  v_lease text;
  v_read int;
  v_all int[] := '{}';
begin
  for i in 1 .. n loop
    execute 'explain (analyze, buffers, format json) insert into taken select lease from millrace.claim(''limited'', max_jobs => 2) limit 1' into v_plan;
    v_read := (v_plan -> 0 -> 'Plan' ->> 'Shared Hit Blocks')::int + (v_plan -> 0 -> 'Plan' ->> 'Shared Read Blocks')::int;
    v_all := v_all || v_read;
    commit;
    select min(t.lease) into v_lease from taken t;
    truncate taken;
    if v_lease is not null then
      perform millrace.complete(v_lease);
    end if;
    commit;
  end loop;
  -- The middle one of the last: a slice of upkeep falls into one of them now and then.
  raise info 'read % buffers', (select percentile_disc(0.5) within group (order by r) from unnest(v_all[n - 6:]) r);
end $$;
SQL
    psql -XAtq -c "call rounds($1)" 2>&1 | sed -n 's/.*read \([0-9]*\) buffers.*/\1/p'
}

@test "what a claim reads does not grow while a line is worked off beside a held snapshot" {
    local before after holder
    sql "select millrace.set_queue('limited', '{\"concurrency_per_key\": 2}')"
    sql "select count(millrace.enqueue('k', queue => 'limited', ordering_key => 'a')) from generate_series(1, 5000)"
    sql "create unlogged table taken (lease text) with (autovacuum_enabled = off)"
    sql "select count(*) from millrace.claim('limited', max_jobs => 100, lease_for => '1 ms')"
    sql "select count(*) from millrace.claim('limited', max_jobs => 100, lease_for => '1 ms')"
    hold_snapshot
    before=$(claims_read 20)
    claims_read 1000 >/dev/null
    after=$(claims_read 20)
    kill "$holder"
    wait "$holder" || true
    show "a claim read $before buffers with a line of 5000, $after when a thousand more claims had let jobs in"
    [ "$(sql "select count(*) > 500 from millrace.jobs where queue = 'limited' and status = 'completed'")" = t ]
    [ "$after" -le $((before + before / 4 + 20)) ]
}
