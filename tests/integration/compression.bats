#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# Compressed payloads from one end to the other: written by the command line, the HTTP API and SQL,
# read by every kind of handler, by HTTP clients, people and SQL; queues that change their mind; rows
# that are damaged. libmillrace itself is in library.bats.

bats_require_minimum_version 1.5.0
load ../lib/server
load ../lib/daemon
load ../lib/api

body=

setup_file()
{
    fresh_db
    sql "select millrace.set_retry('k', max_attempts => 3, base => '10 minutes', jitter => 0)"
    # 4,000 bytes that become much smaller, as text and as base64
    export TEXT BASE64
    TEXT=$(printf 'some words %.0s' {1..364} | head -c 4000)
    BASE64=$(printf '%s' "$TEXT" | base64 -w 0)
    # a child for exec that writes down what it gets, and answers as args.do says
    cat >"$MR_SCRATCH/child" <<'PYTHON'
#!/usr/bin/env python3
import json, sys
for line in sys.stdin:
    job = json.loads(line)
    with open("got", "a") as got:
        got.write(line)
    answer = {"id": job["id"]}
    if job["args"].get("do") == "fail":
        answer.update(error="later", state=job["args"]["state"])
    print(json.dumps(answer), flush=True)
PYTHON
    chmod +x "$MR_SCRATCH/child"
}

teardown_file()
{
    drop_db
}

setup()
{
    q=packed$BATS_TEST_NUMBER
    cd "$BATS_TEST_TMPDIR" || return
    sql "select millrace.set_queue('$q', '{\"compress\": 1000}')"
}

teardown()
{
    end_daemons
}

# How parts of the waiting jobs of a queue are stored: stored [EXPRESSION]
stored()
{
    sql "select string_agg((${1:-millrace.part_coding(j.payload_state)})::text, ' ' order by j.job_id)
           from millrace.job j join millrace.queue q on q.queue_id = j.lane >> 12
          where q.queue_name = '$q' and j.job_id not in (select d.id from millrace.dead_letters d)"
}

work()
{
    "$MR_BIN" work "$q" --until-empty --breaker-failures 0 "$@" 2>>log
}

fate()
{
    sql "select status || '|' || coalesce(error, '') from millrace.jobs where id = $1"
}

# A job over HTTP with args, state and blob of 4,000 bytes: job [MEMBERS]
job()
{
    printf '{"kind": "k", "queue": "%s", "args": {"text": "%s"}, "state": "%s", "blob": "%s"%s}' \
        "$q" "$TEXT" "$BASE64" "$BASE64" "${1:+, $1}"
}

# Claims over HTTP until there are so many, a job a line, with its lease, in the file `claimed`.
claim_all()
{
    : >claimed
    while [ "$(wc -l <claimed)" -lt "$1" ]; do
        post "/api/v1/queues/$q/claim" "{\"max_jobs\": $1, \"wait_ms\": 20000}"
        says 200
        jq -c '. as $claim | .jobs[] | . + {lease: $claim.lease}' <<<"$body" >>claimed
    done
}

is_whole()
{
    jq -e --arg text "$TEXT" --arg base64 "$BASE64" \
        '.args.text == $text and .state == $base64 and .blob == $base64' >/dev/null
}

@test "over HTTP: one job, an array, a stream, with a key; all come back whole" {
    api_up
    post /api/v1/jobs "$(job)"
    says 201
    id=$(jq .id <<<"$body")
    post /api/v1/jobs "[$(job), $(job '"ref": "b"')]"
    says 201
    { job; echo; job; echo; } >lines
    api POST /api/v1/jobs -H 'Content-Type: application/x-ndjson' --data-binary @lines
    says 201 .enqueued 2
    api POST /api/v1/jobs -H 'Content-Type: application/json' -H 'Idempotency-Key: once' --data-binary "$(job)"
    says 201
    api POST /api/v1/jobs -H 'Content-Type: application/json' -H 'Idempotency-Key: once' --data-binary "$(job)"
    says 201
    [ "$(stored)" = 'zstd zstd zstd zstd zstd zstd' ]
    [ "$(stored "j.payload_args ? '\$coded'")" = 'true true true true true true' ]
    [ "$(stored 'octet_length(j.payload_state) < 400')" = 'true true true true true true' ]

    # its story, and the list
    api GET "/api/v1/jobs/$id"
    says 200 '[.state.bytes, .state.coding, .state.format, .state.cut, (.args.text | length)]' '[4000,"zstd","text",false,4000]'
    [ "$(jq -r .blob.value <<<"$body")" = "$TEXT" ]
    api GET "/api/v1/jobs?queue=$q"
    says 200 '[.jobs[].args.text | length] | unique' '[4000]'

    claim_all 6
    while IFS= read -r line; do
        is_whole <<<"$line"
    done <claimed
}

@test "over HTTP: state that a worker writes, by fail, requeue and finish" {
    api_up
    for ((i = 0; i < 3; i++)); do
        post /api/v1/jobs "{\"kind\": \"k\", \"queue\": \"$q\"}"
    done
    claim_all 3
    mapfile -t ids < <(jq '.id' claimed)
    mapfile -t leases < <(jq -r .lease claimed)
    post "/api/v1/leases/${leases[0]}/fail" "{\"id\": ${ids[0]}, \"error\": \"later\", \"retry_in_s\": 0.001, \"state\": \"$BASE64\"}"
    says 200
    post "/api/v1/leases/${leases[1]}/requeue" "{\"id\": ${ids[1]}, \"state\": \"$BASE64\", \"blob\": \"$BASE64\", \"changes\": {\"args\": {\"text\": \"$TEXT\"}}}"
    says 200
    post "/api/v1/leases/${leases[2]}/finish" "{\"outcomes\": [{\"id\": ${ids[2]}, \"outcome\": \"requeued\", \"state\": \"$BASE64\"}]}"
    says 200
    [ "$(sql "select distinct millrace.part_coding(p.payload_state)
                from (select j.job_id, j.payload_state from millrace.job j union all select d.job_id, d.payload_state from millrace.delayed d) p
               where p.job_id in (${ids[0]}, ${ids[1]}, ${ids[2]}) and p.payload_state is not null")" = zstd ]
    claim_all 3
    [ "$(jq -r .state claimed | sort -u)" = "$BASE64" ]
    [ "$(jq -r '.args.text // empty' claimed)" = "$TEXT" ]
}

@test "handlers get what was given: exec, http, sql, plugin; what they write is compressed" {
    "$MR_BIN" enqueue k "{\"do\": \"fail\", \"text\": \"$TEXT\", \"state\": \"$BASE64\"}" --queue "$q" >id
    id=$(cat id)
    [ "$(stored "j.payload_args ? '\$coded'")" = true ]
    work --exec "$MR_SCRATCH/child"
    [ "$(jq -r .args.text got)" = "$TEXT" ]
    [ "$(fate "$id")" = 'scheduled|later' ]
    [ "$(sql "select millrace.part_coding(d.payload_state) || ' ' || millrace.part_size(d.payload_state) from millrace.delayed d where d.job_id = $id")" = 'zstd 4000' ]
    [ "$("$MR_BIN" job "$id" --json | jq -r .state.value)" = "$TEXT" ]
    [ "$("$MR_BIN" job "$id" | grep -c '\$coded')" -eq 0 ]

    # a function of the database
    sql "create function packed_sql(job jsonb) returns void language plpgsql as \$\$
         begin
           if length(job -> 'args' ->> 'text') <> 4000 or convert_from(decode(job ->> 'state', 'base64'), 'UTF8') <> job -> 'args' ->> 'text' then
             raise exception 'the job is not whole';
           end if;
         end \$\$"
    sql "select millrace.run_now($id)"
    work --sql public.packed_sql
    [ "$(fate "$id")" = 'completed|later' ]

    # a shared object
    cat >whole.c <<'C'
#include <millrace/millrace.h>
#include <string.h>
mr_handler millrace_handler;
int millrace_handler(const mr_claimed_job *job, mr_outcome *outcome, void *arg)
{
    (void)outcome, (void)arg;
    return job->state_size == 4000 && strlen(job->args) > 4000 && memcmp(job->state, "some words ", 11) == 0 ? 0 : 1;
}
C
    ${CC:-cc} -std=c99 -shared -fPIC -I "$MR_ROOT/include" -o whole.so whole.c
    id=$(printf '{"kind": "k", "queue": "%s", "args": {"text": "%s"}, "state": "%s"}\n' "$q" "$TEXT" "$BASE64" |
        "$MR_BIN" enqueue --file - --json | jq '.ids[0]')
    [ "$(sql "select millrace.part_coding(j.payload_state) from millrace.job j where j.job_id = $id")" = zstd ]
    work --plugin ./whole.so
    [ "$(fate "$id")" = 'completed|' ]

    # a server
    python3 "$MR_ROOT/tests/lib/hook_server.py" ./hooks >hooks.out 2>&1 3>&- &
    hooks=$!
    wait_until 30 test -s hooks.port
    printf '{"kind": "k", "queue": "%s", "args": {"text": "%s"}, "state": "%s", "blob": "%s"}\n' "$q" "$TEXT" "$BASE64" "$BASE64" |
        "$MR_BIN" enqueue --file -
    work --http "http://127.0.0.1:$(cat hooks.port)/status/200" || true
    kill "$hooks"
    jq -r .body hooks.log | is_whole
}

@test "a queue that changes its mind: jobs of both sorts wait, all are read" {
    "$MR_BIN" enqueue k "{\"text\": \"$TEXT\", \"n\": 1}" --queue "$q"
    sql "select millrace.set_queue('$q', '{\"compress\": null}')"
    "$MR_BIN" enqueue k "{\"text\": \"$TEXT\", \"n\": 2}" --queue "$q"
    sql "select millrace.set_queue('$q', '{\"compress\": 200}')"
    "$MR_BIN" enqueue k "{\"text\": \"$TEXT\", \"n\": 3}" --queue "$q"
    [ "$(stored "j.payload_args ? '\$coded'")" = 'true false true' ]
    sql "select millrace.set_queue('$q', '{\"compress\": null}')"
    work --exec "$MR_SCRATCH/child"
    [ "$(jq -c .args.n got | sort)" = "$(printf '1\n2\n3')" ]
    [ "$(jq -r .args.text got | sort -u)" = "$TEXT" ]
    jobs_are "$q" completed 3
}

@test "a SQL client reads plain jobs as ever, and sees what is coded of the others" {
    sql "select millrace.enqueue('k', '{\"a\": 1}', queue => '$q', state => 'small')"
    printf '{"kind": "k", "queue": "%s", "state": "%s"}\n' "$q" "$BASE64" | "$MR_BIN" enqueue --file -
    [ "$(sql "select string_agg(millrace.part_coding(c.state) || ' ' || millrace.part_size(c.state) || ' ' || (octet_length(c.state) < 400), ', ' order by c.id)
                from millrace.claim('$q', max_jobs => 2) c")" = 'plain 5 true, zstd 4000 true' ]
    # a frame like any other behind its 17 bytes
    if command -v zstd >/dev/null; then
        id=$(sql "select max(id) from millrace.jobs where queue = '$q'")
        sql "select encode(substr(j.payload_state, 18), 'hex') from millrace.job j where j.job_id = $id" | tr -d '\n' |
            python3 -c 'import sys; sys.stdout.buffer.write(bytes.fromhex(sys.stdin.read()))' >frame
        [ "$(zstd -dc frame)" = "$TEXT" ]
    fi
}

@test "damaged rows fail alone, for good, in a daemon's worker and over HTTP" {
    api_up
    for i in 0 1 2 3 6; do
        post /api/v1/jobs "$(job)"
        ids[i]=$(jq .id <<<"$body")
    done
    # the first claim brings nothing that can be read, and is followed by a second
    sql "update millrace.job j set payload_state = substr(j.payload_state, 1, octet_length(j.payload_state) - 3) where j.job_id = ${ids[0]}"
    # one byte of the frame is another: its checksum tells
    sql "update millrace.job j set payload_state = set_byte(j.payload_state, 36, get_byte(j.payload_state, 36) # 1) where j.job_id = ${ids[6]}"
    # 4 GiB, says the header
    sql "update millrace.job j set payload_blob = set_byte(j.payload_blob, 12, 1) where j.job_id = ${ids[2]}"
    post "/api/v1/queues/$q/claim" '{"wait_ms": 20000}'
    says 200 '[.jobs[].id]' "[${ids[1]}]"
    wait_until 30 eval "[[ \$(fate ${ids[0]}) == 'dead|state cannot be decoded: '* ]]"
    work --exec "$MR_SCRATCH/child"
    [[ $(fate "${ids[2]}") == 'dead|blob cannot be decoded: the value declares '*' bytes, the limit is 67108864' ]]
    [ "$(fate "${ids[3]}")" = 'completed|' ]
    [[ $(fate "${ids[6]}") == 'dead|state cannot be decoded: '* ]]
    grep -q 'worker.unreadable' log
    api GET "/api/v1/jobs/${ids[2]}"
    says 200 .blob.damaged true
    api GET "/api/v1/jobs/${ids[0]}"
    says 200 .state.damaged true

    # args, too
    post /api/v1/jobs "$(job)"
    ids[4]=$(jq .id <<<"$body")
    post /api/v1/jobs "$(job)"
    ids[5]=$(jq .id <<<"$body")
    sql "update millrace.job j set payload_args = '{\"\$coded\": \"iU1SUA0KGgpwAAAAAAAAAAF7\"}' where j.job_id = ${ids[4]}"
    post "/api/v1/queues/$q/claim" '{"wait_ms": 20000}'
    says 200 '[.jobs[].id]' "[${ids[5]}]"
    wait_until 30 eval "[[ \$(fate ${ids[4]}) == 'dead|args cannot be decoded: '* ]]"
}

@test "bytes that begin like coded ones are wrapped, and refused where nobody wraps them" {
    api_up
    like=$(printf '\x89MRP\r\n\x1a\nzzz' | base64 -w 0)
    post /api/v1/jobs "{\"kind\": \"k\", \"queue\": \"$q\", \"state\": \"$like\", \"args\": {\"\$coded\": \"iU1SUA0KGgpwAAAAAAAAAAJ7fQ==\"}}"
    says 201
    printf '{"kind": "k", "queue": "%s", "state": "%s"}\n' "$q" "$like" | "$MR_BIN" enqueue --file -
    [ "$(stored 'millrace.part_size(j.payload_state)')" = '11 11' ]
    claim_all 2
    [ "$(jq -r .state claimed | sort -u)" = "$like" ]
    [ "$(jq -c .args claimed | head -n 1)" = '{"$coded":"iU1SUA0KGgpwAAAAAAAAAAJ7fQ=="}' ]
    run psql -XAtq -d "$MILLRACE_DSN" -c "select millrace.enqueue('k', state => decode('$like', 'base64'))"
    [ "$status" -ne 0 ]
    [[ $output == *'state begins like a coded part'*'HINT:'* ]]
}
