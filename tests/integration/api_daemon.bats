#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# The HTTP part as a part of the daemon: metrics, readiness, reload, TLS, single jobs together.

# shellcheck disable=SC2034,SC2154 # variables go to and come from lib/api

bats_require_minimum_version 1.5.0
load ../lib/server
load ../lib/daemon
load ../lib/api

setup()
{
    fresh_db
    cd "$BATS_TEST_TMPDIR" || return
}

teardown()
{
    end_daemons
    drop_db
}

metric_is()
{
    api GET /metrics
    grep -qF -- "$1" <<<"$body"
}

@test "metrics: what workers did, aliases, and a form that Prometheus takes" {
    printf '#!/bin/sh\nread -r job\ncase $job in *bad*) exit 64 ;; esac\n' >job.sh
    chmod +x job.sh
    api_more='worker w { queue = "terms"  run = "./job.sh" }'
    api_up 'alias term_queue_pending_count { metric = "millrace_queue_depth" queue = "terms" }' \
        'alias term_queue_retry_count { metric = "millrace_retrying" queue = "nowhere" }' \
        'alias term_queue_oldest_pending_age_seconds { metric = "millrace_queue_oldest_seconds" queue = "terms" }'
    post /api/v1/jobs '[{"kind": "good", "queue": "terms"}, {"kind": "good", "queue": "terms"}, {"kind": "bad", "queue": "terms"}]'
    says 201
    post /api/v1/jobs '{"kind": "odd \" \\ kind", "queue": "q\nx"}'
    says 201
    post /api/v1/jobs '{"kind": "späte", "queue": "terms"}'
    says 201
    wait_until 20 metric_is 'millrace_jobs_total{queue="terms",kind="good",outcome="completed"} 2'
    wait_until 20 metric_is 'millrace_jobs_total{queue="terms",kind="bad",outcome="failed"} 1'
    metric_is 'millrace_jobs_total{queue="terms",kind="good",outcome="enqueued"} 2'
    metric_is 'millrace_job_run_seconds_count{queue="terms"} 4'
    metric_is 'millrace_job_wait_seconds_bucket{queue="terms",le="+Inf"} 4'
    metric_is 'millrace_breaker_open{handler="w"} 0'
    metric_is 'millrace_queue_depth{queue="q\nx"} 1'
    grep -qE '^term_queue_pending_count 0$' <<<"$body"
    grep -qE '^term_queue_retry_count 0$' <<<"$body"
    grep -qE '^term_queue_oldest_pending_age_seconds [0-9]' <<<"$body"
    if command -v promtool >/dev/null; then
        # what names of one's own are like is nobody else's business
        grep -v term_queue <<<"$body" | promtool check metrics
    fi
}

@test "metrics: every outcome of jobs that workers ran" {
    cat >job.sh <<'END'
#!/bin/sh
read -r job
case $job in
*final*) exit 64 ;;
*again*) exit 1 ;;
*slow*) exec sleep 60 ;;
esac
END
    chmod +x job.sh
    sql "select millrace.set_retry('again', 2, '10 ms', 1, '10 ms', 0)" >/dev/null
    api_more='worker w { queue = "q"  run = "./job.sh"  lease = "2s"  concurrency = 4  breaker { failures = 0 } }'
    api_up
    post /api/v1/jobs '[{"kind": "good", "queue": "q"}, {"kind": "final", "queue": "q"}, {"kind": "again", "queue": "q"}]'
    says 201
    wait_until 20 metric_is 'millrace_jobs_total{queue="q",kind="good",outcome="completed"} 1'
    wait_until 20 metric_is 'millrace_jobs_total{queue="q",kind="final",outcome="dead"} 1'
    wait_until 20 metric_is 'millrace_jobs_total{queue="q",kind="again",outcome="dead"} 1'
    metric_is 'millrace_jobs_total{queue="q",kind="again",outcome="failed"} 2'
    metric_is 'millrace_jobs_total{queue="q",kind="again",outcome="retried"} 1'
    run ! metric_is 'millrace_jobs_total{queue="q",kind="final",outcome="retried"}'
    # one that is stopped while it runs
    post /api/v1/jobs '{"kind": "slow", "queue": "q"}'
    local id
    id=$(jq .id <<<"$body")
    wait_until 20 jobs_are q running 1
    api DELETE "/api/v1/jobs/$id"
    says 200
    wait_until 20 metric_is 'millrace_jobs_total{queue="q",kind="slow",outcome="cancelled"} 1'
    # one that another has rescued while the daemon slept
    post /api/v1/jobs '{"kind": "slow", "queue": "q"}'
    wait_until 20 jobs_are q running 1
    signal api STOP
    wait_until 20 rescued
    signal api CONT
    wait_until 20 metric_is 'millrace_jobs_total{queue="q",kind="slow",outcome="rescued"} 1'
}

rescued()
{
    [ "$(sql "select sum(done) from millrace.maintain() where duty = 'rescue'")" -ge 1 ]
}

# The free share of the file system of $1, as df has it.
free_ratio()
{
    stat -f -c '%a %b' "$1" | awk '{ print $1 / $2 }'
}

# Whether the metric is near the share of the file system of $1.
disk_is()
{
    api GET /metrics
    awk -v free="$(free_ratio "$1")" '$1 == "millrace_disk_free_ratio" { found = $2 } END { exit !(found != "" && found - free < 0.02 && free - found < 0.02) }' <<<"$body"
}

@test "the disk: known of a server on this host, in metrics and on the page of the system" {
    local data
    data=$(sql 'show data_directory')
    api_up
    wait_until 10 disk_is "$data"
    api GET /api/v1/system
    says 200 .disk.path "\"$data\""
    jq -e '.disk | .bytes > 0 and .free_bytes >= 0 and .free_bytes <= .bytes and ((.free_bytes / .bytes) - .free_ratio | fabs) < 0.001' <<<"$body"
    jq -e '.segments | length >= 1' <<<"$body"
    # an unknown name in the query is refused as everywhere
    api GET '/api/v1/system?x=1'
    says 400
}

disk_is_not_known()
{
    api GET /metrics
    says 200 && ! grep -q '^millrace_disk_free_ratio ' <<<"$body"
}

@test "the disk: of a path that the configuration names, of none that is not there" {
    mkdir -p "$BATS_TEST_TMPDIR/disk"
    api_up "disk_path = \"/dev/shm\""
    wait_until 10 disk_is /dev/shm
    api GET /api/v1/system
    says 200 .disk.path '"/dev/shm"'
    sed -i 's|/dev/shm|/nowhere/at/all|' "$api_conf"
    signal api HUP
    wait_until 10 logged api 'http.disk_path.*No such file'
    wait_until 10 disk_is_not_known # what was asked a moment ago is not asked again
    api GET /api/v1/system
    says 200 .disk '{}'
    api_write_conf 'disk_path = ""'
    run "$MR_BIN" serve -c "$api_conf"
    [ "$status" -eq 1 ]
    [[ $output == *'"disk_path" is empty'* ]]
}

@test "the disk: over the loopback, and not to a user who may not know where the data is" {
    private_server own --listen
    "$MR_BIN" migrate
    local data
    data=$(sql 'show data_directory')
    sql 'create role plain login' && sql 'grant millrace_admin to plain' && sql "alter role plain password '$PGPASSWORD'"
    MILLRACE_DSN="host=127.0.0.1 port=$PGPORT user=$PGUSER dbname=postgres" api_up
    wait_until 10 disk_is "$data"
    end_daemons
    MILLRACE_DSN="host=127.0.0.1 port=$PGPORT user=plain dbname=postgres" api_up
    api GET /metrics
    says 200
    grep -q '^millrace_database_up 1' <<<"$body"
    run ! grep -q '^millrace_disk_free_ratio ' <<<"$body"
    api GET /api/v1/system
    says 200 .disk '{}'
    end_daemons
    remove_private_server
    fresh_db
}

@test "a breaker that opens makes the daemon not ready" {
    printf '#!/bin/sh\nexit 1\n' >job.sh
    chmod +x job.sh
    api_more='worker w { queue = "q"  run = "./job.sh"  concurrency = 1  breaker { failures = 2  open_for = "1h" } }'
    api_up
    post /api/v1/jobs '[{"kind": "a", "queue": "q"}, {"kind": "a", "queue": "q"}, {"kind": "a", "queue": "q"}]'
    wait_until 20 logged api breaker.opened
    api GET /readyz
    says 503 .reasons '["worker w: its breaker is open"]'
    metric_is 'millrace_breaker_open{handler="w"} 1'
}

@test "a token that is taken out of the file is worth nothing after a reload" {
    local as
    api_up
    as=reader api GET /api/v1/jobs
    says 200
    sed -i '/token reader/d' "$api_conf"
    signal api HUP
    wait_until 10 logged api serve.reloaded
    as=reader api GET /api/v1/jobs
    says 401
    api GET /api/v1/jobs
    says 200
    # a broken file changes nothing
    sed -i 's/listen/lisen/' "$api_conf"
    signal api HUP
    wait_until 10 logged api serve.reload_refused
    api GET /api/v1/jobs
    says 200
}

@test "HTTPS with a certificate" {
    command -v openssl >/dev/null || skip 'openssl is not installed: apt install openssl'
    openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost 2>/dev/null
    api_up "tls_cert = \"$PWD/cert.pem\"" "tls_key = \"$PWD/key.pem\""
    run -0 curl -s --cacert cert.pem "https://localhost:${api##*:}/healthz"
    [ "$output" = '{"status":"alive"}' ]
    run ! curl -s "$api/healthz"
    api=https://localhost:${api##*:}
    export CURL_CA_BUNDLE=$PWD/cert.pem
    post /api/v1/jobs '{"kind": "a"}'
    says 201
    post /api/v1/queues/default/claim '{"wait_ms": 100}'
    says 200 '.jobs | length' 1
}

@test "a port that is taken, a certificate that is none" {
    api_up
    api_port=${api##*:}
    api_write_conf
    run "$MR_BIN" serve -c "$api_conf"
    [ "$status" -eq 1 ]
    [[ $output == *"cannot listen on 127.0.0.1:$api_port: Address already in use"* ]]
    api_port=0
    echo nonsense >key.pem
    api_write_conf "tls_cert = \"$PWD/key.pem\"" "tls_key = \"$PWD/key.pem\""
    run "$MR_BIN" serve -c "$api_conf"
    [ "$status" -eq 1 ]
    [[ $output == *'Check tls_cert and tls_key.'* ]]
}

@test "single jobs of many clients: each gets its own answer, a bad one spoils only itself" {
    api_up
    cat >many.py <<'END'
import http.client, json, sys, threading
port, bad, ids, lock = int(sys.argv[1]), [0], [], threading.Lock()
def client(n):
    c = http.client.HTTPConnection("127.0.0.1", port)
    for i in range(50):
        wrong = (n * 50 + i) % 10 == 0
        job = {"kind": "k", "queue": "q", "args": {"n": n * 50 + i}, "priority": 1000 if wrong else 50}
        c.request("POST", "/api/v1/jobs", json.dumps(job), {"Authorization": "Bearer admin-token", "Content-Type": "application/json"})
        r = c.getresponse()
        body = json.loads(r.read())
        assert r.status == (400 if wrong else 201), (r.status, body)
        with lock:
            bad[0] += wrong
            if not wrong: ids.append((body["id"], n * 50 + i))
threads = [threading.Thread(target=client, args=(n,)) for n in range(20)]
[t.start() for t in threads]; [t.join() for t in threads]
assert bad[0] == 100 and len(dict(ids)) == 900, (bad, len(ids))
for id, n in ids: print(id, n)
END
    python3 many.py "${api##*:}" | sort >answers
    psql -X -q -A -t -F ' ' -c "select id, args ->> 'n' from millrace.jobs" | sort >"$BATS_TEST_TMPDIR/jobs"
    diff answers "$BATS_TEST_TMPDIR/jobs"
    [ "$(wc -l <"$BATS_TEST_TMPDIR/jobs")" = 900 ]
}
