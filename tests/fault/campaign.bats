#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# tests/soak/campaign.bats in short: each of relay, workers, Redis, S3, PostgreSQL and upkeep is killed once or twice.

bats_require_minimum_version 1.5.0
load ../lib/server
load ../lib/daemon
load ../lib/redis
load ../lib/s3
load ../lib/campaign

setup() { need_s3; }
teardown() { campaign_end; }

@test "everything is killed in turn: enqueued = completed + dead, no orphan is left" {
    campaign 20
}
