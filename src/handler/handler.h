// SPDX-License-Identifier: PostgreSQL
//
// What runs jobs: one kind of handler a file, each behind the same operations, all on one libuv
// loop. A handler knows jobs and outcomes; leases, claims and the database are the worker's.

#ifndef MILLRACE_HANDLER_HANDLER_H
#define MILLRACE_HANDLER_HANDLER_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/err.h"
#include "client/worker.h"

enum handler_kind {
    HANDLER_EXEC,
    HANDLER_RUN,
    HANDLER_HTTP,
    HANDLER_SQL,
    HANDLER_PLUGIN,
};

// Strings are borrowed for the life of the handler.
struct handler_options {
    enum handler_kind kind;
    const char *name;   // of the worker, for logs and MILLRACE_WORKER
    const char *target; // command line, URL, function, or shared object[:symbol]
    const char *dsn;    // sql: the worker's own
    bool pooler;        // sql
    int concurrency;
    int batch;             // in one claim; sql: in one call or transaction; 0: 100
    int64_t timeout_ms;    // of a job that has none of its own; 0: none
    bool per_batch;        // sql
    bool procedure;        // sql: call it outside of a transaction
    bool private_networks; // http: may call addresses that are not public
    const char *secret;    // http: signs the body
};

// The end of a job. Moves the outcome's content out.
typedef void handler_settle_fn(void *arg, struct held_job *held, struct outcome *outcome);

struct handler_env {
    uv_loop_t *loop;
    handler_settle_fn *settle;
    void (*roomier)(void *arg); // room() has grown without a job having ended
    report_fn *report;          // see worker_report()
    void *arg;
};

struct handler;

struct handler_ops {
    const char *name;
    // Starts nothing that could run a job yet. Fails with MR_ECONFIG for what can be seen now
    // (no such command, bad URL), MR_ENOMEM, MR_EIO.
    int (*open)(const struct handler_options *options, const struct handler_env *env,
                struct handler **ret, struct mr_error *err);
    int (*room)(struct handler *handler);
    void (*start)(struct handler *handler, struct held_job *const *jobs, int count);
    // See worker_ops.drop.
    void (*drop)(struct handler *handler, struct held_job *held);
    // See worker_ops.cancel.
    void (*cancel)(struct handler *handler, struct held_job *held);
    // No job is running. Ends children and connections; calls `closed` on the loop when all is
    // gone and the memory is freed.
    void (*close)(struct handler *handler, void (*closed)(void *arg), void *arg);
};

// Every implementation's struct begins with this.
struct handler {
    const struct handler_ops *ops;
};

const struct handler_ops *handler_ops_of(enum handler_kind kind);

extern const struct handler_ops handler_exec;
extern const struct handler_ops handler_run;
extern const struct handler_ops handler_http;
extern const struct handler_ops handler_sql;
extern const struct handler_ops handler_plugin;

// ---- what handlers share ----

// A line of stderr or stdout that reaches the log, at most; more is cut and said so.
#define HANDLER_LINE_MAX (8 * 1024)
// An answer of a child or a server, at most.
#define HANDLER_ANSWER_MAX (8 * 1024 * 1024)

#endif
