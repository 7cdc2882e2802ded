#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# Every verdict of `millrace doctor`, by a server that is made ill in that way, and cured by the
# remedy: where that is SQL, as it is printed. What takes a standby or a restart is in
# doctor_standby.bats; figures that no server can be brought to here are passed in by tests/sql/doctor.sql.
# The last test compares what was seen with the list of docs/doctor.md.

bats_require_minimum_version 1.5.0
load ../lib/server
load ../lib/doctor
backend= # of open_transaction
load ../lib/pgbouncer

setup_file()
{
    export MR_SEEN=$BATS_FILE_TMPDIR/seen
    # fsync is off but for the test of it: hundreds of files are made here
    private_server ill --listen -o max_connections=40 -o max_locks_per_transaction=160 \
        -o superuser_reserved_connections=30 -o max_prepared_transactions=5 -o wal_level=replica -o archive_mode=on \
        -o archive_command=true
    "$MR_BIN" migrate >/dev/null
    sql 'create role shop login'
}

teardown_file()
{
    remove_private_server
}

setup()
{
    use_db postgres
}

# ---- before the first job --------------------------------------------------------------------------

@test "upkeep that nobody does, and a clock that went back" {
    well upkeep 'maintain() has not run yet, and there was no job yet'
    sql "select millrace.enqueue('k')" >/dev/null
    says upkeep critical 'maintain() has never run*' '*millrace.maintain()*'
    sql 'select count(*) from millrace.maintain()' >/dev/null
    well upkeep 'maintain() ran * s ago'
    well clock '* UTC'
    says_later clock warning '-10 seconds' '*times * ahead of it: the clock went back'
    says_later clock critical '-2 hours' '*the clock went back'
    says_later upkeep warning '2 minutes' 'maintain() ran * ago'
    says_later upkeep critical '1 hour' 'maintain() ran 60 min ago'
    well upkeep
}

# ---- settings --------------------------------------------------------------------------------------

@test "settings with one wrong value" {
    local name bad verdict
    while read -r name bad verdict; do
        set_system "$name" "$bad"
        says "$name" "$verdict" "$bad: *" "alter system set $name = *"
        follow "$name"
        well "$name"
        [ "$name" != fsync ] || { sql 'alter system reset fsync' && sql 'select pg_reload_conf()' >/dev/null; }
    done <<'TABLE'
fsync               off  critical
full_page_writes    off  warning
synchronous_commit  off  warning
autovacuum          off  critical
track_counts        off  critical
jit                 on   note
TABLE
}

@test "settings of a user or a database, which the server's do not change" {
    sql 'alter role shop set synchronous_commit = false'
    says synchronous_commit warning 'on; off for role shop: jobs *' 'alter role shop reset synchronous_commit -- *'
    follow synchronous_commit
    well synchronous_commit on
    sql "alter database postgres set synchronous_commit = 'off'"
    says synchronous_commit warning 'off; off for database postgres: *' 'alter database postgres reset *'
    sql 'alter role shop in database postgres set synchronous_commit = off'
    says synchronous_commit warning '*; off for database postgres, role shop in database postgres: *'
    follow synchronous_commit
    says synchronous_commit warning 'on; off for role shop in database postgres: *'
    follow synchronous_commit
    well synchronous_commit on
    sql 'alter database template1 set synchronous_commit = off'
    well synchronous_commit on
    sql 'alter database template1 reset synchronous_commit'
}

@test "archiving that fails, and archiving with nothing to do it" {
    well archiving 'archive_mode on'
    set_system archive_command "''"
    says archiving critical 'archive_mode on, but no archive_command: WAL is kept until there is one' "alter system set archive_command = *"
    set_system archive_command "'false'"
    sql 'create table wal_one (); select pg_switch_wal()' >/dev/null
    wait_until 60 says archiving critical '* failures, the last * ago at *: WAL is kept until it succeeds' 'Look for archive_command *'
    set_system archive_command "'true'"
    sql 'create table wal_two (); select pg_switch_wal()' >/dev/null
    well archiving
}

@test "checkpoints that are forced" {
    local i
    well checkpoints 'max_wal_size 1GB, checkpoint_timeout 5min, *'
    for i in {1..25}; do
        printf 'create table forced_%d ();\ncheckpoint;\n' "$i"
    done | psql -X -q -v ON_ERROR_STOP=1
    wait_until 20 says checkpoints warning '* forced in * s' "alter system set max_wal_size = '8192 MB'*"
    follow checkpoints
    well checkpoints 'max_wal_size 8GB, *, 0 by time and 0 forced in *'
}

# ---- who holds the horizon -------------------------------------------------------------------------

@test "a transaction that has written and is left open" {
    open_transaction "select millrace.enqueue('held')"
    well transactions "1 open, the oldest: pid $backend ($PGUSER, held_*), idle in transaction for * s, has written: holds segments of the log"
    says_later transactions warning '10 minutes' "1 open, the oldest: pid $backend *for 10 min, has written*" "select pg_terminate_backend($backend)*"
    says_later transactions critical '2 hours' "*pid $backend *for 2 h, has written*"
    says 'idle in transaction' note '1 sessions, pid *; * is off' 'alter system set idle_in_transaction_session_timeout*'
    says_later 'idle in transaction' warning '10 minutes' "1 sessions, pid $backend for 10 min; *" "*pg_terminate_backend($backend)"
    # the remedy ends the session, and sees to it that the next one does not last
    follow 'idle in transaction'
    close_transaction
    well 'idle in transaction' '0 sessions; idle_in_transaction_session_timeout is 300000 ms'
    well transactions 'none open'
    sql 'alter system reset idle_in_transaction_session_timeout' && sql 'select pg_reload_conf()' >/dev/null
}

@test "a snapshot that is held by a reader: only vacuum minds" {
    open_transaction 'set transaction isolation level repeatable read; select 1'
    well transactions "1 open, the oldest: pid $backend *reads: keeps vacuum from dead rows"
    says_later transactions note '10 minutes' "*pid $backend *"
    says_later transactions warning '2 hours' "*pid $backend *"
    sql "$(check transactions '2 hours' | sed 's/.* -> //; s/;.*//')" >/dev/null
    close_transaction
    well transactions 'none open'
}

@test "a prepared transaction" {
    well 'prepared transactions' none
    sql "begin; select millrace.enqueue('k'); prepare transaction 'it''s mine'" >/dev/null
    says 'prepared transactions' note "1, the oldest: 'it''s mine' of $PGUSER in postgres for * s; holds segments of the log" "rollback prepared 'it''s mine' -- or commit prepared 'it''s mine', *"
    says_later 'prepared transactions' warning '10 minutes' '*'
    says_later 'prepared transactions' critical '2 hours' '*'
    follow 'prepared transactions'
    well 'prepared transactions' none
}

@test "a replication slot that nobody reads" {
    well 'replication slots' none
    sql "select pg_create_physical_replication_slot('gone', true)" >/dev/null
    says 'replication slots' warning "1, WAL kept: * by 'gone'; inactive: 'gone'" "select pg_drop_replication_slot('gone') -- *"
    follow 'replication slots'
    well 'replication slots' none
}

@test "dead rows that vacuum may not remove, few and a million" {
    well 'dead rows'
    sql 'alter table millrace.schedule set (autovacuum_enabled = off)' && sql 'alter table millrace.turn_doubt set (autovacuum_enabled = off)'
    open_transaction 'set transaction isolation level repeatable read; select 1'
    sql "select millrace.schedule('busy', '@daily', 'k')" >/dev/null
    sql "do 'begin for i in 1..12000 loop update millrace.schedule set set_at = now(); end loop; end'"
    wait_until 30 says 'dead rows' note '1 tables, the worst: schedule with 1* dead rows and 1 live ones, vacuumed *' 'vacuum millrace.schedule -- once what holds *'
    # what is rolled back is dead, too
    sql "begin; insert into millrace.turn_doubt (queue_id, order_key, turn_no) select 1, 'k', g from generate_series(1, 1000100) g; rollback"
    wait_until 30 says 'dead rows' warning '2 tables, the worst: turn_doubt with 1000100 dead rows and 0 live ones, *' 'vacuum millrace.turn_doubt -- *'
    close_transaction
    follow 'dead rows'
    # a look at a page may have cleaned the few
    [[ $(check 'dead rows') == ok:* ]] || follow 'dead rows'
    well 'dead rows'
    sql "select millrace.unschedule('busy')" >/dev/null
}

# ---- connections and who may do what ---------------------------------------------------------------

# idle_sessions N: so many sessions of the superuser, in all
idle_sessions()
{
    local i
    for ((i = ${#idlers[@]}; i < $1; i++)); do
        PGAPPNAME=idler psql -X -q -d postgres -c 'select pg_sleep(300)' 3>&- >/dev/null 2>&1 &
        idlers+=($!)
    done
    wait_until 10 eval "[ \"\$(sql \"select count(*) from pg_stat_activity where application_name = 'idler'\")\" = $1 ]"
}

end_idle_sessions()
{
    psql -X -q -d postgres -c "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'idler'" >/dev/null
    wait "${idlers[@]}" || true
    idlers=()
}

@test "connections that run out" {
    idlers=()
    well connections '1 of 10 in use'
    idle_sessions 7
    says connections warning '8 of 10 in use' 'alter system set max_connections = 50 -- it takes a restart*'
    idle_sessions 8
    says connections critical '9 of 10 in use'
    end_idle_sessions
    well connections '1 of 10 in use'
}

@test "an owner who is not a superuser, and does not see the sessions of others" {
    idlers=()
    sql 'create role keeper login createrole' && sql 'create database kept owner keeper'
    sql "alter role keeper password '$PGPASSWORD'"
    local super=$PGUSER
    PGUSER=keeper use_db kept
    "$MR_BIN" migrate >/dev/null
    says sight note 'keeper does not see the times and states of sessions of other users' 'grant pg_read_all_stats to keeper'
    well functions '*, owned by keeper'
    # they are counted all the same
    PGUSER=$super idle_sessions 7
    says connections warning '8 of 10 in use'
    PGUSER=$super end_idle_sessions
    local grant
    grant=$(check sight)
    PGUSER=$super sql "${grant##* -> }"
    well sight 'keeper sees the sessions of other users'
}

@test "roles that are lost, loose, without rights or without users" {
    says roles note 'no user has one of the four: *' 'grant millrace_producer to shop; *'
    sql 'create role mailer'
    follow roles
    well roles '1 users have one'
    sql 'revoke millrace_reader from millrace_worker'
    says roles critical 'not members as they should be: millrace_worker of millrace_reader' 'Run `millrace migrate --again`*'
    "$MR_BIN" migrate --again
    well roles
    sql 'revoke execute on function millrace.health() from millrace_reader'
    says roles critical 'without their grants: millrace_reader'
    [ "$("$MR_BIN" migrate)" = 'up to date' ]
    "$MR_BIN" migrate --again
    well roles
    sql 'alter role millrace_admin rename to former_admin'
    says roles critical 'missing: millrace_admin'
    "$MR_BIN" migrate --again
    well roles
    # the other database knows the old one
    sql 'drop owned by millrace_admin' && sql 'drop role millrace_admin'
    sql 'alter role former_admin rename to millrace_admin'
}

@test "functions that are open, loose or of a stranger" {
    says functions note '*, owned by postgres, a superuser' 'Fine on a server of its own.*'
    sql 'grant execute on function millrace.purge(text, text) to public'
    says functions critical 'everybody may call: millrace.purge(text,text)' 'Run `millrace migrate --again`*'
    "$MR_BIN" migrate --again
    says functions note '*'
    sql 'alter function millrace.purge(text, text) reset search_path'
    says functions critical 'security definer without a pinned search_path: millrace.purge(text,text)'
    "$MR_BIN" migrate --again
    says functions note '*'
    sql 'alter function millrace.purge(text, text) owner to shop'
    says functions warning 'not owned by the owner of the schema: millrace.purge(text,text)' 'alter function millrace.purge(text,text) owner to postgres'
    follow functions
    says functions note '*'
}

# ---- the schema ------------------------------------------------------------------------------------

@test "functions of another program, functions to be installed again, a schema of another cluster" {
    well program "version * the schema's functions are its own *"
    sql "update millrace.schema_functions set checksum = 'x', program_version = '99.0'"
    says program warning '* (99.0)' 'Use the newer program.'
    sql "update millrace.schema_functions set program_version = '0.0.9'"
    says program warning 'version * are other ones (0.0.9)' 'Run `millrace migrate`.'
    "$MR_BIN" migrate >/dev/null
    well program
    sql 'delete from millrace.schema_functions'
    says schema warning '*have to be installed again' 'Run `millrace migrate`.'
    "$MR_BIN" migrate >/dev/null
    well schema
    sql 'update millrace.home set system_id = system_id + 1'
    says schema critical 'restored from another cluster: every function refuses (MR004)*' 'Run `millrace migrate`.'
    "$MR_BIN" migrate >/dev/null
    well schema
}

@test "payloads that were made without lz4, in one partition" {
    [ "$(sql "select 'lz4' = any (enumvals) from pg_settings where name = 'default_toast_compression'")" = t ] ||
        skip 'this server has no lz4: MR_PGBIN chooses one from 14 on that is built with it'
    well compression
    sql 'alter table millrace.job_3 alter column payload_args set compression pglz'
    sql 'alter table millrace.dead alter column payload_blob set compression pglz'
    says compression note 'payloads of 2 columns are compressed with pglz*' 'select millrace.use_lz4() -- *'
    follow compression
    well compression
    sql "select millrace.enqueue('k', jsonb_build_object('a', repeat('x', 100000)))" >/dev/null
    sql "select millrace.purge('default')" >/dev/null
}

@test "a schedule whose time zone the server does not know" {
    "$MR_BIN" cron set nightly '0 2 * * *' k --timezone Europe/Berlin >/dev/null
    well 'time zones'
    sql "update millrace.schedule set zone_name = 'Mars/Base'"
    says 'time zones' warning "* known; unknown ones of schedules: 'Mars/Base'" 'Install the package tzdata*'
    "$MR_BIN" cron set nightly '0 2 * * *' k --timezone Europe/Berlin >/dev/null
    well 'time zones'
    "$MR_BIN" cron remove nightly >/dev/null
}

# ---- the log and the queues ------------------------------------------------------------------------

@test "a backlog, and nobody who takes it" {
    sql "select count(*) from millrace.enqueue_many('k', array_fill('{}'::jsonb, array[150]), 'deep')" >/dev/null
    says depth warning "over warn_depth or full: 'deep' (150 pending, oldest * s)"
    sql "select count(*) from millrace.enqueue_many('k', array_fill('{}'::jsonb, array[1100]), 'deep')" >/dev/null
    says depth critical "over critical_depth: 'deep' (1250 pending, oldest * s)" 'More workers*'
    well workers '0 took jobs in the last minute'
    says_later workers warning '2 minutes' "nobody takes the jobs of 'deep' (1250, oldest 2 min)" 'Start workers*'
    "$MR_BIN" pause deep
    says_later workers note '2 minutes' "paused, with jobs that wait: 'deep' *" '`millrace resume QUEUE`*'
    "$MR_BIN" resume deep
    sql "create function work_off(job jsonb) returns void language sql as ''"
    "$MR_BIN" work deep --sql work_off --until-empty >/dev/null 2>&1
    well depth
    well workers '1 took jobs in the last minute'
}

@test "dead letters" {
    well 'dead letters'
    sql "select count(*) from millrace.enqueue_many('k', array_fill('{}'::jsonb, array[103]), 'mail')" >/dev/null
    bury 3
    says 'dead letters' note "in the last hour: 'mail' 3" '`millrace dead list` *'
    bury 100
    says 'dead letters' warning "in the last hour: 'mail' 103"
    sql "select millrace.set_queue('mail', '{\"dead_max\": 120}')" >/dev/null
    says_later 'dead letters' warning '2 hours' "near their dead_max, the oldest are removed then: 'mail' 103 of 120"
    "$MR_BIN" dead replay --queue mail >/dev/null
    well 'dead letters'
}

bury()
{
    sql "select millrace.finish(c.lease, jsonb_agg(jsonb_build_object('id', c.id, 'outcome', 'failed', 'error', 'gone', 'retry', false))) from millrace.claim('mail', 'w', $1) c group by c.lease" >/dev/null
}

@test "schedules that are late, and one whose job is refused" {
    "$MR_BIN" cron set hourly '0 * * * *' k --queue full >/dev/null
    well schedules '1 active'
    says_later schedules warning '3 hours' "should have fired: 'hourly'" 'Run `millrace serve` with the role maintain*'
    sql "select millrace.set_queue('full', '{\"depth_limit\": 1}')" >/dev/null
    sql "select millrace.enqueue('k', queue => 'full')" >/dev/null
    # three hours of upkeep, by its own clock
    sql "select millrace.schedule_due(clock_timestamp() + interval '3 hours', 100)" >/dev/null
    says schedules warning "their last job could not be enqueued: 'hourly'" '`millrace cron list` shows the error.'
    "$MR_BIN" cron list | grep -q full
    sql "select millrace.purge('full')" >/dev/null
    sql "select millrace.schedule_due(clock_timestamp() + interval '3 hours 2 minutes', 100)" >/dev/null
    well schedules '1 active'
}

@test "segments that a queue pins, some and all" {
    sql "select millrace.set_queue('pinned', '{\"retention\": \"1 second\"}')" >/dev/null
    sql "select millrace.pause('pinned')"
    well segments '* of 16 segments in use'
    # days of upkeep at once, by its own clock; compaction is what a live queue has against it
    some_days 1 5
    says_later segments warning '30 days' "*pinned by queues *'pinned'*" '*Resume or purge the queues named*'
    some_days 6 15
    says_later segments critical '30 days' "*pinned by queues *'pinned'*"
    sql "select millrace.resume('pinned')"
    sql 'select millrace.purge(queue) from millrace.queues' >/dev/null
    # a queue in which nothing happens holds segments until upkeep has passed by, which takes a few at a time
    minute=0
    wait_until 60 a_round_later
}

# A round of upkeep after a month, a minute after the last, and whether that was enough.
a_round_later()
{
    minute=$((minute + 1))
    sql "select count(*) from millrace.maintain_at(clock_timestamp() + interval '30 days' + $minute * interval '1 minute')" >/dev/null
    later_is segments '30 days' 'ok: * of 16 segments in use -> null'
}

some_days()
{
    local day
    for ((day = $1; day <= $2; day++)); do
        printf "select millrace.enqueue('k', queue => 'pinned');\nselect millrace.rotate(clock_timestamp() + %d * interval '20 hours');\n" "$day"
    done | psql -X -q -v ON_ERROR_STOP=1 >/dev/null
}

# ---- the client's side -----------------------------------------------------------------------------

@test "a pooler in between" {
    well pooler 'none in between'
    start_pgbouncer
    says pooler note 'one stands between this program and the server' '*pooler*'
    [ "$(PGDATABASE=postgres "$MR_BIN" doctor --json | jq '[.checks[] | select(.evidence | startswith("could not"))] | length')" = 0 ]
    stop_pgbouncer
    eval "$("$MR_ROOT/tools/pgserver" env "$MR_SERVER")"
}

@test "a blob store that cannot be used, and payloads that nobody carries" {
    well payloads 'no queue moves its payloads to a blob store'
    sql "select millrace.set_queue('carried', '{\"offload_delay\": \"1 minute\"}')"
    says payloads warning "nobody carries the payloads of 'carried'" '*MILLRACE_BLOBS*'
    sql "select millrace.offload_turn('somewhere:1')" >/dev/null
    well payloads "of 'carried', carried by somewhere:1"
    sql "select millrace.drop_queue('carried')"
    well 'blob store' 'none is named by MILLRACE_BLOBS'
    MILLRACE_BLOBS='s3://jobs?endpoint=http://127.0.0.1:1' AWS_ACCESS_KEY_ID=a AWS_SECRET_ACCESS_KEY=b says 'blob store' warning 'cannot be used: *'
    MILLRACE_BLOBS=nowhere says 'blob store' warning 'cannot be used: not the address of a blob store*' 'Write s3://*'
}

@test "a host whose clock is wrong" {
    [ -z "${SANITIZE:-}" ] || skip 'a sanitizer has to be loaded before a clock of our own: run it without SANITIZE'
    well 'clock of this host'
    # a clock of this program's own, by so many seconds off
    printf '%s\n' '#define _GNU_SOURCE' '#include <stdlib.h>' '#include <sys/syscall.h>' '#include <time.h>' '#include <unistd.h>' \
        'int clock_gettime(clockid_t id, struct timespec *now) { int code = (int)syscall(SYS_clock_gettime, id, now);' \
        'if (id == CLOCK_REALTIME) now->tv_sec += atoi(getenv("CLOCK_OFF")); return code; }' >"$BATS_TEST_TMPDIR/clock.c"
    "${CC:-cc}" -shared -fPIC -o "$BATS_TEST_TMPDIR/clock.so" "$BATS_TEST_TMPDIR/clock.c"
    CLOCK_OFF=5 LD_PRELOAD=$BATS_TEST_TMPDIR/clock.so says 'clock of this host' note "the server's is [45] s behind" 'Let chrony*'
    CLOCK_OFF=-3600 LD_PRELOAD=$BATS_TEST_TMPDIR/clock.so says 'clock of this host' warning "the server's is * ahead"
    well 'clock of this host'
}

# Says what doctor says where the server's directory lies on a disk of its own that is full to $1 per
# cent: in a namespace that only this command sees.
with_disk()
{
    # shellcheck disable=SC2016  # for the shell inside
    unshare --mount bash -c 'mount -t tmpfs -o size=10m,mode=755 none "$1" && dd if=/dev/zero of="$1/ballast" bs=1024 count=$(($2 * 10240 / 100)) status=none && exec "$3" doctor --json' \
        - "$MR_SERVER/data" "$1" "$MR_BIN" | jq -r '.checks[] | select(.topic == "disk") | "\(.verdict): \(.evidence) -> \(.remedy)"'
}

@test "a disk that fills" {
    unshare --mount mount -t tmpfs none /mnt 2>/dev/null || skip 'no disk can be mounted here: run it as root, in a container with CAP_SYS_ADMIN'
    is_said "$(with_disk 50)" 'ok: 50 % of 0.0 GB free at * -> null'
    is_said "$(with_disk 85)" 'warning: 15 % of * -> Make room*' && seen disk warning
    is_said "$(with_disk 95)" 'critical: 5 % of * -> Make room*' && seen disk critical
    # Over the loopback the server is on this host where its process is: not in a container's eyes.
    is_said "$(MILLRACE_DSN="host=127.0.0.1 port=$PGPORT user=$PGUSER dbname=postgres" unshare --pid --fork --mount-proc "$MR_BIN" doctor --json |
        jq -r '.checks[] | select(.topic == "disk") | "\(.verdict): \(.evidence)"')" 'note: not known: the server is not known to be on this host'
    seen disk note
}

# ---- all of them -----------------------------------------------------------------------------------

# "topic: verdict" for each cell of the page's table that is not empty, and `ok` for each row.
documented()
{
    awk -F ' *[|] *' '/^## The checks/ { on = 1 } on && /^\| `/ {
        n = split($2, topics, /`, `|`/)
        for (i = 2; i < n + (n == 2); i++) {
            if (topics[i] == "") continue
            print topics[i] ": ok"
            if ($4 != "") print topics[i] ": note"
            if ($5 != "") print topics[i] ": warning"
            if ($6 != "") print topics[i] ": critical"
        }
    }' "$MR_ROOT/docs/doctor.md"
}

@test "every verdict that the page has was seen, and no other; every check is on the page" {
    [ "$(grep -c . <"$MR_SEEN")" -gt 60 ] || skip 'not all of this file was run: run it without a filter'
    {
        # those of the other file
        sed -nE "s/.*(says|says_later|seen|well) ('([^']+)'|([a-z_]+)) ?(ok|note|warning|critical)?.*/\\3\\4: \\5/p" "$BATS_TEST_DIRNAME/doctor_standby.bats" | sed 's/: $/: ok/'
        # passed in as figures, in tests/sql/doctor.sql: a server before 13 has no schema of Millrace's, ten
        # million transactions take minutes, and the zones of a host are all there
        printf '%s\n' 'server version: critical' 'standby feedback: warning' 'time zones: note'
        "$MR_BIN" doctor --json | jq -r '.checks[] | "\(.topic): \(.verdict)"'
    } >>"$MR_SEEN"
    [[ $(command -v unshare) && $(grep -c '^disk: ' "$MR_SEEN") -gt 1 ]] || printf '%s\n' 'disk: note' 'disk: warning' 'disk: critical' >>"$MR_SEEN"
    [ -z "${SANITIZE:-}" ] || printf '%s\n' 'clock of this host: note' 'clock of this host: warning' >>"$MR_SEEN"
    diff -u <(documented | sort -u) <(sort -u "$MR_SEEN")
}
