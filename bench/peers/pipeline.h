// SPDX-License-Identifier: PostgreSQL
//
// Prepared statements on a pipelined session: a step is one or more statements and their
// commit, sent without waiting; results are received in the order of the steps.

#ifndef MILLRACE_BENCH_PIPELINE_H
#define MILLRACE_BENCH_PIPELINE_H

#include <libpq-fe.h>

// A session on the database of PGDATABASE, in pipeline mode once pipeline_begin() was called.
PGconn *pipeline_open(void);
void pipeline_begin(PGconn *conn);

void pipeline_prepare(PGconn *conn, const char *name, const char *statement);

struct argument {
    const char *value;
    int length; // of a binary value; 0 for text
};

void pipeline_send(PGconn *conn, const char *name, int count, const struct argument *arguments);
void pipeline_commit(PGconn *conn);

// The next statement's result, to be cleared by the caller.
PGresult *pipeline_receive(PGconn *conn);
void pipeline_receive_commit(PGconn *conn);

// A statement, its commit and their results, thrown away.
void pipeline_run(PGconn *conn, const char *name, int count, const struct argument *arguments);

// From now on the session hears of a channel.
void pipeline_listen(PGconn *conn, const char *channel);

// Sleeps until a notification has come, at most timeout_ms.
void pipeline_wait(PGconn *conn, int timeout_ms);

#endif
