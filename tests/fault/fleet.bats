#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# Whose fault is a lost lease? In a stall of the whole fleet nobody's; in a healthy fleet the job's, after some tries.
# Time is given to the functions, nobody waits for it.

load ../lib/server

setup()
{
    fresh_db
    psql -X -q -v ON_ERROR_STOP=1 <<'SQL'
create table held (lease text, id bigint);
create function at(s numeric) returns timestamptz language sql as
  $$ select '2030-01-01 00:00:00+00'::timestamptz + make_interval(secs => s) $$;
-- Claims with workers of five jobs each until nothing is left; they never come back. Returns how many jobs they hold.
create function hang(s numeric) returns bigint language plpgsql as $$
declare
  v_n bigint := 0;
  v_k bigint;
begin
  loop
    select count(*) into v_k from millrace.claim_at(at(s), 'q', 'hangs', 5, '30 seconds', true);
    v_n := v_n + v_k;
    exit when v_k = 0;
  end loop;
  return v_n;
end $$;
-- Claims one job after the other and completes each, but walks away from the job p_bad. Returns how many it completed.
create function work(s numeric, p_bad bigint) returns bigint language plpgsql as $$
declare
  v_job millrace.claimed_job;
  v_n   bigint := 0;
begin
  loop
    select * into v_job from millrace.claim_at(at(s), 'q', 'works', 1, '30 seconds', true);
    exit when v_job.id is null;
    if v_job.id is distinct from p_bad then
      perform millrace.complete_at(at(s + 0.1), v_job.lease, null, null);
      v_n := v_n + 1;
    end if;
  end loop;
  return v_n;
end $$;
select millrace.set_queue('q', '{}');
SQL
}
teardown() { drop_db; }

# A maintainer beside the stalled or crashing workers, each second from $1 to $2. Each call is a transaction.
upkeep()
{
    seq "$1" "${3:-1}" "$2" | sed 's/.*/select count(*) from millrace.maintain_at(at(&));/' | psql -X -q -A -t -v ON_ERROR_STOP=1 >/dev/null
}

dead()
{
    sql "select count(*) from millrace.dead"
}

@test "all workers stop for three leases, and those who come after them too: no dead letters" {
    local lease
    sql "select count(*) from millrace.enqueue_many_at(at(0), 'k', array_fill('{}'::jsonb, array[60]), 'q', 50, null)"
    [ "$(sql 'select hang(0)')" -eq 60 ]
    for lease in 1 2 3 4 5 6; do
        upkeep $((lease * 100 - 65)) $((lease * 100 - 1)) 8
        [ "$(dead)" -eq 0 ]
        [ "$(sql "select hang($((lease * 100)))")" -eq 60 ]
    done
    upkeep 640 800 8
    [ "$(sql "select work(800, null)")" -eq 60 ]
    [ "$(dead)" -eq 0 ]
}

@test "a stall in the middle of good work: no dead letters either" {
    local lease
    sql "select count(*) from millrace.enqueue_many_at(at(0), 'k', array_fill('{}'::jsonb, array[40]), 'q', 50, null)"
    # These hold their leases while others still finish ...
    sql "select count(*) from millrace.claim_at(at(0), 'q', 'hangs', 10, '30 seconds', true)"
    [ "$(sql "select work(1, null)")" -eq 30 ]
    sql "select count(*) from millrace.enqueue_many_at(at(2), 'k', array_fill('{}'::jsonb, array[50]), 'q', 50, null)"
    # ... and from here on nobody does.
    sql "select hang(2)"
    for lease in 1 2 3 4 5; do
        upkeep $((lease * 100 - 65)) $((lease * 100 - 1)) 8
        sql "select hang($((lease * 100)))"
    done
    [ "$(dead)" -eq 0 ]
    upkeep 540 700 8
    [ "$(sql "select work(700, null)")" -eq 60 ]
    [ "$(dead)" -eq 0 ]
}

@test "one job that crashes its worker again and again in a healthy fleet: exactly one dead letter, of cause poison" {
    local bad round
    bad=$(sql "select millrace.enqueue_at(at(0), 'bad', '{}', 'q', 50, null, null, null, null, null, null, null, null, null, null, null, null, null)")
    for round in $(seq 0 12); do
        sql "select count(*) from millrace.enqueue_many_at(at($round * 60), 'good', array_fill('{}'::jsonb, array[5]), 'q', 50, null)"
        # The bad one is taken first or not at all, the good ones are finished while it is held.
        sql "select work($round * 60, $bad)"
        sql "select count(*) from millrace.enqueue_many_at(at($round * 60 + 1), 'good', array_fill('{}'::jsonb, array[5]), 'q', 50, null)"
        sql "select work($round * 60 + 2, $bad)"
        upkeep $((round * 60 + 31)) $((round * 60 + 59)) 4
    done
    [ "$(dead)" -eq 1 ]
    [ "$(sql "select job_id, cause, lost from millrace.dead")" = "$bad|poison|4" ]
    [ "$(sql "select count(*) from millrace.jobs where kind = 'good' and status <> 'completed'")" -eq 0 ]
    # It stays dead: nothing of it is left anywhere else.
    [ "$(sql "select available + running + scheduled + retrying from millrace.stats('q')")" -eq 0 ]
}
