// SPDX-License-Identifier: PostgreSQL
//
// What the commands about jobs do where the address is one of Redis, and print: as much of it as
// the Redis backend has. `json`: as --json prints it.

#ifndef MILLRACE_CLI_REDIS_JOBS_H
#define MILLRACE_CLI_REDIS_JOBS_H

#include <millrace/millrace.h>
#include <stdbool.h>
#include <stdint.h>

// What a command asks for that needs PostgreSQL: refuses it by its name, MR_EUSAGE.
int redis_jobs_refuse(const char *what, struct mr_error *err);

int redis_jobs_enqueue(const char *dsn, const mr_job_spec *job, int64_t *ret_id,
                       struct mr_error *err);

// queue NULL: all.
int redis_jobs_status(const char *dsn, const char *queue, bool json, struct mr_error *err);

// queue NULL: all; `limit` of each queue.
int redis_jobs_list_dead(const char *dsn, const char *queue, const char *kind, int limit, bool json,
                         struct mr_error *err);
int redis_jobs_replay(const char *dsn, int64_t id, bool json, struct mr_error *err);
int redis_jobs_replay_all(const char *dsn, const char *queue, const char *kind, int64_t max_jobs,
                          bool json, struct mr_error *err);
int redis_jobs_purge(const char *dsn, const char *queue, int64_t older_ms, bool json,
                     struct mr_error *err);

#endif
