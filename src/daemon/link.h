// SPDX-License-Identifier: PostgreSQL
//
// A wire on the loop that tells the log when its database comes and goes: once per change, not
// once per attempt.

#ifndef MILLRACE_DAEMON_LINK_H
#define MILLRACE_DAEMON_LINK_H

#include <stdbool.h>
#include <uv.h>

#include "base/err.h"
#include "client/wire.h"

struct link;

struct link_options {
    const char *part; // constant; what the log calls it: maintain, settings
    const char *dsn;
    bool pooler;
};

struct link_hooks {
    void (*connected)(void *arg); // may be NULL
    void (*timer)(void *arg);     // of wire_set_timer(); may be NULL
    void *arg;
};

// Connects with the next turn of the loop. Fails like wire_new().
int link_new(const struct link_options *options, const struct link_hooks *hooks, uv_loop_t *loop,
             struct link **ret, struct mr_error *err);

struct wire *link_wire(struct link *link);
// Times that the connection was lost.
int64_t link_reconnects(const struct link *link);

// Requests that have no answer yet are answered with MR_ECONNECT inside of this call, which must
// not be made from inside a callback of the wire's; `closed` is called on the loop when the
// memory is freed.
void link_close(struct link *link, void (*closed)(void *arg), void *arg);

// True when `message` differs from the one in `known`, a buffer of MR_ERROR_MESSAGE_SIZE, which
// becomes it.
bool link_is_news(char *known, const char *message);

#endif
