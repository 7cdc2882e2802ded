#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# Invariant 6 with each feature on: beside a snapshot that is held for long, with no vacuum, a job's life reads as many pages after 1,000 others
# as at the start. Each job has the same unique key, ordering key, tenant or batch as the one before, the worst that can be: what those have left behind is in its
# way.

load ../lib/server

setup()
{
    fresh_db
    psql -XAtq -v ON_ERROR_STOP=1 <<'SQL'
create unlogged table taken (lease text) with (autovacuum_enabled = off);
create procedure life(p_sql text, inout p_pages int) language plpgsql as $$
declare
  v_plan json;
begin
  execute 'explain (analyze, buffers, format json) ' || p_sql into v_plan;
  p_pages := p_pages + (v_plan -> 0 -> 'Plan' ->> 'Shared Hit Blocks')::int + (v_plan -> 0 -> 'Plan' ->> 'Shared Read Blocks')::int;
end $$;
-- The least of the last rounds: a slice of upkeep falls into some.
create procedure rounds(p_queue text, p_job jsonb, n int) language plpgsql as $$
declare
  v_pages int;
  v_least int;
begin
  for i in 1 .. n loop
    v_pages := 0;
    call life(format('select * from millrace.enqueue_jobs(%L)', jsonb_build_array(p_job || jsonb_build_object('kind', 'k', 'queue', p_queue))), v_pages);
    commit;
    call life(format('insert into taken select lease from millrace.claim(%L, max_jobs => 10) limit 1', p_queue), v_pages);
    commit;
    call life('select millrace.complete(t.lease) from taken t', v_pages);
    truncate taken;
    commit;
    if i > n - 12 then
      v_least := least(v_least, v_pages);
    end if;
  end loop;
  raise info 'read % pages', v_least;
end $$;
SQL
}

teardown()
{
    [ -z "${holder:-}" ] || kill "$holder" 2>/dev/null || true
    drop_db
}

# rounds JOB N...: in one session, because a session has a part of its own to begin with.
rounds()
{
    local job=$1 n calls=()
    shift
    for n in "$@"; do
        calls+=(-c "call rounds('q', '$job', $n)")
    done
    psql -XAtq "${calls[@]}" 2>&1 | sed -n 's/.*read \([0-9]*\) pages.*/\1/p'
}

# held SETTINGS JOB [MORE]: a quarter and 20 pages more are let pass, and so many beyond that. A page more for each job would be a thousand.
held()
{
    local read before after
    sql "select millrace.set_queue('q', '$1')" >/dev/null
    hold_snapshot
    mapfile -t read < <(rounds "$2" 20 21 1000 22)
    before=${read[1]} after=${read[3]}
    show "$1 $2: a job's life read $before pages, and $after after 1,000 others"
    [ "$(sql "select completed_1h >= 1000 from millrace.maintain(), millrace.stats('q') limit 1")" = t ]
    [ "$after" -le $((before + before / 4 + 20 + ${3:-0})) ]
}

@test "a plain queue" { held '{}' '{}'; }
@test "unique keys" { held '{}' '{"unique_key": "a"}'; }
@test "a batch" { held '{}' "{\"batch\": $(sql 'select millrace.batch_begin()')}"; }
# A claim may begin anywhere and looks at 1 to 32 lanes, of which each costs eleven pages, snapshot or not.
@test "an ordered queue" { held '{"ordered": true}' '{"ordering_key": "a"}' $((31 * 11)); }
@test "a fair queue" { held '{"fair": true}' '{"tenant": "a"}'; }
@test "a limit of jobs at once" { held '{"concurrency": 5}' '{}'; }
@test "a rate" { held '{"rate": "1000000/s"}' '{}'; }
@test "a limit for each key" { held '{"concurrency_per_key": 5}' '{"ordering_key": "a"}'; }
@test "a rate for each tenant" { held '{"rate_per_tenant": "1000000/s"}' '{"tenant": "a"}'; }
@test "a limit of depth" { held '{"depth_limit": 100000}' '{}'; }
