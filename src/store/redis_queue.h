// SPDX-License-Identifier: PostgreSQL
//
// Jobs on Redis: each call is one script of src/store/lua/queue, which is atomic. How they lie
// there stands at the top of common.lua.
//
// What a value means is judged here as the SQL functions judge it: the same codes, SQLSTATEs,
// messages and hints. What C can get wrong was checked before (client/request.h). What Redis does
// not do is refused by its name.
//
// 1. A job that was enqueued is there until it was completed, has expired or was purged.
// 2. A call under a lease that ended and was rescued changes nothing: MR_ELEASE.
// 3. A call whose answer was lost may have happened: see redis_link.h.

#ifndef MILLRACE_STORE_REDIS_QUEUE_H
#define MILLRACE_STORE_REDIS_QUEUE_H

#include <millrace/millrace.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/redis_link.h"

// Jobs in one script, which Redis does nothing else beside.
enum { REDIS_QUEUE_CHUNK = 1000, REDIS_QUEUE_CHUNK_MAX = 10000 };

// Whether a job may be enqueued: MR_EINVALID, or MR_EUSAGE for what needs PostgreSQL.
int redis_queue_check_job(const mr_job_spec *job, mr_error *err);

// Enqueues jobs of one queue, all or none. ret_ids may be NULL. They were checked.
int redis_queue_enqueue(struct redis_link *link, const mr_job_spec *jobs, size_t count,
                        int64_t *ret_ids, mr_error *err);

// What a claim brought. Strings belong to it.
struct redis_claim {
    redisReply *reply; // NULL: nothing
    char *lease;
    size_t count;
    int priority;
    int64_t until_us, now_us;
};
void redis_claim_done(struct redis_claim *claim);
// One of its jobs, without its queue.
int redis_claim_job(const struct redis_claim *claim, size_t at, mr_claimed_job *ret,
                    struct redis_link *link, mr_error *err);

int redis_queue_claim(struct redis_link *link, const mr_claim_options *options,
                      struct redis_claim *ret, mr_error *err);
int redis_queue_complete(struct redis_link *link, const char *const *leases, size_t lease_count,
                         const int64_t *ids, size_t count, int64_t *ret_done, mr_error *err);
int redis_queue_fail(struct redis_link *link, const char *lease, int64_t id, const char *error,
                     int64_t retry_in_ms, bool retry, const void *state, size_t state_size,
                     bool *ret_dead, mr_error *err);
int redis_queue_release(struct redis_link *link, const char *lease, const int64_t *ids,
                        size_t count, int64_t *ret_done, mr_error *err);
int redis_queue_heartbeat(struct redis_link *link, const char *lease, int64_t extend_ms,
                          int64_t *ret_until_us, mr_error *err);

struct redis_queue_stats {
    int64_t available, running, scheduled, dead;
};
// Zeros for a queue that is not there.
int redis_queue_stats(struct redis_link *link, const char *queue, struct redis_queue_stats *ret,
                      mr_error *err);

// The names of all queues, sorted; the caller frees each and the array.
int redis_queue_names(struct redis_link *link, char ***ret, size_t *ret_count, mr_error *err);

// Dead letters of a queue as millrace.list_dead() shows them: {"jobs":[...],"complete":...}, at
// most `limit` and 16 MB, or one; `complete` is false where there may be more. A text of the
// caller's, from malloc(). `kind` may be NULL.
int redis_queue_list_dead(struct redis_link *link, const char *queue, const char *kind, int limit,
                          char **ret, mr_error *err);
int redis_queue_replay(struct redis_link *link, int64_t id, mr_error *err);
// max_jobs 0: all.
int redis_queue_replay_all(struct redis_link *link, const char *queue, const char *kind,
                           int64_t max_jobs, int64_t *ret, mr_error *err);
// older_ms 0: all.
int redis_queue_purge_dead(struct redis_link *link, const char *queue, int64_t older_ms,
                           int64_t *ret, mr_error *err);

#endif
