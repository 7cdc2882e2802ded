#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# `millrace enqueue`: one job, and files of any length.

bats_require_minimum_version 1.5.0
load ../lib/server

setup_file()
{
    fresh_db
    # so that a test can see which function was called
    sql "alter database $PGDATABASE set track_functions = 'pl'"
}

teardown_file()
{
    drop_db
}

setup()
{
    cd "$BATS_TEST_TMPDIR" || return
    # each test has queues of its own
    q=q$BATS_TEST_NUMBER
}

json()
{
    jq -rc "$1" <<<"$output"
}

depth()
{
    sql "select millrace.depth('$1')"
}

depth_is()
{
    [ "$(depth "$1")" = "$2" ]
}

# The lines $1 to $2 of a file of jobs that differ in their args only.
plain_lines()
{
    seq "$1" "$2" | sed 's/.*/{"args": {"n": &}}/'
}

# The numbers of the jobs of a queue, in the order of their ids.
numbers()
{
    sql "select string_agg(args ->> 'n', ' ' order by id) from millrace.jobs where queue = '$1'"
}

calls()
{
    sql "select coalesce(sum(calls), 0) from pg_stat_user_functions where schemaname = 'millrace' and funcname = '$1'"
}

# ---- one ---------------------------------------------------------------------------------

@test "a job with nothing but its kind" {
    run --separate-stderr "$MR_BIN" enqueue plain
    [ "$status" -eq 0 ]
    [[ $output =~ ^[0-9]+$ ]]
    [ "$(sql "select (queue, kind, args, priority, status)::text from millrace.jobs where id = $output")" = '(default,plain,{},50,available)' ]
    run "$MR_BIN" enqueue plain '"only a text"' --json
    [ "$(json '.enqueued, (.ids | length)' | xargs)" = '1 1' ]
}

@test "every option of one job, before and behind its arguments" {
    local id
    id=$("$MR_BIN" enqueue --priority 7 --tenant t1 'letter' --queue "$q" '{"to": "ada"}' --ref r1 --max-attempts 4 \
        --timeout 90s --expires-in 2d --meta '{"trace": 5}')
    [ "$(sql "select (kind, queue, priority, args ->> 'to', tenant, ref, max_attempts, meta ->> 'trace')::text from millrace.jobs where id = $id")" = \
        "(letter,$q,7,ada,t1,r1,4,5)" ]
    [ "$(sql "select (run_limit, stale_at - created_at)::text from millrace.job where job_id = $id")" = '(00:01:30,"2 days")' ]
    id=$("$MR_BIN" enqueue letter --delay 3d)
    [ "$(sql "select run_at - created_at from millrace.jobs where id = $id")" = '3 days' ]
    id=$("$MR_BIN" enqueue letter --at '2099-01-31 08:00+01')
    [ "$(sql "select run_at at time zone 'UTC' from millrace.jobs where id = $id")" = '2099-01-31 07:00:00' ]
    id=$("$MR_BIN" enqueue --queue "$q" -- --kind)
    [ "$(sql "select kind from millrace.jobs where id = $id")" = --kind ]
}

@test "what the server refuses is told without the place in its code" {
    run "$MR_BIN" enqueue letter --unique ''
    [ "$status" -eq 1 ]
    [ "${lines[0]}" = 'millrace: unique_key must not be empty' ]
    [[ ${lines[1]} == 'hint: '* ]]
    [[ $output != *PL/pgSQL* ]]
    run "$MR_BIN" enqueue letter --unique "$(printf '%01001d' 0)"
    [ "$status" -eq 1 ]
    [ "${lines[0]}" = 'millrace: unique_key is 1001 bytes long, the limit is 1000' ]
    run "$MR_BIN" enqueue letter --unique k1 --on-conflict fail
    [ "$status" -eq 1 ]
    [ "${lines[0]}" = "millrace: on_conflict must be ignore or replace, not 'fail'" ]
    run "$MR_BIN" enqueue letter --key k1
    [ "$status" -eq 1 ]
    run "$MR_BIN" enqueue letter --at 'some day'
    [ "$status" -eq 1 ]
    run "$MR_BIN" enqueue letter '{"a": "\u0000"}'
    [ "$status" -eq 1 ]
    run "$MR_BIN" enqueue letter "{'a': 1}"
    [ "$status" -eq 2 ]
    [ "${lines[0]}" = 'millrace: ARGS-JSON: invalid JSON at byte 2: expected a key in double quotes' ]
}

# ---- unique ------------------------------------------------------------------------------

# The args of a job.
args_of()
{
    sql "select args from millrace.jobs where id = $1"
}

complete_one()
{
    sql "select millrace.complete(lease) from millrace.claim('$1')"
}

@test "a key that is held: no second job, and the id of the first" {
    local id
    id=$("$MR_BIN" enqueue index '{"n": 1}' --queue "$q" --unique page-1)
    run --separate-stderr "$MR_BIN" enqueue index '{"n": 2}' --queue "$q" --unique page-1
    [ "$status" -eq 0 ]
    [ "$output" = "$id" ]
    run --separate-stderr "$MR_BIN" enqueue index --queue "$q" --unique page-1 --json
    [ "$output" = "{\"ids\":[$id],\"enqueued\":1}" ]
    [ "$(args_of "$id")" = '{"n": 1}' ]
    [ "$(depth "$q")" = 1 ]
    # Another key, another queue.
    [ "$("$MR_BIN" enqueue index --queue "$q" --unique page-2)" != "$id" ]
    [ "$("$MR_BIN" enqueue index --queue "$q-other" --unique page-1)" != "$id" ]
    # It has ended.
    [ "$(complete_one "$q")" = 1 ]
    [ "$("$MR_BIN" enqueue index --queue "$q" --unique page-1)" != "$id" ]
}

@test "--on-conflict replace: the job that waits has the new args and time, ignore leaves it" {
    local id
    id=$("$MR_BIN" enqueue index '{"n": 1}' --queue "$q" --unique k --delay 1h)
    [ "$("$MR_BIN" enqueue index '{"n": 2}' --queue "$q" --unique k --delay 3h --on-conflict replace)" = "$id" ]
    [ "$(sql "select (args ->> 'n', status, run_at > now() + interval '2 hours')::text from millrace.jobs where id = $id")" = '(2,scheduled,t)' ]
    [ "$("$MR_BIN" enqueue index '{"n": 3}' --queue "$q" --unique k --on-conflict ignore)" = "$id" ]
    [ "$(args_of "$id")" = '{"n": 2}' ]
    [ "$(sql "select count(*) from millrace.jobs where queue = '$q'")" = 1 ]
}

@test "--unique-for: the key is held after completion, too" {
    local id
    id=$("$MR_BIN" enqueue index --queue "$q" --unique k --unique-for 2h)
    [ "$(complete_one "$q")" = 1 ]
    [ "$("$MR_BIN" enqueue index --queue "$q" --unique k)" = "$id" ]
    [ "$(sql "select quiet_time from millrace.unique_key where job_id = $id")" = 02:00:00 ]
    [ "$(depth "$q")" = 0 ]
}

@test "a file with members of a batch and jobs that wait for others" {
    local batch first
    batch=$(sql 'select millrace.batch_begin()')
    first=$("$MR_BIN" enqueue first --queue "$q")
    printf '%s\n' "{\"batch\": $batch, \"depends_on\": [$first]}" "{\"batch\": $batch}" '{"depends_on": []}' >jobs.in
    run --separate-stderr "$MR_BIN" enqueue index --queue "$q" --file jobs.in --json
    [ "$status" -eq 0 ]
    [ "$(json .enqueued)" -eq 3 ]
    [ "$(sql "select string_agg(status, ' ' order by id) from millrace.jobs where queue = '$q'")" = 'available waiting available available' ]
    sql 'select count(*) from millrace.maintain()'
    [ "$(sql "select millrace.batch($batch) ->> 'jobs'")" -eq 2 ]
    sql "select millrace.batch_seal($batch)"
    run -1 --separate-stderr "$MR_BIN" enqueue index --queue "$q" --file jobs.in
    [[ $stderr = *"batch $batch is sealed"* ]]
    sql "select millrace.purge('$q')"
}

@test "a file with keys: each line has an id, that of the job that is there" {
    local first
    cat >jobs.in <<'LINES'
{"args": {"n": 1}, "unique_key": "a"}
{"args": {"n": 2}, "unique_key": "b", "unique_for": "1 hour"}
{"args": {"n": 3}, "unique_key": "a"}
{"args": {"n": 4}}
LINES
    run --separate-stderr "$MR_BIN" enqueue index --queue "$q" --file jobs.in --json
    [ "$status" -eq 0 ]
    [ "$(json '.enqueued, .ids[0] == .ids[2], (.ids | unique | length)' | xargs)" = '4 true 3' ]
    [ "$(numbers "$q")" = '1 2 4' ]
    [ "$(sql "select string_agg(unique_name, ' ' order by unique_name) from millrace.unique_key where quiet_time = '1 hour'")" = b ]
    # What the command says about keys is for lines that have one.
    first=$(json '.ids[1]')
    printf '%s\n' '{"args": {"n": 5}, "unique_key": "b"}' '{"args": {"n": 6}}' '{"args": {"n": 7}, "unique_key": "a", "on_conflict": "ignore"}' >jobs.in
    run --separate-stderr "$MR_BIN" enqueue index --queue "$q" --on-conflict replace --unique-for 5min --file jobs.in --json
    [ "$status" -eq 0 ]
    [ "$(json '.ids[0]')" = "$first" ]
    [ "$(numbers "$q")" = '1 5 4 6' ]
}

@test "a key of the command is that of every line without one" {
    printf '%s\n' '{"args": {"n": 1}}' '{"args": {"n": 2}, "unique_key": "own"}' '{"args": {"n": 3}, "unique_key": null}' >jobs.in
    run --separate-stderr "$MR_BIN" enqueue index --queue "$q" --unique all --unique-for 1d --file jobs.in
    [ "$status" -eq 0 ]
    [[ $output == 'enqueued: 3 jobs'* ]]
    [ "$(numbers "$q")" = '1 2' ]
    [ "$(sql "select count(*) from millrace.unique_key u join millrace.queue q on q.queue_id = u.queue_id and q.queue_name = '$q' where u.quiet_time = '1 day'")" = 2 ]
}

@test "a file whose lines have no keys goes the fast way, whatever is said about keys" {
    plain_lines 1 50 >jobs.in
    "$MR_BIN" enqueue k --queue "$q" --on-conflict replace --unique-for 1h --file jobs.in
    [ "$(numbers "$q")" = "$(seq -s ' ' 50)" ]
    # Fewer rows than jobs: only enqueue_many makes packs.
    [ "$(sql "select count(*) < 50 from millrace.job j join millrace.queue q on q.queue_id = j.lane >> 12 and q.queue_name = '$q'")" = t ]
}

# ---- many --------------------------------------------------------------------------------

@test "a file goes in in its order, in chunks that are transactions, the fast way" {
    plain_lines 1 250 >jobs.in
    run --separate-stderr "$MR_BIN" enqueue count --queue "$q" --priority 3 --chunk 100 --file jobs.in
    [ "$status" -eq 0 ]
    [[ $output =~ ^enqueued:\ 250\ jobs,\ ids\ [0-9]+\ to\ [0-9]+$ ]]
    # Not a terminal, and it was quick.
    [ -z "$stderr" ]
    [ "$(numbers "$q")" = "$(seq -s ' ' 250)" ]
    [ "$(sql "select string_agg(n::text, ' ' order by first) from (select sum(coalesce(pack_n, 1)) as n, min(job_id) as first
              from millrace.job j join millrace.queue q on q.queue_id = j.lane >> 12 and q.queue_name = '$q' group by j.xid) x")" = '100 100 50' ]
    [ "$(sql "select string_agg(distinct (kind, priority)::text, ' ') from millrace.jobs where queue = '$q'")" = '(count,3)' ]
    # Statistics of functions arrive a moment after the session ended.
    wait_until 20 sh -c "test $(calls enqueue_many) -ge 3"
}

@test "lines that differ go in the general way, with the command line as their default" {
    cat >jobs.in <<'LINES'
{"args": {"n": 1}}
{"kind": "own", "queue": "OTHER", "priority": 9, "args": {"n": 2}, "ref": "mine"}
{"args": {"n": 3}, "queue": null, "delay": "2 hours", "ref": null}
{"args": {"n": 4}, "run_at": "2099-01-01"}

 { }
LINES
    sed -i "s/OTHER/$q-other/" jobs.in
    run "$MR_BIN" enqueue main --queue "$q" --priority 5 --delay 1h --ref theirs --tenant t --max-attempts 9 --timeout 5s \
        --expires-in 9d --meta '{"m": 1}' --file jobs.in
    [ "$status" -eq 0 ]
    [[ $output == 'enqueued: 5 jobs'* ]]
    run sql "select concat_ws(' ', args ->> 'n', kind, queue, priority, ref, tenant, max_attempts, meta ->> 'm',
                              case when run_at > '2098-01-01' then 'far' else (run_at - created_at)::text end)
               from millrace.jobs where queue like '$q%' order by id"
    [ "${lines[0]}" = "1 main $q 5 theirs t 9 1 01:00:00" ]
    [ "${lines[1]}" = "2 own $q-other 9 mine t 9 1 01:00:00" ]
    [ "${lines[2]}" = "3 main $q 5 theirs t 9 1 02:00:00" ]
    [ "${lines[3]}" = "4 main $q 5 theirs t 9 1 far" ]
    [ "${lines[4]}" = "main $q 5 theirs t 9 1 01:00:00" ]
}

@test "both ways in one file, and texts that need care" {
    {
        plain_lines 1 3
        printf '%s\n' '{"args": {"n": 4}, "kind": "gr\u00fcn"}' '{"args": {"n": 5, "t": "a\"\\\u00e9\\u0041 €"}, "kind": "\"quoted\""}'
        printf '%s\r\n' '{"args": {"n": 6}}'
        printf '%s' '{"args": {"n": 7, "n": 8}}'
    } >jobs.in
    "$MR_BIN" enqueue k --queue "$q" --file jobs.in
    [ "$(numbers "$q")" = '1 2 3 4 5 6 8' ]
    [ "$(sql "select string_agg(distinct kind, ' ' order by kind) from millrace.jobs where queue = '$q'")" = '"quoted" grün k' ]
    [ "$(sql "select args ->> 't' from millrace.jobs where queue = '$q' and args ? 't'")" = 'a"\é\u0041 €' ]
}

@test "standard input, by either name; ids as JSON" {
    run bash -c 'printf "{\"args\": {\"n\": %d}}\n" 1 2 3 | "$0" enqueue k --queue "$1" --json -' "$MR_BIN" "$q"
    [ "$(json '.enqueued')" = 3 ]
    [ "$(json '[.ids[]] | length')" = 3 ]
    [ "$(sql "select string_agg(id::text, ',' order by id) from millrace.jobs where queue = '$q'")" = "$(json '.ids | join(",")')" ]
    run bash -c 'echo "{\"kind\": \"k\"}" | "$0" enqueue --queue "$1" --file -' "$MR_BIN" "$q"
    [ "$status" -eq 0 ]
    run bash -c 'echo "{\"kind\": \"k\"}" | "$0" enqueue - --queue "$1"' "$MR_BIN" "$q"
    [ "$status" -eq 0 ]
    [ "$(depth "$q")" = 5 ]
    run bash -c '"$0" enqueue - --json </dev/null' "$MR_BIN"
    [ "$output" = '{"ids":[],"enqueued":0}' ]
}

# ---- bad lines ---------------------------------------------------------------------------

@test "a line that is not JSON: what is before it is in, and --skip goes on" {
    { plain_lines 1 149 && echo '{"args": {"n": 150}' && plain_lines 151 250; } >jobs.in
    run "$MR_BIN" enqueue k --queue "$q" --chunk 100 --file jobs.in
    [ "$status" -eq 1 ]
    [ "$(tail -n 2 <<<"$output" | head -n 1)" = 'millrace: jobs.in:150: invalid JSON at byte 20: the text ends too early' ]
    has 'hint: 149 jobs are in, all before this line. Correct it and go on with --skip 149, or leave it out with --skip 150.'
    [ "$(numbers "$q")" = "$(seq -s ' ' 149)" ]
    run "$MR_BIN" enqueue k --queue "$q" --chunk 100 --file jobs.in --skip 150
    [ "$status" -eq 0 ]
    [ "$(numbers "$q")" = "$(seq -s ' ' 250 | sed 's/ 150 / /')" ]
}

@test "a line that the server refuses: the same" {
    local bad
    for bad in '{"priority": 200}' '{"args": {"t": "\u0000"}}' '{"kindness": 1}' '{"delay": "soon"}' '{"args": 1e400000}' \
        '{"queue": ""}' '{"unique_key": ""}' '{"unique_key": "u", "on_conflict": "fail"}' '{"unique_for": "1 hour"}' \
        '{"ordering_key": "o"}' '{"ordering_key": ""}' '{"state": "*"}'; do
        { plain_lines 1 77 && echo "$bad" && plain_lines 79 120; } >jobs.in
        sql "select millrace.set_queue('$q', '{}'), millrace.purge('$q')" >/dev/null
        run "$MR_BIN" enqueue k --queue "$q" --file jobs.in --json
        echo "$bad: $output"
        [ "$status" -eq 1 ]
        has 'millrace: jobs.in:78: '
        has '77 jobs are in, all before this line.'
        has '--skip 77, or leave it out with --skip 78.'
        [[ $output != *'job 1'* && $output != *PL/pgSQL* ]]
        [ "$(depth "$q")" = 77 ]
        # The document is whole all the same.
        output=$(grep '^{' <<<"$output")
        [ "$(json .enqueued)" = 77 ]
    done
}

@test "the first line, a line that is no object, a key in disguise, an empty kind" {
    echo '[1]' >jobs.in
    run "$MR_BIN" enqueue k --file jobs.in
    has 'millrace: jobs.in:1: invalid JSON at byte 1: expected an object'
    has 'hint: 0 jobs are in'
    echo '{"k\u0069nd": "x"}' >jobs.in
    run "$MR_BIN" enqueue k --file jobs.in
    has 'millrace: jobs.in:1: a key is written with an escape'
    echo '{"args": {}}' >jobs.in
    run "$MR_BIN" enqueue --file jobs.in
    [ "$status" -eq 1 ]
    has 'millrace: jobs.in:1: kind must not be null'
    printf '{"args": "\377"}\n' >jobs.in
    run "$MR_BIN" enqueue k --file jobs.in
    has 'millrace: jobs.in:1: invalid JSON at byte 11: not UTF-8'
    printf '{"args": "a\0b"}\n' >jobs.in
    run "$MR_BIN" enqueue k --file jobs.in
    has 'a control character in a string'
}

@test "a line that is too long stops, and can be skipped" {
    {
        echo '{"args": {"n": 1}}'
        printf '{"args": "%s"}\n' "$(head -c 5000000 /dev/zero | tr '\0' x)"
        echo '{"args": {"n": 3}}'
    } >jobs.in
    run "$MR_BIN" enqueue k --queue "$q" --file jobs.in
    [ "$status" -eq 1 ]
    has 'millrace: jobs.in:2: longer than 4194304 bytes'
    has 'hint: One job a line'
    has '--skip 2'
    "$MR_BIN" enqueue k --queue "$q" --file jobs.in --skip 2
    [ "$(numbers "$q")" = '1 3' ]
    run "$MR_BIN" enqueue k --queue "$q" --file jobs.in --skip 4
    [ "$status" -eq 2 ]
    has '--skip 4: jobs.in has 3 lines'
}

@test "files that cannot be read" {
    run "$MR_BIN" enqueue k --file missing
    [ "$status" -eq 1 ]
    [ "${lines[0]}" = 'millrace: cannot open missing: No such file or directory' ]
    run "$MR_BIN" enqueue k --file .
    [ "$status" -eq 1 ]
    has 'cannot read .: Is a directory'
}

@test "memory does not grow with the file" {
    if nm -D "$MR_BIN" | grep -q __asan; then
        skip 'a sanitizer reserves more memory than any limit: run it without SANITIZE'
    fi
    head -c 900000 /dev/zero | tr '\0' x >text
    run bash -c 'ulimit -v 300000; for ((i = 0; i < 120; i++)); do printf "{\"args\": \""; cat text; echo "\"}"; done | "$0" enqueue k --queue "$1" -' "$MR_BIN" "$q"
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$(depth "$q")" = 120 ]
}

# ---- slow input, signals, lost connections -----------------------------------------------

# Starts a load from a pipe whose writing end is descriptor 7.
start_load()
{
    mkfifo pipe
    "$MR_BIN" enqueue k --queue "$q" --file pipe >out 2>err 3>&- 7>&- &
    load=$!
    exec 7>pipe
}

@test "a line that comes alone does not wait for more" {
    start_load
    echo '{"args": {"n": 1}}' >&7
    wait_until 20 depth_is "$q" 1
    echo '{"args": {"n": 2}}' >&7
    exec 7>&-
    wait $load
    [ "$(numbers "$q")" = '1 2' ]
    [[ $(cat out) == 'enqueued: 2 jobs'* ]]
}

@test "an interrupt says how far it came" {
    start_load
    plain_lines 1 10 >&7
    wait_until 20 depth_is "$q" 10
    kill -INT $load
    wait $load || status=$?
    exec 7>&-
    [ "$status" -eq 1 ]
    [[ $(cat out) == 'enqueued: 10 jobs'* ]]
    output=$(cat err)
    [ "$output" = $'millrace: pipe: interrupted\nhint: 10 jobs are in; go on with --skip 10.' ]
}

@test "a connection that breaks: what is certain, and what is not" {
    start_load
    plain_lines 1 10 >&7
    wait_until 20 depth_is "$q" 10
    sql "select count(pg_terminate_backend(pid)) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and application_name = 'millrace'"
    plain_lines 11 12 >&7
    exec 7>&-
    wait $load || status=$?
    output=$(cat err)
    echo "$output"
    [ "$status" -eq 3 ]
    has '10 jobs are in for certain, up to line 10; those of the next chunk may be in too.'
    has '--skip 10'
}

@test "a full standard output ends a load and says how far it came" {
    plain_lines 1 5000 >jobs.in
    run bash -c '"$0" enqueue k --queue "$1" --chunk 1000 --json --file jobs.in >/dev/full' "$MR_BIN" "$q"
    [ "$status" -eq 1 ]
    has 'cannot write to standard output'
    has "hint: $(depth "$q" | sed 's/\(.\)\(...\)$/\1,\2/') jobs are in"
}

# ---- progress ----------------------------------------------------------------------------

# A line goes in, and the command has been told to speak.
line_and_word()
{
    echo '{}' >&7
    grep -qE '^[0-9]+ jobs  [0-9]+/s$' err
}

@test "a line every few seconds where there is no terminal" {
    start_load
    wait_until 60 line_and_word
    exec 7>&-
    wait $load
    [ "$(wc -l <err)" -lt 20 ]
}

@test "a progress bar on a terminal, unless it has to be quiet" {
    need_terminal
    plain_lines 1 300 >jobs.in
    run script --quiet --return --command "'$MR_BIN' enqueue k --queue $q --chunk 10 --file jobs.in" /dev/null
    [ "$status" -eq 0 ]
    echo "$output" | cat -v
    [[ $output =~ \[=*\>?\ *\]\ +[0-9]+\ %\ +[0-9]+\ jobs\ +[0-9,]+/s ]]
    # The line is free again before the last word.
    [[ $output == *$'\r\033[Kenqueued: 300 jobs'* ]]
    run script --quiet --return --command "'$MR_BIN' enqueue k --queue $q --quiet --file jobs.in" /dev/null
    [[ $output == 'enqueued: 300 jobs'* ]]
}
