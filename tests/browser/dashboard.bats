#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# The dashboard in a browser: every page and every action, against a daemon and a server.

bats_require_minimum_version 1.5.0
load ../lib/server
load ../lib/daemon
load ../lib/api
load lib/browser

setup_file() { start_browser; }
teardown_file() { stop_browser; }

setup()
{
    need_browser
    fresh_db
    psql -X -q -v ON_ERROR_STOP=1 -f "$MR_ROOT/tests/browser/seed.sql" >/dev/null
    api_up
}

teardown()
{
    end_daemons
    [ -z "${PGDATABASE:-}" ] || drop_db
}

@test "a token signs in, from the address or by hand" { browse sign_in; }
@test "the overview has the database's figures, and they move" { browse overview; }
@test "a queue is paused, resumed, set, purged, dropped" { browse queue; }
@test "jobs are found, page by page" { browse jobs; }
@test "a job's story in every status, and what can be done with it" { browse job; }
@test "dead letters are replayed and purged" { browse dead; }
@test "schedules, batches, workers, system" { browse schedules; }
@test "hostile texts stay texts" { browse hostile; }
@test "a reader is told what it may not do" { browse roles; }
@test "every page on a phone, in the dark, by keyboard, and for axe" { browse looks; }
