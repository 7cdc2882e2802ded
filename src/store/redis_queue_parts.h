// SPDX-License-Identifier: PostgreSQL
//
// What the files of the queue on Redis share: redis_queue.c produces and works, redis_queue_dead.c
// looks and buries, redis_queue_check.c refuses. Nobody else includes this.

#ifndef MILLRACE_STORE_REDIS_QUEUE_PARTS_H
#define MILLRACE_STORE_REDIS_QUEUE_PARTS_H

#include "base/buf.h"
#include "store/redis_args.h"
#include "store/redis_queue.h"

// Names of queues, kinds and workers, in bytes; the SQL functions have the same limit.
#define QUEUE_NAME_MAX 200
// mr:queue:{NAME}, where three bytes may stand for one.
#define QUEUE_PREFIX   "mr:queue:"
#define QUEUE_KEY_SIZE (3 * QUEUE_NAME_MAX + 16)
// An id is the queue's number times this, and a count.
#define QUEUE_IDS      INT64_C(1000000000000)
#define QUEUE_REGISTRY "mr:queues"

// A bad argument, with an SQLSTATE: MR_EINVALID.
int queue_refuse(mr_error *err, const char *sqlstate, const char *hint, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
int queue_refuse_lease(const char *lease, mr_error *err);
int queue_refuse_unknown(const char *queue, mr_error *err);

int queue_check_utf8(const char *text, mr_error *err); // NULL passes
int queue_check_name(const char *what, const char *name, mr_error *err);
int queue_check_number(const char *what, int64_t value, int64_t least, int64_t most, mr_error *err);
int queue_check_ms(const char *what, int64_t ms, mr_error *err); // 0 passes
int queue_check_json(const char *json, mr_error *err);           // NULL passes

// Reads what run_at says; checked before.
int64_t queue_run_at_ms(const char *run_at);

// The first key of a queue. Its name is at most QUEUE_NAME_MAX long.
void queue_key(const char *queue, char ret[QUEUE_KEY_SIZE]);

// Reads a whole number, which a script writes as text where it may be large; not 0: it is none.
int queue_number_of(const redisReply *reply, int64_t *ret);
// Whether a script refused, with this word.
bool queue_is_refusal(const redisReply *reply, const char *word);

#endif
