#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# The limiter and the locks under eight clients, of which one is killed with SIGKILL again and again: never more is allowed than the
# limit says, a lock never has two holders, fencing numbers rise strictly. And what the toolbox reads beside a snapshot that is held.
# MR_TOOLBOX_SECONDS says for how long (5).

# shellcheck disable=SC2154  # kills is set by killing
load ../lib/server
load ../lib/killing

setup()
{
    fresh_db
    seconds=${MR_TOOLBOX_SECONDS:-5}
    clients=()
}

teardown()
{
    kill_all "${clients[@]}" ${holder:+"$holder"}
    drop_db
}

# client N: a script of many rounds, in a session of its own.
client()
{
    psql -XAtq -v ON_ERROR_STOP=1 -v me="$1" -f "$BATS_TEST_TMPDIR/rounds" >>"$BATS_TEST_TMPDIR/out" 2>&1 3>&- &
    clients[$1]=$!
}

# rounds N <SCRIPT: the script so many times.
rounds()
{
    local script i
    script=$(cat)
    for ((i = 0; i < $1; i++)); do
        printf '%s\n' "$script"
    done >"$BATS_TEST_TMPDIR/rounds"
}

# under_fire SQL: until the query says that enough was seen, and nobody is left.
under_fire()
{
    killing "$seconds" holds "$1"
    wait_until 20 alone
}

holds()
{
    [ "$(sql "$1")" = t ]
}

alone()
{
    [ "$(sql "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'")" -eq 0 ]
}

@test "rate limiter: eight clients, killed at random, are never allowed more than 50 in a second" {
    sql 'create table let (allowed boolean, key text, began timestamptz default now(), ended timestamptz default clock_timestamp())'
    rounds 20000 <<'SQL'
insert into let select r.allowed, 'one' from millrace.rate_limit('one', 50, '1 second') r;
insert into let select r.allowed, 'two' from millrace.rate_limit('two', 50, '1 second', 7) r;
SQL
    under_fire 'select true'
    show "$(sql "select string_agg(format('%s: %s of %s calls allowed, %s spent in %s s', key, n, calls, spent, took), '; ' order by key)
                   from (select l.key, count(*) filter (where l.allowed) as n, count(*) as calls from let l group by l.key) l
                   join (select s.key_id, sum(s.spent_n) as spent, round(extract(epoch from max(s.spent_at) - min(s.spent_at))::numeric, 1) as took from millrace.spent_hour s group by s.key_id) s
                     on s.key_id = millrace.cache_key(l.key)"), $kills killed"
    # what was allowed is what was spent, also by those that were killed
    [ "$(sql "select bool_and(l.n = s.n) from (select l.key, count(*) as n from let l where l.allowed group by l.key) l
                join (select s.key_id, count(*) as n from millrace.spent_hour s group by s.key_id) s on s.key_id = millrace.cache_key(l.key)")" = t ]
    # in any second
    [ "$(sql "select max(n) from (select sum(s.spent_n) over (partition by s.key_id order by s.spent_at range between '999999 microseconds' preceding and current row) as n from millrace.spent_hour s) w")" -eq 50 ]
    # and who was not allowed came when all of it was spent
    [ "$(sql "select count(*) from let l where not l.allowed and l.key = 'one'")" -gt 0 ]
    [ "$(sql "select count(*) from let l where not l.allowed and l.key = 'one'
                 and (select coalesce(sum(s.spent_n), 0) from millrace.spent_hour s
                       where s.key_id = millrace.cache_key('one') and s.spent_at > l.began - interval '1 second' and s.spent_at <= l.ended) < 50")" -eq 0 ]
}

@test "locks of sessions: eight contenders, killed at random, are never two inside" {
    sql 'create table took (who text, alone boolean)'
    # another lock of the same session says whether anybody else is inside: both go with the session
    rounds 5000 <<'SQL'
select millrace.lock('the lock');
begin;
insert into took select :'me', pg_try_advisory_xact_lock(4711);
select pg_sleep(0.003);
commit;
select millrace.unlock('the lock');
SQL
    under_fire 'select count(*) > 100 and count(distinct who) = 8 from took'
    show "$(sql 'select count(*) from took') holders, $kills killed"
    [ "$(sql 'select count(*) from took where not alone')" -eq 0 ]
    [ "$(sql "select millrace.try_lock('the lock')")" = t ]
}

@test "locks with a lease: eight contenders, killed at random, never two holders, fencing numbers rise strictly" {
    psql -XAtq -v ON_ERROR_STOP=1 <<'SQL'
create table took (fence bigint, who text, taken_at timestamptz, until timestamptz, given_at timestamptz);
create function take(p_who text) returns bigint language plpgsql as $$
declare
  v_fence bigint := millrace.lock_lease('the lock', p_who, '300 milliseconds');
begin
  insert into took select v_fence, p_who, clock_timestamp(), max(h.held_until) from millrace.lock_held h where h.fence = v_fence having v_fence is not null;
  return v_fence;
end $$;
create function give(p_who text, p_fence bigint) returns boolean language plpgsql as $$
begin
  if not millrace.unlock_lease('the lock', p_who) then
    return false;
  end if;
  update took set given_at = clock_timestamp() where fence = p_fence;
  return true;
end $$;
SQL
    rounds 20000 <<'SQL'
select coalesce(take(:'me' || ' ' || pg_backend_pid()), 0) as fence \gset
select :fence > 0 as held \gset
\if :held
select pg_sleep(0.02 * random());
select give(:'me' || ' ' || pg_backend_pid(), :fence);
\endif
SQL
    # somebody was gone when its lease was over
    under_fire 'select count(*) > 20 and bool_or(given_at is null and until < clock_timestamp()) from took'
    show "$(sql 'select format('\''%s holders, %s of them were gone when their lease was over'\'', count(*), count(*) - count(given_at)) from took'), $kills killed"
    [ "$(sql 'select count(*) from (select fence > lag(fence, 1, 0::bigint) over (order by taken_at) as rises from took) t where not rises')" -eq 0 ]
    [ "$(sql 'select count(*) from (select taken_at, lag(least(given_at, until)) over (order by fence) as free_at from took) t where taken_at < free_at')" -eq 0 ]
    [ "$(sql 'select count(distinct fence) = count(*) and count(*) > count(given_at) from took')" = t ]
}

# pages STATEMENT TIMES: what the last of so many calls reads, each in a transaction of its own.
pages()
{
    psql -XAtq -v ON_ERROR_STOP=1 <<SQL 2>&1 | sed -n 's/.*read \([0-9]*\) pages.*/\1/p'
create or replace procedure again(n int) language plpgsql as \$\$
declare
  v_plan json;
  v_least int;
begin
  for i in 1 .. n loop
    execute 'explain (analyze, buffers, format json) ' || \$q\$ $1 \$q\$ into v_plan;
    commit;
    if i > n - 5 then
      v_least := least(v_least, (v_plan -> 0 -> 'Plan' ->> 'Shared Hit Blocks')::int + (v_plan -> 0 -> 'Plan' ->> 'Shared Read Blocks')::int);
    end if;
  end loop;
  raise info 'read % pages', v_least;
end \$\$;
call again($2);
SQL
}

# held STATEMENT: one that writes for the same key again and again reads no more for it.
held()
{
    local before after
    hold_snapshot
    before=$(pages "$1" 100)
    after=$(pages "$1" 3000)
    show "$1: read $before pages after 100 calls, and $after after 3,000 more"
    # an index that grows has a level more
    [ "$after" -le $((before + 8)) ]
}

@test "beside a held snapshot: cache_set and cache_get of one key" { held "select millrace.cache_set('k', '1', '1 hour'), millrace.cache_get('k')"; }
@test "beside a held snapshot: rate_limit of one key" { held "select millrace.rate_limit('k', 1000000, '1 hour')"; }
@test "beside a held snapshot: lock_lease and its renewal" { held "select millrace.lock_lease('k', 'me', '1 hour')"; }

@test "beside a held snapshot: what upkeep sweeps comes back to the disk" {
    hold_snapshot
    sql "select count(millrace.cache_set('k' || g % 100, to_jsonb(g), '1 hour')) from generate_series(1, 30000) g"
    local before after
    before=$(sql "select (millrace.cache_stats()).bytes")
    sql "select setval('millrace.cache_clock', 0), setval('millrace.clean_clock', 0); select count(*) from millrace.maintain()"
    sql "select count(*) from millrace.maintain()"
    sql "select setval('millrace.clean_clock', 0); select count(*) from millrace.maintain()"
    after=$(sql "select (millrace.cache_stats()).bytes")
    show "$before bytes before, $after after"
    [ "$after" -lt $((before / 20)) ]
    [ "$(sql "select count(*) from millrace.cache_get_many(array(select 'k' || g from generate_series(0, 99) g)) m where m.value = to_jsonb(case when m.key = 'k0' then 30000 else 29900 + substr(m.key, 2)::int end)")" = 100 ]
}
