// SPDX-License-Identifier: PostgreSQL
//
// A connection for a program that must not wait for it: connects, asks one question at a time,
// and when the database goes away tries again by itself. Driven by poll().

#ifndef MILLRACE_CLI_FEED_H
#define MILLRACE_CLI_FEED_H

#include <libpq-fe.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum feed_status {
    FEED_DOWN,       // will connect at its time
    FEED_CONNECTING, // has begun to
    FEED_READY,      // can be asked
    FEED_BUSY,       // was asked
};

// How long it waits for a connection and for an answer, and between attempts.
enum { FEED_CONNECT_MS = 10000, FEED_ANSWER_MS = 30000, FEED_RETRY_MS = 1000 };

struct feed;

// `dsn` as in conn_open(), borrowed. Fails with MR_EUSAGE, MR_ENOMEM.
int feed_new(const char *dsn, const char *application_name, struct feed **ret,
             struct mr_error *err);
void feed_free(struct feed *feed);

enum feed_status feed_status(const struct feed *feed);

// For poll(): the socket, -1 without one, and what to wait for; and at which time of clock_ms()
// feed_advance() is due in any case.
int feed_fd(const struct feed *feed);
short feed_events(const struct feed *feed);
int64_t feed_due_ms(const struct feed *feed);

// Does what can be done without waiting. Returns true when something has changed: the status, an
// answer, an error.
bool feed_advance(struct feed *feed);

// Asks; only when it is ready.
void feed_ask(struct feed *feed, const char *sql, int count, const char *const *values);

// The answer to the last question: *ret is the caller's then. Or 0 and NULL while there is none,
// or what went wrong, once.
int feed_answer(struct feed *feed, PGresult **ret, struct mr_error *err);

// Why it is down, "" when it is not.
const char *feed_trouble(const struct feed *feed);

// libpq's connection, borrowed; NULL while it is down.
const PGconn *feed_pg(const struct feed *feed);

#endif
