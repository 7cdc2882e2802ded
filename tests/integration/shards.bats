#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# Several databases behind one client: spreading, keys, leases, looking, adding and draining. What happens when one is in trouble is in
# shards_trouble.bats.

# shellcheck disable=SC2030,SC2031,SC2154 # bats runs a test in a subshell; output, status, databases and addresses are set elsewhere
bats_require_minimum_version 1.5.0
load ../lib/server
load ../lib/shards

setup()
{
    client=$MR_BUILD/tests/integration/shards/shard_client
    cd "$BATS_TEST_TMPDIR" || return
}

teardown()
{
    drop_databases
}

# The shard of an id.
shard_of()
{
    echo $(($1 >> 48))
}

@test "a set is made once, and numbers belong to databases, not to places" {
    new_databases 3
    use_shards 0 1 2
    run "$MR_BIN" shard add
    [ "$output" = $'address 1 is shard 0\naddress 2 is shard 1\naddress 3 is shard 2' ]
    run "$MR_BIN" shard add
    [ "$output" = 'all addresses are shards already' ]
    use_shards 2 0 1
    run "$MR_BIN" shard list --json
    [ "$(jq -c '[.shards[].shard]' <<<"$output")" = '[2,0,1]' ]
    [ "$(on 1 'select numbers from millrace.shard()')" = '{0,1,2}' ]
    run "$MR_BIN" shard add --json
    [ "$output" = '[]' ]
}

@test "jobs without a key take turns, a tenant's are together, and the order of addresses does not matter" {
    new_shards 3
    run -0 "$client" many plain 3000 100
    [ "$output" = $'in 3000\nshard 0: 1000\nshard 1: 1000\nshard 2: 1000' ]
    run -0 "$client" jobs tenants 600 60
    [ "${lines[0]}" = 'done 600, in 600, together' ]
    [ "${#lines[@]}" -eq 4 ]
    first=$("$client" one q tenant=acme)
    use_shards 2 1 0
    second=$("$client" one q tenant=acme)
    third=$("$MR_BIN" enqueue k --queue q --tenant acme)
    [ "$(shard_of "$first")" -eq "$(shard_of "$second")" ]
    [ "$(shard_of "$first")" -eq "$(shard_of "$third")" ]
    [ "$(sum_on "select count(*) from millrace.jobs where queue = 'q'")" -eq 3 ]
}

@test "unique keys and ordering keys have one place" {
    new_shards 3
    first=$("$client" one q unique=u)
    [ "$("$client" one q unique=u)" -eq "$first" ]
    [ "$("$MR_BIN" enqueue k --queue q --unique u)" -eq "$first" ]
    run -0 "$client" jobs uniques 30 10 unique
    [ "${lines[0]}" = 'done 30, in 30, together' ]
    [ "$("$client" depth uniques)" -eq 10 ]
    run -0 "$MR_BIN" queue set line ordered=true
    a=$("$client" one line key=o)
    b=$("$client" one line key=o)
    [ "$(shard_of "$a")" -eq "$(shard_of "$b")" ]
}

@test "leases name their shard, and everything under them goes there" {
    new_shards 2
    run -0 "$client" lease leases
    has 'running'
    has 'dead 1'
    has 'shards differ'
    has 'completed 2'
    has 'is lost'
    has "failed -17: lease 's31:0.1.1.x' is lost"
    has 'a connection to several shards has no calls without waiting'
}

@test "a worker of the library serves all shards, and its handler sees leases with the shard" {
    new_shards 3
    "$client" many q 300 10
    run -0 "$client" work q 0
    has 'completed 300'
    for shard in s0: s1: s2:; do
        [ "$(grep -c " $shard" <<<"$output")" -eq 100 ]
    done
    [ "$(sum_on 'select millrace.shard_open()')" -eq 0 ]
}

@test "millrace work serves all shards, with sql handlers on each" {
    new_shards 3
    for i in 0 1 2; do
        on "$i" "create table seen (id bigint); create function note(job jsonb) returns void language sql as \$\$ insert into seen values ((job ->> 'id')::bigint) \$\$"
    done
    "$client" many q 90 10
    run -0 "$MR_BIN" work q --sql note --until-empty --concurrency 3
    has 'completed 90'
    [ "$(sum_on 'select count(*) from seen')" -eq 90 ]
    [ "$(on 1 'select count(*) from seen where id >> 48 = 1')" -eq 30 ]
    "$client" many q 30 1
    "$MR_BIN" work q --run cat --until-empty --json >summary 2>log
    [ "$(jq .completed summary)" -eq 30 ]
    grep -q 'shard=' log
}

@test "looking, dead letters and replay work over all shards" {
    new_shards 3
    "$client" many q 30 10
    [ "$("$client" depth q)" -eq 30 ]
    id=$("$client" one q tenant=x)
    run -0 "$MR_BIN" job "$id"
    has "job $id: k, available"
    run -0 "$client" job "$id"
    has '"tenant": "x"'
    run "$client" job 99999
    has 'failed -19'
    run "$client" job $((9 << 48))
    has 'failed -19: the set has no shard 9'
    run -3 "$MR_BIN" work q --run false --until-empty --breaker-failures 0 --dsn "host=/nowhere dbname=x ; host=/neither dbname=x"
    for i in 0 1 2; do on "$i" "select millrace.fail(c.lease, c.id, 'no', retry => false) from millrace.claim('q', 'w', 100) c" >/dev/null; done
    # a page is read for a tenth of a second at most: on a busy machine the first may be short
    all_listed() { [ "$("$client" dead q 200 | jq '.jobs | length')" -eq 31 ]; }
    wait_until 60 all_listed
    run -0 "$client" dead q 200
    [ "$(jq '[.jobs[].died_at] == ([.jobs[].died_at] | sort | reverse)' <<<"$output")" = true ]
    [ "$(jq '[.jobs[].id / 281474976710656 | floor] | unique - [0,1,2] == []' <<<"$output")" = true ]
    five_listed() { [ "$("$client" dead q 5 | jq -c '[(.jobs | length), .complete]')" = '[5,false]' ]; }
    wait_until 60 five_listed
    run -0 "$MR_BIN" dead list q --json
    [ "$(jq '[.[].result.dead_letters | length] | add' <<<"$output")" -eq 31 ]
    run -0 "$MR_BIN" dead show "$id"
    run -0 "$MR_BIN" dead replay "$id"
    [ "$("$client" replay q)" -eq 30 ]
    [ "$("$client" depth q)" -eq 31 ]
    [ "$("$client" purge q)" -eq 0 ]
    run -0 "$MR_BIN" cancel "$id"
    run -5 "$MR_BIN" wait "$id"
    has cancelled
    run "$client" dead nowhere
    has 'failed -19'
}

@test "commands see to all shards" {
    new_shards 2
    "$client" many q 4 1
    run -0 "$MR_BIN" status
    has 'shard 0:'
    has 'shard 1:'
    run -0 "$MR_BIN" status q --json
    [ "$(jq -c '[.[] | [.shard, .result.queues[0].available, .status]]' <<<"$output")" = '[[0,2,0],[1,2,0]]' ]
    run -0 "$MR_BIN" pause q
    [ "$(sum_on "select count(*) from millrace.queues where queue = 'q' and paused")" -eq 2 ]
    run -0 "$MR_BIN" resume q
    run -0 "$MR_BIN" queue set q depth_limit=2
    [ "$(sum_on "select count(*) from millrace.queues where queue = 'q' and settings ->> 'depth_limit' = '2'")" -eq 2 ]
    run -0 "$MR_BIN" migrate --check
    run -0 "$MR_BIN" retry set k --max-attempts 7
    [ "$(sum_on "select max_attempts from millrace.retries where kind = 'k'")" -eq 14 ]
    run -0 "$MR_BIN" cron set nightly '0 2 * * *' k
    [ "$(on 0 'select count(*) from millrace.schedules')" -eq 1 ]
    [ "$(on 1 'select count(*) from millrace.schedules')" -eq 0 ]
    run -0 "$MR_BIN" cache set k 7 --ttl 1h
    [ "$("$client" toolbox)" = '7 1' ]
    [ "$(on 0 "select millrace.cache_get('k')")" = 7 ]
    run -2 "$MR_BIN" top
    has 'this needs one database; MILLRACE_DSN names several'
    on 1 "select millrace.enqueue('k', queue => 'only.here')" >/dev/null
    run -0 "$MR_BIN" top --once --shard 1 --interval 100ms
    has 'only.here'
    run -0 "$MR_BIN" top --once --shard 0 --interval 100ms
    [[ $output != *only.here* ]]
    run -1 "$MR_BIN" top --once --shard 7
    has 'none of the addresses is shard 7'
    run -2 "$MR_BIN" top --once --shard 32
    has 'from 0 to 31'
    run -2 "$MR_BIN" top --once --shard 0 --dsn "${addresses[0]}"
    has '--shard needs the addresses of several'
    run -2 "$MR_BIN" enqueue k --file /dev/null
    has '--file needs one database'
    "$MR_BIN" doctor --json >verdicts || true # this server has its warnings
    [ "$(jq -c '[.[] | [.shard, (.result | type)]]' verdicts)" = '[[0,"object"],[1,"object"]]' ]
}

@test "--dsn several times is the list" {
    new_shards 2
    unset MILLRACE_DSN
    run -0 "$MR_BIN" shard list --dsn "${addresses[0]}" --dsn="${addresses[1]}" --json
    [ "$(jq -c '[.shards[].shard]' <<<"$output")" = '[0,1]' ]
    run -0 "$MR_BIN" status --dsn "${addresses[0]}" --dsn "${addresses[1]}"
    has 'shard 1:'
    run -2 "$MR_BIN" shard list --dsn "${addresses[0]}" --dsn "${addresses[0]}"
    has 'the list has an address twice'
    run -2 "$MR_BIN" shard list --dsn "${addresses[0]} ; redis://127.0.0.1"
    has 'an address of Redis'
    run -2 "$MR_BIN" shard list --dsn "${addresses[0]} ; "
    has 'an address of the list is empty'
}

@test "a full shard is passed over, and jobs with a key are refused rather than put elsewhere" {
    new_shards 2
    for i in 0 1; do on "$i" "select millrace.set_queue('q', '{\"depth_limit\": 10}')"; done
    home=$(shard_of "$("$client" one q tenant=acme)")
    for i in {1..9}; do "$client" one q tenant=acme >/dev/null; done
    [ "$(shard_of "$("$client" one q tenant=acme)")" -ne "$home" ]
    run "$client" one q tenant=acme unique=u
    has "failed -18: shard $home: queue 'q' is full"
    run -4 "$MR_BIN" enqueue k --queue q --tenant acme --unique u
    run "$client" many q 30 1
    has 'failed -18'
    has 'in 9'
    run "$client" jobs q 1 1
    has 'failed -18'
    ("$client" one q tenant=acme wait=60000 >late) &
    on "$((1 - home))" "select millrace.complete(c.lease) from millrace.claim('q', 'w', 5) c limit 1" >/dev/null
    wait
    [ "$(shard_of "$(cat late)")" -ne "$home" ]
}

@test "a database that is no shard, of another set or there twice is refused" {
    new_shards 2
    set=("${addresses[@]}")
    mine=("${databases[@]}")
    new_shards 1
    addresses=("${set[@]}" "${addresses[@]}")
    databases=("${mine[@]}" "${databases[@]}")
    use_shards 0 1 2
    run "$client" depth q
    has 'failed -24: address 3: the databases at addresses 1 and 3 are shards of different sets'
    run -1 "$MR_BIN" shard add
    has 'shards of different sets'
    psql -X -q -d postgres -c "create database ${databases[1]}_copy template ${databases[1]}"
    databases+=("${databases[1]}_copy")
    addresses+=("$(address_of "${databases[1]}_copy")")
    use_shards 0 1 3
    for verb in 'depth q' 'one q'; do
        # shellcheck disable=SC2086 # words
        run "$client" $verb
        has 'failed -24: address 3: the databases at addresses 2 and 3 are both shard 1'
        has 'Leave one of them out.'
    done
    run "$client" work q 1
    has 'are both shard 1'
    run -1 "$MR_BIN" work q --run true
    has 'are both shard 1'
    run -1 "$MR_BIN" status
    has 'are both shard 1'
    psql -X -q -d postgres -c "create database ${databases[0]}_new template millrace_template"
    databases+=("${databases[0]}_new")
    addresses+=("$(address_of "${databases[0]}_new")")
    use_shards 0 1 4
    run "$client" depth q
    has 'failed -24: address 3: the database is not a shard'
}

@test "a shard is added: few tenants move, keys that are held stay where they are until their jobs have ended" {
    new_shards 2
    for i in {1..30}; do "$client" one before unique="u$i"; done >ids_before
    for i in {1..30}; do "$client" one tenants tenant="t$i"; done >ids_tenants
    set=("${addresses[@]}")
    mine=("${databases[@]}")
    new_databases 1
    addresses=("${set[@]}" "${addresses[@]}")
    databases=("${mine[@]}" "${databases[@]}")
    use_shards 0 1 2
    run -0 "$MR_BIN" shard add
    [ "$output" = 'address 3 is shard 2' ]
    [ "$(on 0 'select numbers from millrace.shard()')" = '{0,1,2}' ]
    [ "$(on 2 'select status from millrace.shard()')" = joining ]
    # the same keys give the same jobs, wherever they would go now
    for i in {1..30}; do "$client" one before unique="u$i"; done >again
    diff ids_before again
    for i in {1..30}; do "$client" one tenants tenant="t$i"; done >moved
    moved=0
    for i in {1..30}; do
        old=$(shard_of "$(sed -n "${i}p" ids_tenants)")
        new=$(shard_of "$(sed -n "${i}p" moved)")
        [ "$old" -eq "$new" ] || { [ "$new" -eq 2 ] && moved=$((moved + 1)); }
    done
    [ "$moved" -gt 2 ] && [ "$moved" -lt 20 ]
    run -0 "$client" consume before 300
    for i in {1..30}; do "$client" one before unique="u$i"; done >after
    [ "$(while read -r id; do shard_of "$id"; done <after | grep -c '^2$')" -gt 2 ]
    run -0 "$MR_BIN" shard resume 2
    [ "$output" = 'shard 2 is active' ]
}

@test "a shard is drained: no new jobs, workers empty it, then it leaves" {
    new_shards 3
    "$client" many q 30 1
    "$client" one q unique=held >first
    shard=$(shard_of "$(cat first)")
    run -0 "$MR_BIN" shard drain "$shard"
    [ "$output" = "shard $shard is draining: 11 jobs left" ]
    run "$client" many q 20 1
    has_not "shard $shard:"
    # a key that is held there is still held
    [ "$("$client" one q unique=held)" -eq "$(cat first)" ]
    run -2 "$MR_BIN" shard remove "$shard"
    has "shard $shard is not drained: 11 jobs have not ended"
    "$MR_BIN" shard drain "$shard" --wait --timeout 60s >drained &
    run -0 "$client" consume q 500
    wait
    [ "$(cat drained)" = "shard $shard is empty" ]
    again=$("$client" one q unique=held)
    [ "$(shard_of "$again")" -ne "$shard" ]
    run -0 "$MR_BIN" shard remove "$shard"
    [ "$output" = "shard $shard is out of the set" ]
    run -2 "$MR_BIN" shard drain 40
    has 'is not the number of a shard'
    others=()
    for i in 0 1 2; do [ "$i" -eq "$shard" ] || others+=("$i"); done
    use_shards "${others[@]}"
    run -0 "$client" one q unique=again
    run -0 "$MR_BIN" shard drain "${others[0]}"
    run -2 "$MR_BIN" shard drain "${others[1]}"
    has 'no other shard takes jobs'
    run -0 "$MR_BIN" shard resume "${others[0]}"
}

@test "with one shard that takes jobs a set is like one database" {
    new_shards 3
    "$MR_BIN" shard drain 0
    "$MR_BIN" shard drain 2
    "$MR_BUILD/tests/conformance/conform" <"$MR_ROOT/tests/conformance/queue.script" >actual
    diff -u "$MR_ROOT/tests/conformance/queue.expected" actual
    "$MR_BUILD/tests/conformance/conform" <"$MR_ROOT/tests/conformance/toolbox.script" >actual
    diff -u "$MR_ROOT/tests/conformance/toolbox.expected" actual
}

@test "a database that has had jobs can be the first of a set only" {
    new_databases 2
    for i in 0 1; do on "$i" "select millrace.enqueue('k')" >/dev/null; done
    use_shards 0 1
    run -1 "$MR_BIN" shard add
    has 'address 2: this database has had jobs: it cannot become shard 1'
    use_shards 0
    run -0 "$MR_BIN" shard list
    has active
    run -0 "$client" job 1
}

@test "docs/shards.md prints what it says" {
    new_databases 3
    export A=${addresses[0]} B=${addresses[1]} C=${addresses[2]}
    awk '/^```sh$/ { on = 1; next } /^```/ { on = 0 } on' "$MR_ROOT/docs/shards.md" >script
    awk '/^```text$/ { on = 1; next } /^```/ { on = 0 } on' "$MR_ROOT/docs/shards.md" >expected
    PATH=${MR_BIN%/*}:$PATH bash -eu script >actual 2>&1
    diff -u expected actual
}
