// SPDX-License-Identifier: PostgreSQL
//
// Jobs of one lease that a thread of the sql handler runs: their function's effects and their
// completion in one transaction.
//
// 1. A job's effects are committed if and only if its outcome is: finish() is in the same
//    transaction and refuses a lease that is lost (MR001), which rolls everything back.
// 2. A job that raises is rolled back to its savepoint and fails; the others are not touched.
// 3. A failure that concerns the whole transaction is tried again where that can help (deadlock,
//    lost connection), SQL_TRIES times for a group; otherwise, or then, the group is halved, down
//    to single jobs, so that the one that is to blame fails alone.
// 4. When the answer to a commit is lost nobody knows. The jobs are released under their lease:
//    that works only if they are not finished, and the lease's row decides between the two.
// 5. A job that was cancelled is not called any more. One whose function is running has its
//    statement cancelled and fails alone, as one that raises does; a batch is called again without
//    it. Once finish() has begun it is too late.

#ifndef MILLRACE_HANDLER_SQL_GROUP_H
#define MILLRACE_HANDLER_SQL_GROUP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "client/outcome.h"
#include "client/pool.h"
#include "client/worker.h"
#include "handler/sql_session.h"

// How often a group's transactions are tried again.
#define SQL_TRIES 3
// After this a transaction takes no further jobs: what is done is committed.
#define SQL_TRANSACTION_MS 1000
// How long a function that has no timeout may wait for one lock.
#define SQL_LOCK_MS 30000
// For finish and commit.
#define SQL_FINISH_MS 30000

enum sql_mode {
    SQL_UNKNOWN, // a function or a procedure: the server knows
    SQL_FUNCTION,
    SQL_BATCH,
    SQL_PROCEDURE,
};

// What is called, and how. Shared by all threads.
struct sql_target {
    atomic_int mode;                       // enum sql_mode
    struct buf function, batch, procedure; // statements
    int64_t timeout_ms;                    // of a job that has none of its own; 0: none
};

// `name` as in sql_name_quote(). Fails with MR_ECONFIG, MR_ENOMEM.
int sql_target_init(struct sql_target *target, const char *name, enum sql_mode mode,
                    int64_t timeout_ms, struct mr_error *err);
void sql_target_done(struct sql_target *target);

struct sql_job {
    struct held_job *held;
    struct outcome outcome;
    atomic_bool cancelled; // set by the loop
    bool decided;          // not called again: its answer was refused
};

struct sql_group {
    struct pool_work work;
    struct sql_target *target;
    atomic_bool dropped; // stop
    int64_t took_us;
    int count;
    struct sql_job jobs[];
};

// *ret is freed with sql_group_free(). Jobs must be of one lease. NULL: out of memory.
struct sql_group *sql_group_new(struct sql_target *target, struct held_job *const *jobs, int count);
void sql_group_free(struct sql_group *group);

// Runs it to the end: every job's outcome is set, OUTCOME_ELSEWHERE where it is committed.
void sql_group_run(struct sql_group *group, struct sql_session *session);

#endif
