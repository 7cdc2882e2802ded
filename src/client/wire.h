// SPDX-License-Identifier: PostgreSQL
//
// A connection that never blocks and mends itself: requests go out in a pipeline, answers come
// back in order through callbacks.
//
// 1. Every request is a transaction of its own (one pipeline sync each).
// 2. A request gets exactly one answer: a result, the server's error, or MR_ECONNECT when the
//    connection broke before its answer came; then it may or may not have happened.
// 3. Callbacks run inside wire_advance() only, and may send.
// 4. wire_fd() is one epoll descriptor for the life of the wire: socket, timer and wake-ups are
//    inside of it. Readable means: call wire_advance().
// 5. While there is no connection, requests wait. Attempts to connect are spaced out
//    (100 ms doubling to 5 s, with jitter). Name resolution blocks: libpq has no other.

#ifndef MILLRACE_CLIENT_WIRE_H
#define MILLRACE_CLIENT_WIRE_H

#include <libpq-fe.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "client/call.h"

struct wire;

// `result` is borrowed, NULL on failure; then `err` is set, else NULL.
typedef void wire_answer_fn(void *arg, PGresult *result, const struct mr_error *err);

enum wire_event {
    WIRE_CONNECTED,
    WIRE_LOST,    // err says why; reconnecting
    WIRE_REFUSED, // an attempt to connect failed; err says why
};

struct wire_hooks {
    void (*event)(void *arg, enum wire_event event, const struct mr_error *err); // may be NULL
    void (*notify)(void *arg, const char *channel);                              // may be NULL
    void (*timer)(void *arg);                                                    // may be NULL
    void *arg;
};

struct wire_options {
    const char *dsn; // as for conn_open()
    const char *application_name;
    bool pooler; // no named statements
};

// Nothing is connected before the first wire_advance(). Copies what it is given. Fails with
// MR_ENOMEM, MR_EIO, MR_EUSAGE (the dsn).
int wire_new(const struct wire_options *options, const struct wire_hooks *hooks, struct wire **ret,
             struct mr_error *err);
// Pending requests are answered with MR_ECONNECT, whatever becomes of those that were sent.
void wire_free(struct wire *wire);

int wire_fd(const struct wire *wire);
void wire_advance(struct wire *wire);
// Makes wire_fd() readable; from any thread or a signal handler.
void wire_wake(struct wire *wire);
// Calls the timer hook, once, at this time of clock_ms(); a new time replaces the old one, 0
// takes it back.
void wire_set_timer(struct wire *wire, int64_t at_ms);

// Sends a call with its parameters, which are copied. Fails with MR_ENOMEM, or MR_ELIMIT when
// WIRE_PENDING_MAX requests have no answer yet.
int wire_send(struct wire *wire, const struct call *call, wire_answer_fn *answer, void *arg,
              struct mr_error *err);
#define WIRE_PENDING_MAX 4096

// The same for several calls of one kind, in one transaction: one request, with the result of the
// first in its answer. All of them happen, or none.
int wire_send_all(struct wire *wire, const struct call *calls, size_t count, wire_answer_fn *answer,
                  void *arg, struct mr_error *err);

// Takes back the request with this `arg`, which gets no answer then; false when it was sent.
bool wire_withdraw(struct wire *wire, const void *arg);

// Inside of an answer: makes the result of one of its calls the caller's, who clears it.
PGresult *wire_take_result(struct wire *wire, size_t at);

// Closes the connection and makes it again, with the next wire_advance().
void wire_reset(struct wire *wire);

bool wire_connected(const struct wire *wire);
// As conn_same_host(); false while there is no connection.
bool wire_same_host(const struct wire *wire);
// How many requests have no answer yet.
int wire_pending(const struct wire *wire);
// clock_ms() of the last answer; 0 before the first.
int64_t wire_answered_at(const struct wire *wire);

#endif
