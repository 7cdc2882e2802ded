#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# A job that goes round while figures are looked at is in one of them at every look, and in one only.

load ../lib/server

setup()
{
    fresh_db
    psql -X -q -v ON_ERROR_STOP=1 -f "$MR_ROOT/tests/stress/looking/app.sql"
}

teardown() { drop_db; }

# looks CALL: how many looks, beside a job that moves, did not find it just once; and some of them.
looks()
{
    psql -X -q -c "call app.move('q', interval '3 seconds')" 3>&- &
    local mover=$!
    sql "call app.look(\$q\$$1\$q\$)"
    wait "$mover"
    sql "select count(*), left(string_agg(distinct l.found, ' '), 500) from app.look l"
}

@test "stats: claimed, failed, promoted, rescued, released, requeued: the job is there once at each look" {
    sql "select millrace.set_queue('q', '{\"poison_limit\": 32000}'), millrace.enqueue('k', queue => 'q', max_attempts => 32000)"
    [ "$(looks "select row(s.available, s.running, s.scheduled, s.retrying, s.dead) as found, s.available + s.running + s.scheduled + s.retrying + s.dead as n from millrace.stats('q') s")" = '0|' ]
    [ "$(sql 'select count(*) > 0 from app.moved')" = t ]
}

@test "tenant_stats: the same of a tenant's job" {
    sql "select millrace.set_queue('q', '{\"fair\": true, \"poison_limit\": 32000}'), millrace.enqueue('k', queue => 'q', tenant => 't', max_attempts => 32000)"
    [ "$(looks "select row(s.available, s.running, s.scheduled, s.retrying, s.dead) as found, s.available + s.running + s.scheduled + s.retrying + s.dead as n from millrace.tenant_stats('q') s")" = '0|' ]
    [ "$(sql 'select count(*) > 0 from app.moved')" = t ]
}
