#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# Backends killed in the midst of captured transactions: afterwards each row that is there has its job, and each job its row.

load ../lib/server

setup()
{
    private_server capture -o shared_buffers=64MB -o restart_after_crash=on
    "$MR_BIN" migrate >/dev/null
    sql "create table notes (id bigserial primary key, writer int, body text);
         create table keyed (id bigserial primary key, writer int, body text);
         select millrace.capture('notes', 'n', 'note');
         select millrace.capture('keyed', 'k', 'note', unique_on => '{id}')"
}
teardown() { remove_private_server; }

# One writer: single rows, many rows, savepoints, rollbacks; again after each crash, until told.
writer()
{
    until [ -e "$MR_SCRATCH/enough" ]; do
        psql -X -q -v ON_ERROR_STOP=1 -v w="$1" >/dev/null 2>&1 <<'SQL' || sleep 0.05
set application_name = 'writer';
insert into notes (writer, body) select :w, repeat('x', i) from generate_series(1, 700) i;
begin;
insert into notes (writer) values (:w);
insert into keyed (writer) values (:w), (:w);
savepoint s;
insert into notes (writer) select :w from generate_series(1, 100);
rollback to s;
insert into keyed (writer) select :w from generate_series(1, 600);
commit;
begin;
insert into notes (writer) select :w from generate_series(1, 50);
insert into keyed (writer) select :w from generate_series(1, 50);
rollback;
insert into notes (writer) values (:w);
SQL
    done
}

answers() { sql 'select 1'; }

grown() { [ "$(sql 'select (select last_value from notes_id_seq) + (select last_value from keyed_id_seq)')" -gt "$1" ]; }

crashes_are() { [ "$(grep -c 'was terminated by signal 9' "$MR_SERVER/log")" -eq "$1" ]; }

# kill_one N: SIGKILL to one that is inside a statement, the N-th; one that was about to end by itself does not count.
kill_one()
{
    local pid
    pid=$(sql "select pid from pg_stat_activity where application_name = 'writer' and state = 'active' order by random() limit 1")
    [ -n "$pid" ] && kill -9 "$pid" && wait_until 10 crashes_are "$1"
}

@test "rows and jobs match after six kills" {
    local kills i pids=() place
    for i in 1 2 3; do
        writer "$i" 3>&- &
        pids+=($!)
    done
    for ((kills = 0; kills < 6; )); do
        wait_until 60 answers
        place=$(sql 'select (select last_value from notes_id_seq) + (select last_value from keyed_id_seq)')
        wait_until 60 grown "$((place + RANDOM % 1500))"
        if kill_one $((kills + 1)); then
            kills=$((kills + 1))
        fi
    done
    wait_until 60 answers
    touch "$MR_SCRATCH/enough"
    wait "${pids[@]}"
    crashes_are 6
    for i in 'notes n' 'keyed k'; do
        # shellcheck disable=SC2086  # two words
        set -- $i
        [ "$(sql "select count(*) > 1000 from $1")" = t ]
        run sql "select 'row without a job', id from (select id from $1 except all select (args -> 'new' ->> 'id')::bigint from millrace.jobs where queue = '$2') a
                  union all
                 select 'job without a row', id from (select (args -> 'new' ->> 'id')::bigint as id from millrace.jobs where queue = '$2' except all select id from $1) b limit 5"
        [ -z "$output" ] || { echo "$output"; return 1; }
        [ "$(sql "select millrace.depth('$2') = (select count(*) from $1)")" = t ]
    done
    # Nobody was told that a row was missed.
    [ "$(sql 'select sum(missed) from millrace.captures')" -eq 0 ]
}
