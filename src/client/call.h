// SPDX-License-Identifier: PostgreSQL
//
// The calls of the SQL core that the program and the library make: a table row each, and
// parameters in the form that libpq wants. Everything that is said to the database stands in
// call.c.

#ifndef MILLRACE_CLIENT_CALL_H
#define MILLRACE_CLIENT_CALL_H

#include <libpq-fe.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

enum call_kind {
    CALL_ENQUEUE,
    CALL_ENQUEUE_MANY,
    CALL_ENQUEUE_HEAVY, // many, with state and blob
    CALL_ENQUEUE_JOBS,
    CALL_CLAIM,
    CALL_COMPLETE,
    CALL_COMPLETE_MANY,
    CALL_FAIL,
    CALL_FINISH,
    CALL_REQUEUE,
    CALL_RELEASE,
    CALL_HEARTBEAT,
    CALL_PROGRESS,
    CALL_WAIT_CHANNEL,
    CALL_LISTEN,   // one parameter, the channel, put into the statement
    CALL_UNLISTEN, // the same
    CALL_MAINTAIN,
    CALL_SET_QUEUE,
    CALL_SET_RETRY,
    CALL_SCHEDULE,
    CALL_BRIDGE_APPLY,
    CALL_BRIDGE_BEGIN,
    CALL_BRIDGE_FLOOR,
    CALL_OFFLOAD_TURN,
    CALL_OFFLOAD_TAKE,
    CALL_OFFLOAD_DONE,
    CALL_OFFLOAD_DUE,
    CALL_OFFLOAD_RESTORE,
    CALL_OFFLOAD_DOOMED,
    CALL_OFFLOAD_REMOVED,
    CALL_OFFLOAD_UNKNOWN,
    CALL_OFFLOAD_SPAN,
    CALL_PAYLOAD_POLICY,
    CALL_TRANSPORT,
    CALL_SHARD,
    CALL_SHARD_HOLDS,
    CALL_DEPTH,
    CALL_JOB,
    CALL_OUTCOME,
    CALL_REPLAY,
    CALL_REPLAY_ALL,
    CALL_PURGE_DEAD,
    CALL_MOVE_TARGET,
    CALL_MOVE_BEGIN,
    CALL_SHADOW_BEGIN,
    CALL_SHADOW_CHECK,
    CALL_MOVE_TAKE, // its columns from the second on are parameters of the next
    CALL_MOVE_ARRIVE,
    CALL_MOVE_DONE,
    CALL_MOVE_GIVE_BACK,
    CALL_CACHE_SET,
    CALL_CACHE_GET,
    CALL_CACHE_GET_MANY,
    CALL_CACHE_DELETE,
    CALL_CACHE_DELETE_LIKE,
    CALL_CACHE_STATS,
    CALL_RATE_LIMIT,
    CALL_TRY_LOCK,
    CALL_UNLOCK,
    CALL_LOCK_GUARD,
    CALL_LOCK_LEASE,
    CALL_UNLOCK_LEASE,
    // the HTTP API: the first column is the body of the answer
    CALL_API_ENQUEUE_JOBS, // but for this one, whose rows are ids
    CALL_API_ENQUEUE_ONCE,
    CALL_API_JOB,
    CALL_API_JOB_BY_REF,
    CALL_API_LIST_JOBS,
    CALL_API_CANCEL,
    CALL_API_PAUSE_JOB,
    CALL_API_RESUME_JOB,
    CALL_API_RUN_NOW,
    CALL_API_CHANGE_JOB,
    CALL_API_OUTCOME,
    CALL_API_OVERVIEW,
    CALL_API_HISTORY,
    CALL_API_QUEUES,
    CALL_API_QUEUE_STORY,
    CALL_API_CHANGE_QUEUE,
    CALL_API_DROP_QUEUE,
    CALL_API_PURGE,
    CALL_API_CLAIM, // the second column is the lease
    CALL_API_COMPLETE,
    CALL_API_FAIL,
    CALL_API_REQUEUE,
    CALL_API_RELEASE,
    CALL_API_HEARTBEAT,
    CALL_API_FINISH,
    CALL_API_PROGRESS,
    CALL_API_LIST_DEAD,
    CALL_API_DEAD_GROUPS,
    CALL_API_REPLAY,
    CALL_API_REPLAY_ALL,
    CALL_API_PURGE_DEAD,
    CALL_API_LIST_SCHEDULES,
    CALL_API_SCHEDULE_STORY,
    CALL_API_CRON_TIMES,
    CALL_API_SCHEDULE,
    CALL_API_UNSCHEDULE,
    CALL_API_SCHEDULE_RUN,
    CALL_API_SCHEDULE_ENABLE,
    CALL_API_SCHEDULE_DISABLE,
    CALL_API_LIST_BATCHES,
    CALL_API_BATCH,
    CALL_API_BATCH_BEGIN,
    CALL_API_BATCH_ADD,
    CALL_API_BATCH_SEAL,
    CALL_API_LIST_WORKERS,
    CALL_API_SYSTEM,
    CALL_API_DOCTOR,
    CALL_API_METRICS,
    CALL_KINDS,
};

// Parameters at most: enqueue has 18.
enum { CALL_PARAMS_MAX = 18 };

struct call_info {
    const char *name;      // of the prepared statement
    const char *statement; // with $1...
    int params;
    bool binary; // the format of the result
    bool async;  // lost in a crash it is only a redelivery, a wake-up or a figure: see
                 // call_statement()
};

extern const struct call_info call_infos[CALL_KINDS];

// A call with its parameters. Values live in `store`.
struct call {
    enum call_kind kind;
    int count;
    size_t offset[CALL_PARAMS_MAX]; // into store; CALL_NULL for null
    int length[CALL_PARAMS_MAX];
    int format[CALL_PARAMS_MAX]; // 0 text, 1 binary
    struct buf store;
};

#define CALL_NULL     SIZE_MAX
#define CALL_SIZE_MAX (1000 * 1000 * 1000)

void call_init(struct call *call, enum call_kind kind);
void call_done(struct call *call);

// The next parameter.
void call_null(struct call *call);
void call_text(struct call *call, const char *text);                    // NULL: null
void call_text_sized(struct call *call, const char *text, size_t size); // without a zero byte in it
void call_number(struct call *call, int64_t number);
void call_real(struct call *call, double number);
void call_bool(struct call *call, bool value);
void call_ms(struct call *call, int64_t ms);                       // an interval; 0 or less: null
void call_bytes(struct call *call, const void *data, size_t size); // data NULL: null
void call_numbers(struct call *call, const int64_t *numbers,
                  size_t count); // bigint[]; count 0: null
void call_texts(struct call *call, const char *const *texts, size_t count); // text[]
// jsonb[] from JSON texts.
void call_json_array(struct call *call, const char *const *texts, size_t count);

struct call_part {
    const void *data; // NULL: null
    size_t size;
};
// bytea[]; null where all are.
void call_bytes_array(struct call *call, const struct call_part *parts, size_t count);

// 0, MR_ENOMEM or MR_ELIMIT: whether all parameters are there.
int call_status(const struct call *call, struct mr_error *err);
// For calls that belong together and are larger than CALL_SIZE_MAX: MR_ELIMIT.
int call_too_large(struct mr_error *err);

// Fills arrays of CALL_PARAMS_MAX for PQsendQueryParams() and the like; they point into `call`.
void call_values(const struct call *call, const char **ret_values, int *ret_lengths,
                 int *ret_formats);

// Appends the statement for a transaction of its own, which does not wait for the disk where it
// need not. Never for a transaction in which others write.
void call_statement(enum call_kind kind, struct buf *ret);

// Runs the call on a connection of somebody else's and waits. *ret is the caller's.
int call_exec(const struct call *call, PGconn *pg, PGresult **ret, struct mr_error *err);

#define AUTO_CALL __attribute__((cleanup(call_done))) struct call

#endif
