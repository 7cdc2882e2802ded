// SPDX-License-Identifier: PostgreSQL
//
// The library's blocking calls about jobs: each goes to the backend of the connection. See
// queue_ops.h.

#include "client/mr_conn.h"
#include "client/queue_ops.h"

// The table of the connection. NULL: there is no connection, and *err says so.
static const struct queue_ops *backend(const mr_conn *conn, mr_error *err)
{
    if (!conn) {
        mr_error_set(err, MR_EUSAGE, "no connection was given");
        mr_error_hint(err, "Make one with mr_conn_open() or mr_conn_wrap().");
        return NULL;
    }
    return mr__conn_queue(conn);
}

int mr_enqueue(mr_conn *conn, const mr_job_spec *job, int64_t *ret_id, mr_error *err)
{
    const struct queue_ops *ops = backend(conn, err);

    if (!ops || !ops->enqueue) {
        return ops ? mr__conn_needs_pg("mr_enqueue()", err) : MR_EUSAGE;
    }
    return ops->enqueue(conn, job, ret_id, err);
}

int mr_enqueue_many(mr_conn *conn, const mr_job_spec *job, const char *const *args, size_t count,
                    size_t chunk, int64_t *ret_ids, size_t *ret_done, mr_error *err)
{
    const struct queue_ops *ops = backend(conn, err);

    if (!ops || !ops->enqueue_many) {
        if (ret_done) {
            *ret_done = 0;
        }
        return ops ? mr__conn_needs_pg("mr_enqueue_many()", err) : MR_EUSAGE;
    }
    return ops->enqueue_many(conn, job, args, count, chunk, ret_ids, ret_done, err);
}

int mr_enqueue_jobs(mr_conn *conn, const mr_job_spec *jobs, size_t count, size_t chunk,
                    int64_t *ret_ids, size_t *ret_done, mr_error *err)
{
    const struct queue_ops *ops = backend(conn, err);

    if (!ops || !ops->enqueue_jobs) {
        if (ret_done) {
            *ret_done = 0;
        }
        return ops ? mr__conn_needs_pg("mr_enqueue_jobs()", err) : MR_EUSAGE;
    }
    return ops->enqueue_jobs(conn, jobs, count, chunk, ret_ids, ret_done, err);
}

int mr_claim(mr_conn *conn, const mr_claim_options *options, mr_batch **ret, mr_error *err)
{
    const struct queue_ops *ops = backend(conn, err);

    if (!ops || !ops->claim) {
        return ops ? mr__conn_needs_pg("mr_claim()", err) : MR_EUSAGE;
    }
    return ops->claim(conn, options, ret, err);
}

int mr_complete(mr_conn *conn, const char *lease, const int64_t *ids, size_t count,
                const char *result, int *ret_done, mr_error *err)
{
    const struct queue_ops *ops = backend(conn, err);

    if (!ops || !ops->complete) {
        return ops ? mr__conn_needs_pg("mr_complete()", err) : MR_EUSAGE;
    }
    return ops->complete(conn, lease, ids, count, result, ret_done, err);
}

int mr_complete_many(mr_conn *conn, const char *const *leases, size_t count, int *ret_done,
                     mr_error *err)
{
    const struct queue_ops *ops = backend(conn, err);

    if (!ops || !ops->complete_many) {
        return ops ? mr__conn_needs_pg("mr_complete_many()", err) : MR_EUSAGE;
    }
    return ops->complete_many(conn, leases, count, ret_done, err);
}

int mr_fail(mr_conn *conn, const char *lease, int64_t id, const char *error, int64_t retry_in_ms,
            int no_retry, const void *state, size_t state_size, int *ret_dead, mr_error *err)
{
    const struct queue_ops *ops = backend(conn, err);

    if (!ops || !ops->fail) {
        return ops ? mr__conn_needs_pg("mr_fail()", err) : MR_EUSAGE;
    }
    return ops->fail(conn, lease, id, error, retry_in_ms, no_retry, state, state_size, ret_dead,
                     err);
}

int mr_finish(mr_conn *conn, const char *lease, const char *outcomes, int *ret_done, mr_error *err)
{
    const struct queue_ops *ops = backend(conn, err);

    if (!ops || !ops->finish) {
        return ops ? mr__conn_needs_pg("mr_finish()", err) : MR_EUSAGE;
    }
    return ops->finish(conn, lease, outcomes, ret_done, err);
}

int mr_requeue(mr_conn *conn, const char *lease, int64_t id, const char *changes, const void *state,
               size_t state_size, const void *blob, size_t blob_size, mr_error *err)
{
    const struct queue_ops *ops = backend(conn, err);

    if (!ops || !ops->requeue) {
        return ops ? mr__conn_needs_pg("mr_requeue()", err) : MR_EUSAGE;
    }
    return ops->requeue(conn, lease, id, changes, state, state_size, blob, blob_size, err);
}

int mr_release(mr_conn *conn, const char *lease, const int64_t *ids, size_t count, int *ret_done,
               mr_error *err)
{
    const struct queue_ops *ops = backend(conn, err);

    if (!ops || !ops->release) {
        return ops ? mr__conn_needs_pg("mr_release()", err) : MR_EUSAGE;
    }
    return ops->release(conn, lease, ids, count, ret_done, err);
}

int mr_heartbeat(mr_conn *conn, const char *lease, int64_t extend_ms, int64_t *ret_until_us,
                 mr_error *err)
{
    const struct queue_ops *ops = backend(conn, err);

    if (!ops || !ops->heartbeat) {
        return ops ? mr__conn_needs_pg("mr_heartbeat()", err) : MR_EUSAGE;
    }
    return ops->heartbeat(conn, lease, extend_ms, ret_until_us, err);
}

int mr_heartbeat_cancelled(mr_conn *conn, const char *lease, int64_t extend_ms,
                           int64_t *ret_until_us, int64_t **ret_ids, size_t *ret_count,
                           mr_error *err)
{
    const struct queue_ops *ops = backend(conn, err);

    if (!ops || !ops->heartbeat_cancelled) {
        return ops ? mr__conn_needs_pg("mr_heartbeat_cancelled()", err) : MR_EUSAGE;
    }
    return ops->heartbeat_cancelled(conn, lease, extend_ms, ret_until_us, ret_ids, ret_count, err);
}

int mr_progress(mr_conn *conn, const char *lease, int64_t id, double percent, const char *note,
                mr_error *err)
{
    const struct queue_ops *ops = backend(conn, err);

    if (!ops || !ops->progress) {
        return ops ? mr__conn_needs_pg("mr_progress()", err) : MR_EUSAGE;
    }
    return ops->progress(conn, lease, id, percent, note, err);
}

int mr_depth(mr_conn *conn, const char *queue, int64_t *ret, mr_error *err)
{
    const struct queue_ops *ops = backend(conn, err);

    if (!ops || !ops->depth) {
        return ops ? mr__conn_needs_pg("mr_depth()", err) : MR_EUSAGE;
    }
    return ops->depth(conn, queue, ret, err);
}

int mr_job(mr_conn *conn, int64_t id, char **ret, mr_error *err)
{
    const struct queue_ops *ops = backend(conn, err);

    if (!ops || !ops->job) {
        return ops ? mr__conn_needs_pg("mr_job()", err) : MR_EUSAGE;
    }
    return ops->job(conn, id, ret, err);
}

int mr_wait(mr_conn *conn, int64_t id, int64_t timeout_ms, const char **ret_status,
            char **ret_result, char **ret_failure, mr_error *err)
{
    const struct queue_ops *ops = backend(conn, err);

    if (!ops || !ops->wait) {
        return ops ? mr__conn_needs_pg("mr_wait()", err) : MR_EUSAGE;
    }
    return ops->wait(conn, id, timeout_ms, ret_status, ret_result, ret_failure, err);
}
