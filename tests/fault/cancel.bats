#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# Calls that end in the middle: a timeout, a cancel request, a full disk. What is left behind is repaired by the next one.

load ../lib/server

teardown()
{
    if [ -n "${MR_SERVER:-}" ]; then
        remove_private_server
    else
        drop_db
    fi
}

# Delivers everything there is, time running from $1 s on, and notes each id. Claim and completion are one transaction.
drain()
{
    psql -X -q -A -t -v ON_ERROR_STOP=1 <<SQL
create table if not exists seen (id bigint, attempt int);
do \$\$
declare
  v_at numeric := $1;
  v_lease text;
begin
  for i in 1 .. 400 loop
    perform millrace.maintain_at(at(v_at));
    commit;
    loop
      with c as (select * from millrace.claim_at(at(v_at), 'q', 'drain', 500, '30 seconds', true)),
           s as (insert into seen select c.id, c.attempt from c)
      select min(c.lease) into v_lease from c;
      exit when v_lease is null;
      perform millrace.complete_at(at(v_at), v_lease, null, null);
      commit;
    end loop;
    commit;
    v_at := v_at + 1;
    exit when i > 100 and (select available + running + scheduled + retrying = 0 from millrace.stats_at(at(v_at), 'q'));
  end loop;
end \$\$;
SQL
}

make_clock()
{
    sql "create function at(s numeric) returns timestamptz language sql as
           \$\$ select '2030-01-01 00:00:00+00'::timestamptz + make_interval(secs => s) \$\$"
}

@test "maintain and claim cut off at random points: the next one repairs, each job is delivered once" {
    local round cut=0 t
    fresh_db
    make_clock
    sql "select millrace.set_queue('q', '{\"retention\": \"14 seconds\", \"lease\": \"2 seconds\", \"poison_limit\": 1000, \"max_attempts\": 1000}')"
    for ((round = 1; round <= 80; round++)); do
        t=$((round * 3))
        # Work for every duty: jobs to count, to promote, a lease to rescue, a segment to close and one to truncate.
        sql "select count(*) from millrace.enqueue_many_at(at($t), 'k', array_fill('{}'::jsonb, array[200]), 'q', 50, null)" >/dev/null
        sql "select count(*) from millrace.enqueue_many_at(at($t), 'k', array_fill('{}'::jsonb, array[100]), 'q', 50, at($t + 1))" >/dev/null
        sql "select count(*) from millrace.claim_at(at($t), 'q', 'lost', 150, null, true)" >/dev/null
        # 1 to 25 ms: somewhere between the first statement and the last.
        PGOPTIONS="-c statement_timeout=$((1 + RANDOM % 25)) -c client_min_messages=error" psql -X -q -A -t >/dev/null 2>"$MR_SCRATCH/err" <<SQL ||
\set ON_ERROR_STOP 1
select count(*) from millrace.$([ $((round % 3)) -eq 0 ] && echo "claim_at(at($t + 3), 'q', 'cut', 300, null, true)" || echo "maintain_at(at($t + 3))");
SQL
            cut=$((cut + 1))
    done
    [ $cut -gt 10 ] || { echo "only $cut calls were cut off"; false; }
    drain 300
    [ "$(sql 'select count(*) from seen')" -eq $((80 * 300)) ]
    [ "$(sql 'select count(distinct id) from seen')" -eq $((80 * 300)) ]
    [ "$(sql "select available + running + scheduled + retrying + dead from millrace.stats('q')")" -eq 0 ]
    # Segments go on being closed and truncated. The drain's hundred seconds are over in a few, and all that time an autovacuum
    # worker may be at the oldest leaf: then the next round gets it.
    for ((round = 800; round < 1100; round++)); do
        [ "$(sql 'select max(seg) from millrace.segment where truncated')" -lt 1 ] || break
        sql "select count(*) from millrace.maintain_at(at($round))" >/dev/null
        sleep 0.1
    done
    [ "$(sql 'select max(seg) from millrace.segment where truncated')" -ge 1 ]
}

@test "a disk that is full: enqueue fails with the server's error, nothing is lost, afterwards it works again" {
    local kept
    # A limit on the size of files stands for the disk; a segment of the server's own log is 16 MB.
    (ulimit -f 24576) 2>/dev/null || skip 'the size of files is limited already: run it where ulimit -f says unlimited'
    ulimit -S -f 24576
    private_server full -o shared_buffers=32MB
    ulimit -S -f unlimited
    "$MR_BIN" migrate >/dev/null
    make_clock
    run psql -X -q -A -t -v ON_ERROR_STOP=1 <<'SQL'
select setseed(0.5);
create table noise as select decode(string_agg(md5(random()::text), ''), 'hex') as b from generate_series(1, 6000);
create procedure fill() language plpgsql as $$
begin
  for i in 1 .. 2000 loop
    perform millrace.enqueue('k', queue => 'q', state => b) from noise;
    commit;
  end loop;
end $$;
call fill();
SQL
    [ "$status" -ne 0 ]
    [[ $output == *'could not extend file'* ]]
    kept=$(sql "select millrace.depth('q')")
    [ "$kept" -gt 50 ]
    # Small jobs and upkeep are not concerned; a worker goes on.
    [ "$(sql "select count(*) from millrace.maintain()")" -gt 0 ]
    [ "$(sql "select count(*) from millrace.claim('q', 'w', 10)")" -eq 10 ]
    # Room again.
    "$MR_ROOT/tools/pgserver" restart "$MR_SERVER"
    [ "$(sql "select count(millrace.enqueue('k', queue => 'q', state => b)) from noise")" -eq 1 ]
    [ "$(sql "select available + running from millrace.stats('q')")" -eq $((kept + 1)) ]
    # Each of them once, and whole. A claim of large jobs ends at 16 MB, so there are several.
    whole=0
    while n=$(sql "select count(*) from millrace.claim('q', 'w', 10000) where length(state) = 96000") && [ "$n" -gt 0 ]; do
        whole=$((whole + n))
    done
    [ "$whole" -eq $((kept - 10 + 1)) ]
}
