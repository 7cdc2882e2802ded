#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# A batch of a million members, sixteen finishers, six of which are killed.

load ../lib/server
load ../lib/batches

setup()
{
    fresh_db
    psql -X -q -v ON_ERROR_STOP=1 -f "$MR_ROOT/tests/stress/batches/app.sql"
}

teardown() { drop_db; }

@test "1,000,000 members: one callback of each sort, and the counts are those of the jobs" {
    batch_of 1000000 7 7200
    [ "$(counts)" = "$(counts_by_jobs)" ]
    [ "$(sql "select jobs = 1000000 and dead >= 900 and cancelled > 0 and status = 'failed' from millrace.batches")" = t ]
    [ "$(callbacks)" = 'death end' ]
    [ "$(sql 'select count(*) from millrace.batch_note')" -eq 0 ]
}
