#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
# shellcheck disable=SC2154  # api and api_conf come from api_up
#
# The dashboard recovers by itself when the daemon or the database comes back.

bats_require_minimum_version 1.5.0
load ../lib/server
load ../lib/daemon
load ../lib/api
load lib/browser

setup()
{
    need_browser
    private_server web
    "$MR_BIN" migrate >/dev/null
    psql -X -q -v ON_ERROR_STOP=1 -f "$MR_ROOT/tests/browser/seed.sql" >/dev/null
    # a port that the daemon can come back to
    api_up
    api_port=${api##*:} api_write_conf
}

teardown()
{
    end_daemons
    [ -z "${MR_SERVER:-}" ] || remove_private_server
}

@test "the daemon and the database leave and come back" {
    MR_DAEMON_PID=$(pid_of api) MR_DAEMON_CONF=$api_conf browse outages
}
