// SPDX-License-Identifier: PostgreSQL
//
// The database as the HTTP part sees it: calls that are answered later, over a few connections
// that mend themselves.
//
// 1. A call is answered exactly once: with a result, the server's error, MR_ECONNECT when the
//    connection broke, MR_ETIMEOUT after DATABASE_ANSWER_MS. After the last two it may have
//    happened.
// 2. While there is no connection a call is refused at once: nobody waits for a database that is
//    not there, and nothing is done twice when it comes back.
// 3. Answers run on the loop, never inside database_call().

#ifndef MILLRACE_HTTP_DATABASE_H
#define MILLRACE_HTTP_DATABASE_H

#include <libpq-fe.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/err.h"
#include "client/call.h"

#define DATABASE_ANSWER_MS 30000

struct database;

// `result` is borrowed, NULL on failure; then `err` is set.
typedef void database_answer_fn(void *arg, PGresult *result, const struct mr_error *err);

struct database_options {
    const char *dsn;
    bool pooler;
    const char *name; // for the log, where there are several; or NULL
    int connections;  // at least 2: the first is kept for single jobs
    void (*connected)(void *arg);
    void *arg;
};

// Which connections a call may take.
enum database_lane {
    DATABASE_ENQUEUE, // the first: nothing slow goes there
    DATABASE_COMMON,  // the one of the others with the least to do
    DATABASE_CLAIM, // the same; not given up after DATABASE_ANSWER_MS: a lease in an answer must be
                    // seen
};

// On failure, which is wire_new()'s, a *ret that is not NULL has to be closed all the same.
int database_new(const struct database_options *options, uv_loop_t *loop, struct database **ret,
                 struct mr_error *err);
// Fails with MR_ECONNECT, MR_ELIMIT, MR_ENOMEM; then there is no answer.
int database_call(struct database *db, enum database_lane lane, const struct call *call,
                  database_answer_fn *answer, void *arg, struct mr_error *err);
// Whether every connection stands.
bool database_connected(const struct database *db);
// Whether the server is a process of this host: see conn_same_host().
bool database_same_host(const struct database *db);
// Times that a connection was lost.
int64_t database_reconnects(const struct database *db);
// How many calls have no answer yet.
int database_pending(const struct database *db);
// Answers all that has no answer yet with MR_ECONNECT, now; what comes later is dropped.
void database_abandon(struct database *db);
// What has no answer is answered with MR_ECONNECT inside of this. `closed` follows on the loop.
void database_close(struct database *db, void (*closed)(void *arg), void *arg);

#endif
