// SPDX-License-Identifier: PostgreSQL
//
// Upkeep: calls maintain() of the SQL core again and again. Any number of daemons may do so at
// once; none of them is the leader, and what one has done the others find done.

#ifndef MILLRACE_DAEMON_MAINTAIN_H
#define MILLRACE_DAEMON_MAINTAIN_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/err.h"

struct maintain;

struct maintain_options {
    const char *dsn;
    bool pooler;
    int64_t every_ms;
    void (*connected)(void *arg); // each time; may be NULL
    void *arg;
};

// Begins with the next turn of the loop. Fails like wire_new().
int maintain_new(const struct maintain_options *options, uv_loop_t *loop, struct maintain **ret,
                 struct mr_error *err);

// Ends at once: a round under way is the server's to finish or to roll back. `ended` is called on
// the loop when the memory is freed.
void maintain_stop(struct maintain *maintain, void (*ended)(void *arg), void *arg);

// Rounds that were answered without an error.
int64_t maintain_rounds(const struct maintain *maintain);
// Times that its connection was lost.
int64_t maintain_reconnects(const struct maintain *maintain);

#endif
