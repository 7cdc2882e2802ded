// SPDX-License-Identifier: PostgreSQL
//
// The library's calls about dead letters: arguments are checked here, the work is the backend's.
// See queue_ops.h.

#include "client/mr_conn.h"
#include "client/queue_ops.h"
#include "client/request.h"

enum { LIST_DEFAULT = 50, LIST_MAX = 200 };

static int wrong(mr_error *err, const char *what, const char *hint)
{
    mr_error_set(err, MR_EUSAGE, "%s", what);
    mr_error_hint(err, "%s", hint);
    return MR_EUSAGE;
}

static const struct queue_ops *backend(const mr_conn *conn, mr_error *err)
{
    if (!conn) {
        wrong(err, "no connection was given", "Make one with mr_conn_open() or mr_conn_wrap().");
        return NULL;
    }
    return mr__conn_queue(conn);
}

static const char *name_of(const char *queue)
{
    return queue ? queue : "default";
}

static int give(int code, int64_t number, int64_t *ret)
{
    if (code == 0 && ret) {
        *ret = number;
    }
    return code;
}

int mr_list_dead(mr_conn *conn, const char *queue, const char *kind, int limit, char **ret,
                 mr_error *err)
{
    const struct queue_ops *ops = backend(conn, err);

    if (!ops) {
        return MR_EUSAGE;
    }
    if (limit < 0 || limit > LIST_MAX) {
        mr_error_set(err, MR_EUSAGE, "limit is %d", limit);
        mr_error_hint(err, "Give a number from 1 to %d, or 0 for %d.", LIST_MAX, LIST_DEFAULT);
        return MR_EUSAGE;
    }
    return ret ? ops->list_dead(conn, name_of(queue), kind, limit ? limit : LIST_DEFAULT, ret, err)
               : wrong(err, "no place was given for the dead letters", "Give ret.");
}

int mr_replay(mr_conn *conn, int64_t id, mr_error *err)
{
    const struct queue_ops *ops = backend(conn, err);

    return ops ? ops->replay(conn, id, err) : MR_EUSAGE;
}

int mr_replay_all(mr_conn *conn, const char *queue, const char *kind, int max_jobs,
                  int64_t *ret_done, mr_error *err)
{
    const struct queue_ops *ops = backend(conn, err);
    int64_t done = 0;

    if (!ops) {
        return MR_EUSAGE;
    }
    if (max_jobs < 0) {
        return wrong(err, "max_jobs is negative", "Give a number from 1, or 0 for all.");
    }
    int code = ops->replay_all(conn, name_of(queue), kind, max_jobs, &done, err);
    return give(code, done, ret_done);
}

int mr_purge_dead(mr_conn *conn, const char *queue, int64_t older_than_ms, int64_t *ret_done,
                  mr_error *err)
{
    const struct queue_ops *ops = backend(conn, err);
    int64_t done = 0;

    if (!ops) {
        return MR_EUSAGE;
    }
    int code = request_check_ms(older_than_ms, "older_than_ms", err);
    if (code == 0) {
        code = ops->purge_dead(conn, name_of(queue), older_than_ms, &done, err);
    }
    return give(code, done, ret_done);
}
