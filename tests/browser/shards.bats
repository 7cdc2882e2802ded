#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# The dashboard of a daemon that serves several shards, one of them down meanwhile.

# shellcheck disable=SC2154 # addresses and databases are set elsewhere
bats_require_minimum_version 1.5.0
load ../lib/server
load ../lib/daemon
load ../lib/api
load ../lib/shards
load lib/browser

setup_file() { start_browser; }
teardown_file() { stop_browser; }

setup()
{
    need_browser
    new_shards 3
    for i in 0 1 2; do
        on "$i" "select millrace.set_queue('mail', '{\"max_attempts\": 1}'); select millrace.enqueue('send', queue => 'mail', ref => 'shard $i') from generate_series(0, $i);
                 select millrace.enqueue('bad', queue => 'failing'); select millrace.set_queue('failing', '{}')" >/dev/null
        on "$i" "do \$\$ declare c record; begin select * into c from millrace.claim('failing', 'w', 1); perform millrace.fail(c.lease, c.id, 'no luck', retry => false); end \$\$"
    done
    api_up
}

teardown()
{
    end_daemons
    drop_databases
}

@test "all shards together, one of them, and one that is down" {
    MR_DATABASES=${databases[*]} browse shards
}
