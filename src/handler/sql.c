// SPDX-License-Identifier: PostgreSQL
//
// The handler that calls a function in the database, on threads with a connection each; what a
// thread does is in sql_group.h.

#include <stdlib.h>

#include "base/clock.h"
#include "client/conn.h"
#include "client/pool.h"
#include "handler/handler.h"
#include "handler/sql_group.h"
#include "handler/sql_session.h"

#define BATCH_DEFAULT 100
// A thread takes as many jobs as it does in this time; others may have time for the rest.
#define GROUP_US 500000

struct sql {
    struct handler handler;
    struct handler_options options;
    struct handler_env env;
    struct sql_target target;
    struct pool *pool;
    uv_poll_t poll; // of the pool's descriptor
    int busy;       // groups that have been handed in
    int64_t job_us; // what a job takes, as a moving average; 0: not known yet
    void (*closed)(void *arg);
    void *closed_arg;
};

// ---- on the threads ----

static void *session_begin(void *arg)
{
    const struct sql *sql = arg;

    return sql_session_new(sql->options.dsn);
}

static void session_end(void *thread_state)
{
    sql_session_free(thread_state);
}

static void run_group(struct pool_work *work, void *thread_state)
{
    struct sql_group *group = (struct sql_group *)work;
    int64_t began_us = clock_us();

    if (thread_state) {
        sql_group_run(group, thread_state);
        group->took_us = clock_us() - began_us;
        return;
    }
    for (int i = 0; i < group->count; i++) {
        outcome_fail(&group->jobs[i].outcome, "out of memory", 0, false);
    }
}

// ---- on the loop ----

static void settle_group(struct sql *sql, struct sql_group *group)
{
    int64_t job_us = group->took_us / group->count + 1;

    sql->busy--;
    sql->job_us = sql->job_us ? (sql->job_us + job_us) / 2 : job_us;
    for (int i = 0; i < group->count; i++) {
        struct held_job *held = group->jobs[i].held;
        held->user = NULL;
        sql->env.settle(sql->env.arg, held, &group->jobs[i].outcome);
    }
    sql_group_free(group);
}

static void on_done(uv_poll_t *poll, int status, int events)
{
    struct sql *sql = poll->data;
    struct pool_work *work;

    (void)status;
    (void)events;
    while ((work = pool_collect(sql->pool))) {
        settle_group(sql, (struct sql_group *)work);
    }
}

static int batch_size(const struct sql *sql)
{
    return sql->options.batch > 0 ? sql->options.batch : BATCH_DEFAULT;
}

// How many jobs a thread takes. A batch function is there for batches, whatever they take.
static int group_size(const struct sql *sql)
{
    int64_t size = sql->job_us ? GROUP_US / sql->job_us + 1 : 1;

    return sql->options.per_batch || size > batch_size(sql) ? batch_size(sql) : (int)size;
}

static int sql_room(struct handler *handler)
{
    struct sql *sql = (struct sql *)handler;
    int threads = sql->options.concurrency - sql->busy;

    return threads > 0 ? threads * group_size(sql) : 0;
}

static void start_group(struct sql *sql, struct held_job *const *jobs, int count)
{
    struct sql_group *group = sql_group_new(&sql->target, jobs, count);

    for (int i = 0; i < count; i++) {
        AUTO_OUTCOME outcome;
        outcome_init(&outcome);
        jobs[i]->user = group;
        if (!group) {
            outcome_fail(&outcome, "out of memory", 0, false);
            sql->env.settle(sql->env.arg, jobs[i], &outcome);
        }
    }
    if (group) {
        group->work.run = run_group;
        sql->busy++;
        pool_submit(sql->pool, &group->work);
    }
}

// A batch function gets the whole batch, otherwise the threads that are free share the jobs.
static void sql_start(struct handler *handler, struct held_job *const *jobs, int count)
{
    struct sql *sql = (struct sql *)handler;
    int threads = sql->options.concurrency - sql->busy;
    int groups = sql->options.per_batch || threads < 1 ? 1 : threads;
    int size = (count + groups - 1) / groups;

    size = size < batch_size(sql) ? size : batch_size(sql);
    for (int at = 0; at < count; at += size) {
        start_group(sql, jobs + at, size < count - at ? size : count - at);
    }
}

// The jobs of a group share a lease: what stops one of them stops all.
static void sql_drop(struct handler *handler, struct held_job *held)
{
    struct sql_group *group = held->user;

    (void)handler;
    if (group) {
        atomic_store(&group->dropped, true);
    }
}

// The thread looks: a job that it has not come to is not begun, the statement of one that runs is
// cancelled.
static void sql_cancel(struct handler *handler, struct held_job *held)
{
    struct sql_group *group = held->user;

    (void)handler;
    for (int i = 0; group && i < group->count; i++) {
        if (group->jobs[i].held == held) {
            atomic_store(&group->jobs[i].cancelled, true);
        }
    }
}

// ---- life ----

static void on_poll_closed(uv_handle_t *handle)
{
    struct sql *sql = handle->data;
    void (*closed)(void *) = sql->closed;
    void *arg = sql->closed_arg;

    pool_free(sql->pool);
    sql_target_done(&sql->target);
    free(sql);
    closed(arg);
}

static void sql_close(struct handler *handler, void (*closed)(void *arg), void *arg)
{
    struct sql *sql = (struct sql *)handler;

    sql->closed = closed;
    sql->closed_arg = arg;
    uv_close((uv_handle_t *)&sql->poll, on_poll_closed);
}

static enum sql_mode mode_of(const struct handler_options *options)
{
    return options->procedure ? SQL_PROCEDURE : options->per_batch ? SQL_BATCH : SQL_UNKNOWN;
}

static int open_parts(struct sql *sql, struct mr_error *err)
{
    const struct handler_options *options = &sql->options;
    const struct pool_options pool = {
        .threads = options->concurrency,
        .thread_begin = session_begin,
        .thread_end = session_end,
        .arg = sql,
    };

    if (options->procedure && options->per_batch) {
        mr_error_set(err, MR_ECONFIG, "procedure and per_batch exclude each other");
        mr_error_hint(err, "A procedure is called once for each job.");
        return MR_ECONFIG;
    }
    int code =
        sql_target_init(&sql->target, options->target, mode_of(options), options->timeout_ms, err);
    code = code ? code : conn_choose_dsn(options->dsn, &sql->options.dsn, err);
    return code ? code : pool_new(&pool, &sql->pool, err);
}

static int sql_open(const struct handler_options *options, const struct handler_env *env,
                    struct handler **ret, struct mr_error *err)
{
    struct sql *sql = calloc(1, sizeof(*sql));

    if (!sql) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    sql->handler.ops = &handler_sql;
    sql->options = *options;
    sql->env = *env;
    int code = open_parts(sql, err);
    if (code) {
        sql_target_done(&sql->target);
        free(sql);
        return code;
    }
    uv_poll_init(env->loop, &sql->poll, pool_fd(sql->pool));
    sql->poll.data = sql;
    uv_poll_start(&sql->poll, UV_READABLE, on_done);
    *ret = &sql->handler;
    return 0;
}

const struct handler_ops handler_sql = {
    .name = "sql",
    .open = sql_open,
    .room = sql_room,
    .start = sql_start,
    .drop = sql_drop,
    .cancel = sql_cancel,
    .close = sql_close,
};
