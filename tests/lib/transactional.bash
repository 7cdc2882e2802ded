# SPDX-License-Identifier: PostgreSQL
# shellcheck shell=bash
# shellcheck disable=SC2154  # q, the queue, is the test's
#
# The workers of examples/transactional, after lib/server:
#
#   setup_file() { fresh_db; make_ledger; }
#   worker_of python; "${worker[@]}" "$q" ...     the command; skips a test where it cannot run

example=$MR_ROOT/examples/transactional

# The table of the example, without its key on purpose: a job that is charged twice is to show as
# two rows and not as an error, which would keep the second away. Jobs have two attempts.
make_ledger()
{
    psql -X -q -v ON_ERROR_STOP=1 -f "$example/ledger.sql"
    sql 'alter table ledger drop constraint ledger_pkey'
    sql "select millrace.set_retry('charge', max_attempts => 2, base => '100 ms', factor => 1, jitter => 0)"
}

worker_of()
{
    case $1 in
    python) python_worker ;;
    node) node_worker ;;
    esac
}

python_worker()
{
    need_psycopg2
    worker=("$python" "$example/worker.py")
}

node_worker()
{
    local packages=$MR_BUILD/examples/transactional
    command -v node >/dev/null || skip 'Node is not installed: tools/deps test'
    node -e 'const [a, b] = process.versions.node.split("."); process.exit(a > 18 || (a == 18 && b >= 3) ? 0 : 1)' ||
        skip 'Node is older than 18.3: install a newer one'
    [ -e "$packages/installed" ] || skip "npm's pg is not installed: tools/npm build"
    # Node looks for packages beside the file.
    cp "$example/worker.js" "$example/package.json" "$BATS_TEST_TMPDIR"
    ln -s "$packages/node_modules" "$BATS_TEST_TMPDIR/node_modules"
    worker=(node "$BATS_TEST_TMPDIR/worker.js")
}

# One job with these args; prints its id.
enqueue()
{
    sql "select millrace.enqueue('charge', '$1', queue => '$q')"
}

# enqueue_many COUNT [SECONDS]: jobs that charge 1, 2 and so on, and take so long.
enqueue_many()
{
    sql "select count(*) from millrace.enqueue_many('charge', array(
           select jsonb_build_object('amount', n, 'sleep', ${2:-0}) from generate_series(1, $1) n), '$q')" >/dev/null
}

# Rows, jobs that have one, and the sum: 3|3|6 after enqueue_many 3.
ledger()
{
    sql 'select count(*), count(distinct job_id), coalesce(sum(amount), 0) from ledger'
}

rows()
{
    sql 'select count(*) from ledger'
}

more_rows_than()
{
    [ "$(rows)" -gt "$1" ]
}

# How many jobs of the queue have a status.
jobs_with()
{
    sql "select count(*) from millrace.jobs where queue = '$q' and status = '$1'"
}

# Works until nothing is left, not even for later; for wait_until.
worked_off()
{
    "${worker[@]}" "$q" --until-empty 2>>"$BATS_TEST_TMPDIR/log" || return
    [ "$(sql "select count(*) from millrace.jobs where queue = '$q' and status not in ('completed', 'dead')")" -eq 0 ]
}

# What became of a job: the outcomes of its attempts, its status, its last error.
story_is()
{
    local story
    story=$(sql "select string_agg(a ->> 'outcome', ' '), millrace.job($1) ->> 'status', millrace.job($1) ->> 'error'
                   from jsonb_array_elements(millrace.job($1) -> 'attempts') a")
    # shellcheck disable=SC2053 # a pattern
    [[ $story == $2 ]] || { echo "job $1: $story"; return 1; }
}
