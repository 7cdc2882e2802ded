// SPDX-License-Identifier: PostgreSQL
//
// The calls about jobs behind one table: what a backend does for producers and workers. mr_calls.c
// calls through the table of the connection, which is chosen with the DSN; queue_pg.c is the one
// for PostgreSQL, queue_redis.c the one for Redis, queue_shards.c the one for several PostgreSQL
// databases, which hands each call to that of PostgreSQL on a connection to one of them.
//
// A member is NULL where a backend cannot do it: the call is refused by its name. Each takes what
// the function of millrace.h with its name takes, and keeps its word; `conn` is given. Arguments
// are checked by the member, with the checks of request.h, so that both backends say the same.

#ifndef MILLRACE_CLIENT_QUEUE_OPS_H
#define MILLRACE_CLIENT_QUEUE_OPS_H

#include <millrace/millrace.h>

struct queue_ops {
    int (*enqueue)(mr_conn *conn, const mr_job_spec *job, int64_t *ret_id, mr_error *err);
    int (*enqueue_many)(mr_conn *conn, const mr_job_spec *job, const char *const *args,
                        size_t count, size_t chunk, int64_t *ret_ids, size_t *ret_done,
                        mr_error *err);
    int (*enqueue_jobs)(mr_conn *conn, const mr_job_spec *jobs, size_t count, size_t chunk,
                        int64_t *ret_ids, size_t *ret_done, mr_error *err);
    int (*claim)(mr_conn *conn, const mr_claim_options *options, mr_batch **ret, mr_error *err);
    int (*complete)(mr_conn *conn, const char *lease, const int64_t *ids, size_t count,
                    const char *result, int *ret_done, mr_error *err);
    int (*complete_many)(mr_conn *conn, const char *const *leases, size_t count, int *ret_done,
                         mr_error *err);
    int (*fail)(mr_conn *conn, const char *lease, int64_t id, const char *error,
                int64_t retry_in_ms, int no_retry, const void *state, size_t state_size,
                int *ret_dead, mr_error *err);
    int (*finish)(mr_conn *conn, const char *lease, const char *outcomes, int *ret_done,
                  mr_error *err);
    int (*requeue)(mr_conn *conn, const char *lease, int64_t id, const char *changes,
                   const void *state, size_t state_size, const void *blob, size_t blob_size,
                   mr_error *err);
    int (*release)(mr_conn *conn, const char *lease, const int64_t *ids, size_t count,
                   int *ret_done, mr_error *err);
    int (*heartbeat)(mr_conn *conn, const char *lease, int64_t extend_ms, int64_t *ret_until_us,
                     mr_error *err);
    int (*heartbeat_cancelled)(mr_conn *conn, const char *lease, int64_t extend_ms,
                               int64_t *ret_until_us, int64_t **ret_ids, size_t *ret_count,
                               mr_error *err);
    int (*progress)(mr_conn *conn, const char *lease, int64_t id, double percent, const char *note,
                    mr_error *err);
    int (*depth)(mr_conn *conn, const char *queue, int64_t *ret, mr_error *err);
    int (*job)(mr_conn *conn, int64_t id, char **ret, mr_error *err);
    int (*wait)(mr_conn *conn, int64_t id, int64_t timeout_ms, const char **ret_status,
                char **ret_result, char **ret_failure, mr_error *err);
    // Dead letters: every backend has them. mr_dead.c has checked the arguments; the queue is
    // given, limit is 1 to 200, max_jobs and older_than_ms are 0 or more, ret is given.
    int (*list_dead)(mr_conn *conn, const char *queue, const char *kind, int limit, char **ret,
                     mr_error *err);
    int (*replay)(mr_conn *conn, int64_t id, mr_error *err);
    int (*replay_all)(mr_conn *conn, const char *queue, const char *kind, int max_jobs,
                      int64_t *ret_done, mr_error *err);
    int (*purge_dead)(mr_conn *conn, const char *queue, int64_t older_than_ms, int64_t *ret_done,
                      mr_error *err);
};

extern const struct queue_ops queue_pg;
extern const struct queue_ops queue_redis;
extern const struct queue_ops queue_shards;

// Members that have files of their own: bulk.c (both backends), mr_wait.c.
int bulk_enqueue_many(mr_conn *conn, const mr_job_spec *job, const char *const *args, size_t count,
                      size_t chunk, int64_t *ret_ids, size_t *ret_done, mr_error *err);
int bulk_enqueue_jobs(mr_conn *conn, const mr_job_spec *jobs, size_t count, size_t chunk,
                      int64_t *ret_ids, size_t *ret_done, mr_error *err);
int wait_for_end(mr_conn *conn, int64_t id, int64_t timeout_ms, const char **ret_status,
                 char **ret_result, char **ret_failure, mr_error *err);

#endif
