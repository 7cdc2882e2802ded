#!/usr/bin/env bats
# SPDX-License-Identifier: PostgreSQL
#
# Jobs by way of Redis, with payloads of delayed jobs and dead letters in S3, while the relay, the workers, Redis, S3, PostgreSQL and the daemon with upkeep are killed in turn: ten
# minutes, or MR_SOAK_SECONDS. What was enqueued is completed or dead, each effect happens once, and no object is left that no job names.

bats_require_minimum_version 1.5.0
load ../lib/server
load ../lib/daemon
load ../lib/redis
load ../lib/s3
load ../lib/campaign

setup() { need_s3; }
teardown() { campaign_end; }

@test "everything is killed in turn: enqueued = completed + dead, no orphan is left" {
    campaign "${MR_SOAK_SECONDS:-600}"
}
