#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# docs/reference.md, docs/toolbox.md, docs/blobs.md, docs/moving.md and docs/scaling.md against the catalogue of an installed schema, in both directions: what is
# there is described, and what is described is there.

bats_require_minimum_version 1.5.0
load ../lib/server

setup_file()
{
    fresh_db
    export PAGE=$BATS_FILE_TMPDIR/reference.md
    cat "$MR_ROOT/docs/blobs.md" "$MR_ROOT/docs/reference.md" "$MR_ROOT/docs/toolbox.md" "$MR_ROOT/docs/moving.md" "$MR_ROOT/docs/scaling.md" >"$PAGE"
}

teardown_file()
{
    drop_db
}

# The lines of one section, by its heading.
section()
{
    awk -v name="## $1" '/^## / { on = $0 == name } on' "$PAGE"
}

# The columns $2... of the tables of a section whose first column is code, without the backticks.
table()
{
    local fields=$2
    section "$1" | sed -n 's/^| `\([a-z_0-9A-Z]*\)` |/|\1|/p' |
        awk -F ' *[|] *' -v fields="$fields" '{ n = split(fields, f, " "); for (i = 1; i <= n; i++) printf "%s%s", $f[i], i < n ? "|" : "\n" }' | sort
}

same()
{
    diff -u --label 'docs/reference.md' --label catalogue "$1" "$2"
}

@test "functions, with their parameters, defaults and results" {
    same <(awk '/^```text$/ { line = ""; on = 1; next } /^```$/ && on { print line; on = 0 } on { sub(/^ +/, " "); line = line $0 }' "$PAGE" | sort) \
        <(sql "select format('millrace.%s(%s) → %s', p.proname,
                             regexp_replace(replace(replace(replace(replace(pg_get_function_arguments(p.oid), 'timestamp with time zone', 'timestamptz'),
                                                                    'integer', 'int'), ' DEFAULT ', ' = '), 'NULL', 'null'), '::[a-z ]+(\[\])?', '', 'g'),
                             replace(replace(replace(pg_get_function_result(p.oid), 'SETOF', 'setof'), 'integer', 'int'),
                                     'timestamp with time zone', 'timestamptz'))
                 from pg_proc p
                where p.pronamespace = 'millrace'::regnamespace
                  and p.proname not in ('job_standing', 'job_logged', 'worker_list', 'capture_list', 'capture_plan', 'capture_change', 'capture_run', 'capture_put')
                  and exists (select from aclexplode(p.proacl) a where a.grantee::regrole::text like 'millrace\_%')" | sort)
}

@test "every function has a heading of its own" {
    same <(sed -n 's/^### //p' "$PAGE" | sort) <(sed -n 's/^millrace\.\([a-z_]*\)(.*/\1/p' "$PAGE" | sort)
}

@test "views and their columns" {
    same <(table Views '2 3') \
        <(sql "select c.relname, string_agg(a.attname, ', ' order by a.attnum) from pg_class c join pg_attribute a on a.attrelid = c.oid
                where c.relnamespace = 'millrace'::regnamespace and c.relkind = 'v' and a.attnum > 0 and not a.attisdropped
                  and exists (select from aclexplode(c.relacl) g where g.grantee::regrole::text like 'millrace\_%') group by 1" | sort)
}

@test "types and their columns" {
    same <(table Types '2 3') \
        <(sql "select c.relname, string_agg(a.attname, ', ' order by a.attnum) from pg_class c join pg_attribute a on a.attrelid = c.oid
                where c.relnamespace = 'millrace'::regnamespace and c.relkind = 'c' and a.attnum > 0 and not a.attisdropped
                  and exists (select from pg_proc p where p.prorettype = c.reltype and p.pronamespace = c.relnamespace
                                 and exists (select from aclexplode(p.proacl) g where g.grantee::regrole::text like 'millrace\_%'))
                group by 1" | sort)
}

@test "settings, their types, defaults and bounds" {
    same <(table 'Settings of a queue' '2 3 4 5' | sed -E 's/(strict, relaxed|hold, skip|direct, redis|true, false)$//') \
        <(sql "select setting_name, value_type, default_text,
                      least_value || ' to ' || most_value || case value_type when 'interval' then ' s' else '' end
                 from millrace.queue_setting" | sort)
    # Those of a later version are marked, and no others.
    same <(section 'Settings of a queue' | sed -n 's/^| `\([a-z_]*\)` .*| not in this version.*/\1/p' | sort) \
        <(sql 'select setting_name from millrace.queue_setting where column_name is null' | sort)
}

@test "roles and what they may call" {
    same <(table Roles '2 3') \
        <(sql "select a.grantee::regrole, string_agg(p.proname, ', ' order by p.proname) from pg_proc p, aclexplode(p.proacl) a
                where p.pronamespace = 'millrace'::regnamespace and a.grantee::regrole::text like 'millrace\_%'
                  and p.proname not in ('job_standing', 'job_logged', 'worker_list', 'capture_list', 'capture_plan', 'capture_change', 'capture_run', 'capture_put') group by 1" | sort)
}

@test "SQLSTATEs of our own" {
    same <(table Errors 2 | grep '^MR') <(grep -rhoE "errcode = 'MR[0-9]{3}'" "$MR_ROOT/sql" | grep -o 'MR[0-9]*' | sort -u)
}

@test "duties of maintain" {
    same <(table Upkeep 2) <(sql 'select duty from millrace.maintain()' | sort)
}
