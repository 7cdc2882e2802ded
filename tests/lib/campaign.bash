# SPDX-License-Identifier: PostgreSQL
# shellcheck shell=bash
# shellcheck disable=SC2154  # redis_dir is set by lib/redis
#
# Everything that jobs can go through at once, and everything of it killed in turn: PostgreSQL, a relay, workers that take jobs from Redis, payloads of delayed jobs,
# retries and dead letters in S3. After lib/server, lib/daemon, lib/redis and lib/s3:
#
#   campaign_begin           servers, daemons, and a producer that puts jobs in until campaign_stop_putting
#   campaign_kill SECONDS    kills one after the other for so long; how often is in $kills, by what in ${killed[@]}
#   campaign_stop_putting
#   campaign_end             for teardown()
#
# Two queues, each delivered by Redis. `once` has a function in the database for a handler: its effects, in the table effect, are committed with the outcome. `again` has a program,
# which writes down each run: what ran twice is there twice. The table put has what was enqueued, written in the transaction that did, with the fate of the job:
#
#   plain      runs at once
#   delayed    runs later than offload_delay: its payload goes to S3 and comes back
#   retried    fails at its first attempt, and is tried again later than offload_delay
#   dead       always fails: a dead letter, whose payload goes to S3; until campaign_mend

IN_FLIGHT=40
payload_sums=60 # a part has so many SHA-256 sums, of its own name and number

campaign_begin()
{
    cd "$BATS_TEST_TMPDIR" || return
    private_server campaign
    "$MR_BIN" migrate >/dev/null
    start_s3
    s3_bucket jobs
    redis_new
    campaign_schema
    campaign_program
    start_carrier
    start_relays
    start_workers
    campaign_put 3>&- &
    producer=$!
}

# What is killed here is not the jobs' fault: no poison.
campaign_schema()
{
    sql "select millrace.set_queue(q, '{\"transport\": \"redis\", \"poison_limit\": 1000, \"offload_delay\": \"10 seconds\", \"offload_dead\": true}')
           from unnest(array['once', 'again']) q" >/dev/null
    psql -X -q -v ON_ERROR_STOP=1 <<SQL
create table put (n bigint primary key, queue text not null, fate text not null);
create table effect (n bigint not null, whole boolean not null);
create table mended ();
create sequence put_no;
create function part(p_name text, p_n bigint) returns bytea language sql immutable as \$\$
  select string_agg(sha256(convert_to(p_name || p_n || '.' || i, 'UTF8')), '' order by i) from generate_series(1, $payload_sums) i \$\$;
create function put(p_count int) returns bigint language sql as \$\$
  with new as (select nextval('put_no') as n from generate_series(1, p_count)),
  told as (insert into put
           select n, (array['once', 'again'])[n / 40 % 2 + 1], coalesce((array['delayed', 'retried', 'dead'])[n % 40 + 1], 'plain')
             from new
        returning n, queue, fate)
  select count(millrace.enqueue(fate, jsonb_build_object('n', n), queue, max_attempts => case fate when 'dead' then 1 end,
                                delay => case fate when 'delayed' then make_interval(secs => 11 + n % 7) end,
                                state => case when fate <> 'plain' then part('s', n) end, blob => case when fate <> 'plain' then part('b', n) end))
    from told \$\$;
create function take(job jsonb) returns jsonb language plpgsql as \$\$
declare
  v_n bigint := job -> 'args' ->> 'n';
begin
  if job ->> 'kind' = 'dead' and not exists (select 1 from mended) then
    raise 'it always fails';
  elsif job ->> 'kind' = 'retried' and (job ->> 'attempt')::int = 1 then
    return '{"outcome": "failed", "error": "not now", "retry_in": 12}';
  end if;
  insert into effect values (v_n, job ->> 'kind' = 'plain'
    or (decode(job ->> 'state', 'base64') = part('s', v_n) and decode(job ->> 'blob', 'base64') = part('b', v_n)));
  return null;
end \$\$;
SQL
}

# The same as take, with a line a run: the number, what became of it, and whether the payload was whole.
campaign_program()
{
    cat >take.py <<SCRIPT
import base64, hashlib, json, os, sys

def part(name, n):
    return b"".join(hashlib.sha256(f"{name}{n}.{i}".encode()).digest() for i in range(1, $payload_sums + 1))

for line in sys.stdin:
    job = json.loads(line)
    n, kind, answer = job["args"]["n"], job["kind"], {}
    whole = kind == "plain" or all(base64.b64decode(job.get(key, "")) == part(key[0], n) for key in ("state", "blob"))
    if kind == "dead" and not os.path.exists("mended"):
        answer = {"error": "it always fails"}
    elif kind == "retried" and job["attempt"] == 1:
        answer = {"error": "not now", "retry_in": 12}
    with open("ran", "a") as ran:
        ran.write("%d %s %s\n" % (n, "failed" if answer else "done", "whole" if whole else "BROKEN"))
    print(json.dumps(dict(answer, id=job["id"])), flush=True)
SCRIPT
    : >ran
}

start_carrier()
{
    printf 'blobs = "%s"\nblobs_sweep = "10s"\nblobs_orphans = "20s"\n' "$(s3_address jobs/campaign)" >carrier.conf
    daemon carrier serve -c carrier.conf --roles maintain
}

start_relays()
{
    local queue
    for queue in once again; do
        printf 'relay %s { queue = "%s" redis = "%s" in_flight = %d batch = 20 lease = "6s" reclaim = "4s" }\n' "$queue" "$queue" "$(redis_address)" "$IN_FLIGHT"
    done >relay.conf
    daemon relay serve -c relay.conf --roles relay
}

start_workers()
{
    local common
    common="redis = \"$(redis_address)\" concurrency = 2 batch = 10 breaker { failures = 0 }"
    printf 'worker once { queue = "once" sql = "take" %s }\nworker again { queue = "again" exec = "python3 take.py" %s }\n' "$common" "$common" >worker.conf
    daemon worker serve -c worker.conf --roles work
}

# What the database did not take while it was down was not put.
campaign_put()
{
    until [ -e putting_is_over ]; do
        sql 'select put(20)' >/dev/null 2>&1 || true
        sleep 0.3 # some 50 jobs a second
    done
}

campaign_stop_putting()
{
    touch putting_is_over
    wait "$producer" || true
}

kill_daemon()
{
    signal "$1" KILL
    ended "$1" 2>/dev/null || true
}

server_again()
{
    "$MR_ROOT/tools/pgserver" crash "$MR_SERVER" && "$MR_ROOT/tools/pgserver" start "$MR_SERVER"
}

campaign_hit()
{
    case $1 in
    relay) kill_daemon relay && start_relays ;;
    workers) kill_daemon worker && start_workers ;;
    redis) redis_kill && redis_start ;;
    emptied) redis_kill && rm -rf "$redis_dir/appendonlydir" "$redis_dir/appendonly.aof" && redis_start ;;
    s3) kill_s3 && sleep 1 && start_s3_again ;; # down for a while
    postgresql) server_again ;;
    carrier) kill_daemon carrier && start_carrier ;;
    esac
}

# Each at least once, however short it is.
campaign_kill()
{
    local until=$((SECONDS + $1)) what
    declare -gA killed=()
    kills=0
    while [ "$SECONDS" -lt "$until" ]; do
        for what in relay workers redis s3 postgresql carrier emptied; do
            sleep "$((1 + RANDOM % 3)).$((RANDOM % 10))" # any moment will do
            campaign_hit "$what" || { echo "$what does not come back" >&2; return 1; }
            killed[$what]=$((${killed[$what]:-0} + 1))
            kills=$((kills + 1))
        done
    done
}

campaign_mend()
{
    touch mended
    sql 'insert into mended default values'
}

campaign_end()
{
    touch putting_is_over
    [ -z "${producer:-}" ] || wait "$producer" || true
    end_daemons
    redis_stop
    stop_s3
    remove_private_server
}

# ---- what came of it ----

# What goes on: jobs by their status, runs, objects.
campaign_figures()
{
    sql "select queue, available, running, scheduled, retrying, dead from millrace.stats() order by queue"
    sql "select count(*) filter (where away_due is not null) from millrace.delayed"
    sql "select count(*) filter (where millrace.is_away(payload_state)) from millrace.dead"
    wc -l <ran
    s3_count jobs
}

# Until a command succeeds. The store is as slow as the machine is busy: gives up when nothing has changed for five minutes.
campaign_settles()
{
    local now before='' since=$SECONDS
    until "$@" >/dev/null 2>&1; do
        now=$(campaign_figures)
        [ "$now" = "$before" ] || since=$SECONDS
        before=$now
        if [ $((SECONDS - since)) -ge 300 ]; then
            printf 'gave up waiting for: %s\n%s\n' "$*" "$now" >&2
            return 1
        fi
        sleep 1
    done
}

campaign_is_done()
{
    queue_is_done once && queue_is_done again
}

put_are()
{
    sql "select count(*) from put where $1"
}

jobs_of()
{
    sql "select count(*) from millrace.jobs where queue in ('once', 'again') and status like '$1'"
}

# Names of objects: those in the bucket, and those that jobs name.
objects_there()
{
    s3_native GET '/jobs?limit=10000' | sed 's,^campaign/,,' | sort
}

objects_named()
{
    sql 'select object_key from millrace.blob_object' | sort
}

no_orphan()
{
    objects_there >there && objects_named >named && [ -z "$(comm -23 there named)" ]
}

dead_are_away()
{
    [ "$(sql 'select count(*) from millrace.dead where not millrace.is_away(payload_state) or not millrace.is_away(payload_blob)')" -eq 0 ]
}

no_object()
{
    [ "$(s3_count jobs)" -eq 0 ]
}

# The whole of it, for SECONDS.
campaign()
{
    campaign_begin
    campaign_kill "$1"
    campaign_stop_putting
    campaign_settles campaign_is_done
    campaign_counts
    campaign_objects
    campaign_replay
}

# Enqueued is completed and dead, by Millrace's own count, by its log, and by what the handlers left behind.
campaign_counts()
{
    local all living runs
    all=$(put_are true) living=$(put_are "fate <> 'dead'")
    [ "$(jobs_of '%')" -eq "$all" ]
    [ "$(jobs_of completed)" -eq "$living" ]
    [ "$(jobs_of dead)" -eq $((all - living)) ]
    [ "$(sql "select sum(completed_1h) || ' ' || sum(dead) from millrace.stats()")" = "$living $((all - living))" ]
    [ "$(sql "select count(*) from millrace.dead_letters d left join put p on p.n = (d.args ->> 'n')::bigint where p.fate is distinct from 'dead'")" -eq 0 ]

    # each effect of the function once, of each job that is not to die
    [ "$(sql "select count(*) || ' ' || count(distinct n) || ' ' || bool_and(whole) from effect")" = \
        "$(sql "select count(*) || ' ' || count(*) || ' true' from put where queue = 'once' and fate <> 'dead'")" ]
    # each job of the program, and its payload whole at each run
    [ "$(awk '$2 == "done" { print $1 }' ran | sort -un)" = "$(sql "select n from put where queue = 'again' and fate <> 'dead' order by n")" ]
    [ "$(awk '$2 == "failed" { print $1 }' ran | sort -un | wc -l)" -ge "$(put_are "queue = 'again' and fate = 'dead'")" ]
    run ! grep BROKEN ran
    runs=$(wc -l <ran)
    twice=$((runs - $(sort -u ran | wc -l)))
    show "$all jobs enqueued = $living completed + $((all - living)) dead; $kills kills: $(for what in "${!killed[@]}"; do printf '%s %d, ' "$what" "${killed[$what]}"; done)at most $IN_FLIGHT in flight"
    show "the function: $(sql 'select count(*) from effect') effects, none twice; the program: $runs runs, $twice of them again"
    [ "$twice" -le $((kills * IN_FLIGHT)) ]
}

# In the store is what dead letters name, no more and no less.
campaign_objects()
{
    campaign_settles dead_are_away
    campaign_settles no_orphan
    [ -z "$(comm -13 there named)" ]
    [ "$(wc -l <there)" -eq $((2 * $(put_are "fate = 'dead'"))) ]
    removed=$(sql "select millrace.metrics() -> 'removed_total' ->> 'objects'")
    show "objects: $(wc -l <there) of dead letters, $removed removed before, 0 orphans after the sweep"
    [ "$removed" -gt 0 ]
}

# Dead letters come back whole, some of each queue; the others are purged. Then nothing is left in the store.
campaign_replay()
{
    local replayed purged before
    before=$(sql 'select count(*) from effect')
    campaign_mend
    replayed=$(sql "select sum(millrace.replay_all(q, max_jobs => 20)) from unnest(array['once', 'again']) q")
    campaign_settles campaign_is_done
    purged=$(sql "select sum(millrace.purge_dead(q)) from unnest(array['once', 'again']) q")
    [ $((replayed + purged)) -eq "$(put_are "fate = 'dead'")" ]
    [ "$(sql 'select count(*) from millrace.dead_letters')" -eq 0 ]
    [ $(($(sql 'select count(*) from effect') - before + $(awk '$2 == "done" { print $1 }' ran | sort -un | wc -l))) -eq \
        $((replayed + $(put_are "queue = 'again' and fate <> 'dead'"))) ]
    [ "$(sql 'select count(*) = count(distinct n) and bool_and(whole) from effect')" = t ]
    run ! grep BROKEN ran
    campaign_settles no_object
    show "$replayed dead letters replayed, each whole, $purged purged; 0 objects are left"
}
