// SPDX-License-Identifier: PostgreSQL
//
// Brings what the configuration says about queues, retries and schedules into the database: the
// sections `queue`, `retry` and `schedule`, and for every queue that the configuration names
// $QUEUE_RETENTION_HOURS and $MAX_RETRY_ATTEMPTS where the file does not say it.

#ifndef MILLRACE_DAEMON_SETTINGS_H
#define MILLRACE_DAEMON_SETTINGS_H

#include <stdbool.h>
#include <uv.h>

#include "base/err.h"
#include "daemon/config.h"

struct settings;

// Begins to apply them to the database of `dsn`, on a connection of its own, which waits for the
// database as long as it takes, and ends by itself; refusals go to the log. `ended` is called on
// the loop, later, when the memory is freed. *ret is NULL when there is nothing to apply: then
// `ended` is not called. Fails with MR_ENOMEM, MR_EIO, MR_EUSAGE (the dsn). `sharded`: it is one of
// several. Then it is asked which; all get queues and retries, and the one with the lowest number
// the schedules: each has to come due once.
int settings_apply(const struct config *config, const char *dsn, bool sharded, uv_loop_t *loop,
                   void (*ended)(void *arg, const struct settings *settings), void *arg,
                   struct settings **ret, struct mr_error *err);

// Ends it where it is.
void settings_stop(struct settings *settings);

#endif
