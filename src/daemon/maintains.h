// SPDX-License-Identifier: PostgreSQL
//
// Upkeep of every database that a daemon serves: of one, or of each shard.

#ifndef MILLRACE_DAEMON_MAINTAINS_H
#define MILLRACE_DAEMON_MAINTAINS_H

#include "daemon/maintain.h"

struct maintains;

// As maintain_new(), with a dsn that may name several. `connected` is called for each of them.
int maintains_new(const struct maintain_options *options, uv_loop_t *loop, struct maintains **ret,
                  struct mr_error *err);
// `ended` is called on the loop when all of them have ended and the memory is freed.
void maintains_stop(struct maintains *maintains, void (*ended)(void *arg), void *arg);

// Of all of them.
int64_t maintains_rounds(const struct maintains *maintains);
int64_t maintains_reconnects(const struct maintains *maintains);

#endif
