// SPDX-License-Identifier: PostgreSQL
//
// The calls about jobs on Redis: arguments are checked here as on PostgreSQL, the work is done in
// store/redis_queue.c. See queue_ops.h. Many jobs at once are in bulk.c.
//
// Not here, and refused by name: finish, requeue, progress, job, wait. Nothing is known of a job
// that has ended, so there is no result either.

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "client/batch.h"
#include "client/mr_conn.h"
#include "client/queue_ops.h"
#include "client/request.h"
#include "store/redis_queue.h"

static int enqueue(mr_conn *conn, const mr_job_spec *from, int64_t *ret_id, mr_error *err)
{
    mr_job_spec job;
    int code;

    if ((code = request_read_job(from, &job, err)) || (code = redis_queue_check_job(&job, err))) {
        return code;
    }
    return redis_queue_enqueue(mr__conn_redis(conn), &job, 1, ret_id, err);
}

// ---- claiming ----

// What the strings of a batch lie in.
struct claim_memory {
    struct redis_claim claim;
    char *queue;
};

static void free_memory(void *arg)
{
    struct claim_memory *memory = arg;

    redis_claim_done(&memory->claim);
    free(memory->queue);
    free(memory);
}

static int make_batch(struct redis_link *link, struct claim_memory *memory, mr_batch **ret,
                      mr_error *err)
{
    const struct redis_claim *claim = &memory->claim;
    size_t count = claim->count;
    mr_batch *batch = NULL;
    mr_claimed_job *jobs = NULL;
    int code = batch_of(count, (claim->until_us - claim->now_us) / 1000, memory, free_memory,
                        &batch, &jobs, err);

    for (size_t i = 0; code == 0 && i < count; i++) {
        code = redis_claim_job(claim, i, &jobs[i], link, err);
        jobs[i].queue = memory->queue;
    }
    if (code) {
        mr_batch_free(batch);
        return code;
    }
    *ret = batch;
    return 0;
}

static int claim(mr_conn *conn, const mr_claim_options *from, mr_batch **ret, mr_error *err)
{
    struct redis_link *link = mr__conn_redis(conn);
    mr_claim_options options;
    int code = request_read_claim(from, &options, err);

    if (code) {
        return code;
    }
    struct claim_memory *memory = calloc(1, sizeof(*memory));
    if (!memory || !(memory->queue = strdup(options.queue ? options.queue : "default"))) {
        free(memory);
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    if ((code = redis_queue_claim(link, &options, &memory->claim, err))) {
        free_memory(memory);
        return code;
    }
    return make_batch(link, memory, ret, err);
}

// ---- under a lease ----

static int give_count(int code, int64_t number, int *ret)
{
    if (code == 0 && ret) {
        *ret = number > INT_MAX ? INT_MAX : (int)number;
    }
    return code;
}

static int complete(mr_conn *conn, const char *lease, const int64_t *ids, size_t count,
                    const char *result, int *ret_done, mr_error *err)
{
    int64_t done = 0;
    int code;

    if ((code = request_check_lease(lease, err)) || (code = request_check_ids(ids, count, err))) {
        return code;
    }
    if (result) {
        return mr__conn_needs_pg("a result", err);
    }
    code = redis_queue_complete(mr__conn_redis(conn), &lease, 1, ids, count, &done, err);
    return give_count(code, done, ret_done);
}

static int complete_many(mr_conn *conn, const char *const *leases, size_t count, int *ret_done,
                         mr_error *err)
{
    int64_t done = 0;
    int code = 0;

    for (size_t i = 0; code == 0 && i < count; i++) {
        code = request_check_lease(leases ? leases[i] : NULL, err);
    }
    if (code == 0 && count > 0) {
        code = redis_queue_complete(mr__conn_redis(conn), leases, count, NULL, 0, &done, err);
    }
    return give_count(code, done, ret_done);
}

// The limit is that of a new job's state.
static int check_state(const void *state, size_t state_size, mr_error *err)
{
    mr_job_spec job = MR_JOB_SPEC_INIT;

    job.kind = "any";
    job.state = state;
    job.state_size = state_size;
    return redis_queue_check_job(&job, err);
}

static int fail(mr_conn *conn, const char *lease, int64_t id, const char *error,
                int64_t retry_in_ms, int no_retry, const void *state, size_t state_size,
                int *ret_dead, mr_error *err)
{
    bool dead = false;
    int code = request_check_fail(lease, error, retry_in_ms, state, state_size, err);

    if (code == 0 && (code = check_state(state, state_size, err)) == 0) {
        code = redis_queue_fail(mr__conn_redis(conn), lease, id, error, retry_in_ms, !no_retry,
                                state, state_size, &dead, err);
    }
    return give_count(code, dead, ret_dead);
}

static int release(mr_conn *conn, const char *lease, const int64_t *ids, size_t count,
                   int *ret_done, mr_error *err)
{
    int64_t done = 0;
    int code;

    if ((code = request_check_lease(lease, err)) || (code = request_check_ids(ids, count, err))) {
        return code;
    }
    code = redis_queue_release(mr__conn_redis(conn), lease, ids, count, &done, err);
    return give_count(code, done, ret_done);
}

static int heartbeat(mr_conn *conn, const char *lease, int64_t extend_ms, int64_t *ret_until_us,
                     mr_error *err)
{
    int64_t until_us = 0;
    int code;

    if ((code = request_check_lease(lease, err)) ||
        (code = request_check_ms(extend_ms, "extend_ms", err))) {
        return code;
    }
    code = redis_queue_heartbeat(mr__conn_redis(conn), lease, extend_ms, &until_us, err);
    if (code == 0 && ret_until_us) {
        *ret_until_us = until_us;
    }
    return code;
}

// Nobody can cancel a job there, so none was.
static int heartbeat_cancelled(mr_conn *conn, const char *lease, int64_t extend_ms,
                               int64_t *ret_until_us, int64_t **ret_ids, size_t *ret_count,
                               mr_error *err)
{
    int code = request_check_cancelled(ret_ids, ret_count, err);

    if (code || (code = heartbeat(conn, lease, extend_ms, ret_until_us, err))) {
        return code;
    }
    *ret_ids = NULL;
    *ret_count = 0;
    return 0;
}

// ---- looking and dead letters ----

static int depth(mr_conn *conn, const char *queue, int64_t *ret, mr_error *err)
{
    struct redis_queue_stats stats = {0};
    int code = redis_queue_stats(mr__conn_redis(conn), queue ? queue : "default", &stats, err);

    if (code == 0 && ret) {
        *ret = stats.available;
    }
    return code;
}

static int list_dead(mr_conn *conn, const char *queue, const char *kind, int limit, char **ret,
                     mr_error *err)
{
    return redis_queue_list_dead(mr__conn_redis(conn), queue, kind, limit, ret, err);
}

static int replay(mr_conn *conn, int64_t id, mr_error *err)
{
    return redis_queue_replay(mr__conn_redis(conn), id, err);
}

static int replay_all(mr_conn *conn, const char *queue, const char *kind, int max_jobs,
                      int64_t *ret_done, mr_error *err)
{
    return redis_queue_replay_all(mr__conn_redis(conn), queue, kind, max_jobs, ret_done, err);
}

static int purge_dead(mr_conn *conn, const char *queue, int64_t older_than_ms, int64_t *ret_done,
                      mr_error *err)
{
    return redis_queue_purge_dead(mr__conn_redis(conn), queue, older_than_ms, ret_done, err);
}

const struct queue_ops queue_redis = {
    .enqueue = enqueue,
    .enqueue_many = bulk_enqueue_many,
    .enqueue_jobs = bulk_enqueue_jobs,
    .claim = claim,
    .complete = complete,
    .complete_many = complete_many,
    .fail = fail,
    .release = release,
    .heartbeat = heartbeat,
    .heartbeat_cancelled = heartbeat_cancelled,
    .depth = depth,
    .list_dead = list_dead,
    .replay = replay,
    .replay_all = replay_all,
    .purge_dead = purge_dead,
};
