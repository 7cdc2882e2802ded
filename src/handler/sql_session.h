// SPDX-License-Identifier: PostgreSQL
//
// A connection of one thread of the sql handler. It waits, but never longer than it was told, and
// not when the work is to be stopped.

#ifndef MILLRACE_HANDLER_SQL_SESSION_H
#define MILLRACE_HANDLER_SQL_SESSION_H

#include <libpq-fe.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "client/call.h"

struct sql_session;

// How long a connection is tried for; a server that restarts is back by then.
#define SQL_CONNECT_MS 30000
// How long a server may take to say that it has cancelled a statement.
#define SQL_CANCEL_MS 5000
// Statements in one round trip at most.
#define SQL_STEPS_MAX 8

// Connects nothing yet. `dsn` is borrowed. NULL: out of memory.
struct sql_session *sql_session_new(const char *dsn);
void sql_session_free(struct sql_session *session);

// From now on, when `stop` returns true, a statement is cancelled and a wait ends early. It is
// asked several times a second, on the thread of the session. NULL: nothing stops it.
typedef bool sql_stop_fn(const void *arg);
void sql_session_heed(struct sql_session *session, sql_stop_fn *stop, const void *arg);

// Connects unless that is done, with growing pauses, for up to SQL_CONNECT_MS. Fails with
// MR_ECONNECT.
int sql_session_connect(struct sql_session *session, struct mr_error *err);
// Closes the connection; the next sql_session_connect() makes a new one.
void sql_session_reset(struct sql_session *session);

// Waits, unless it is to stop.
void sql_session_pause(struct sql_session *session, int64_t ms);

// A statement with its parameters, whose kind does not count; NULL: none.
struct sql_step {
    const char *statement;
    const struct call *params;
};

// Runs statements in one round trip; after the first that fails the rest is not run. *ret is the
// result of the last one, the caller's; may be NULL. After `limit_ms` (0: no limit) what runs is
// cancelled. Fails with the code of the server's error, MR_ECONNECT among them, after which the
// connection is closed.
int sql_session_run(struct sql_session *session, const struct sql_step *steps, int count,
                    int64_t limit_ms, PGresult **ret, struct mr_error *err);

// Whether the server can make sense of a statement, without running it. Fails the same way.
int sql_session_check(struct sql_session *session, const char *statement, struct mr_error *err);

// Rolls back whatever is open.
void sql_session_rollback(struct sql_session *session);

#endif
