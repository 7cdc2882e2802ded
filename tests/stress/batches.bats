#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# Batches with sixteen finishers, of which six are killed. The soak has a larger one.

load ../lib/server
load ../lib/batches

setup()
{
    fresh_db
    psql -X -q -v ON_ERROR_STOP=1 -f "$MR_ROOT/tests/stress/batches/app.sql"
}

teardown() { drop_db; }

@test "100,000 members, some die, some are cancelled: one callback of each sort, and the counts are those of the jobs" {
    batch_of 100000 7 600
    [ "$(counts)" = "$(counts_by_jobs)" ]
    [ "$(sql "select jobs = 100000 and dead >= 90 and cancelled > 0 and status = 'failed' from millrace.batches")" = t ]
    [ "$(callbacks)" = 'death end' ]
    [ "$(sql 'select count(*) from millrace.batch_note')" -eq 0 ]
}

@test "20,000 members that all complete: on_complete once" {
    batch_of 20000 -1 600
    [ "$(counts)" = '20000|20000|0|0|0' ]
    [ "$(callbacks)" = 'complete end' ]
}
